"""Runs a resource whose entry is a program: a process a call, JSON in, JSON out."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from goat_mcp.core import platform
from goat_mcp.core.author_errors import handler_failed
from goat_mcp.core.errors import ToolError
from goat_mcp.core.result import ToolResult, text_block
from goat_mcp.manifests.entry import CommandEntry
from goat_mcp.manifests.handler_api import HandlerContext
from goat_mcp.manifests.handler_results import call_timeout_error, read_json
from goat_mcp.manifests.runner import Runner
from goat_mcp.manifests.tool_document import Export
from goat_mcp.processes.output_capture import CreateFile, OutputPart, SeparateStreams
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.processes.program import run_program

MAX_ANSWER_BYTES = 16 * 1024 * 1024
_DRAIN_S = 0.2
"""For what is in the pipe when the program ends (R-PROC-6)."""
_SHOWN_CHARS = 200

_READ_BYTES = 1024
_END_OF_LINE = b"\n"


class CommandRunner(Runner):
    """One resource's program. It sees `GOAT_EXPORT`, `GOAT_TOOL`, `GOAT_WORKDIR` and `GOAT_CALL_ID`."""

    def __init__(
        self,
        entry: CommandEntry,
        *,
        folder: Path,
        guard: ProcessGuard,
        environment: Callable[[], Awaitable[Mapping[str, str]]],
        env: Callable[[Mapping[str, str]], Mapping[str, str]],
        message_limit: int,
    ) -> None:
        """`env` resolves the references in the entry's variables. Raises `ToolError`."""
        self._entry = entry
        self._folder = folder
        self._guard = guard
        self._environment = environment
        self._env = env
        self._message_limit = message_limit

    async def run(self, export: Export, input: Mapping[str, Any], ctx: HandlerContext, timeout_s: float) -> Any:
        """As `Runner.run`."""
        output = bytearray()
        arguments = [argument.replace("{export}", export.name) for argument in self._entry.arguments]
        environment = {
            **await self._environment(),
            **self._env(self._entry.env),
            "GOAT_EXPORT": export.name,
            "GOAT_TOOL": export.spec.name,
            "GOAT_WORKDIR": ctx.workdir,
            "GOAT_CALL_ID": ctx.tool_call_id,
        }

        def take(data: bytes) -> None:
            if len(output) <= MAX_ANSWER_BYTES:
                output.extend(data)

        try:
            end = await run_program(
                self._program(arguments),
                data=json.dumps(input, ensure_ascii=False).encode(),
                directory=self._folder,
                environment=environment,
                guard=self._guard,
                on_output=take,
                timeout_s=timeout_s,
                drain_s=_DRAIN_S,
            )
        except OSError as problem:
            raise self._not_started(arguments[0], problem) from None
        if end.timed_out:
            raise call_timeout_error(export.spec.name, timeout_s)
        if end.stderr_tail:
            ctx.logger.info("%s", end.stderr_tail)
        if end.exit_code != 0:
            raise self._exited(export, end.exit_code, end.stderr_tail, bytes(output))
        return self._value(export, bytes(output))

    def _program(self, arguments: list[str]) -> list[str]:
        """A program beside the manifest may be named as in a shell there."""
        if "/" in arguments[0]:
            return [str(self._folder / arguments[0]), *arguments[1:]]
        return arguments

    def _not_started(self, program: str, problem: OSError) -> Exception:

        wrong: tuple[str, str] | None = None
        if "/" in program:
            with suppress(OSError):
                wrong = start_problem(self._folder / program)
        what, step = wrong or (str(problem.strerror), "the program has to be installed, or executable")
        return self._failed(f"{program} cannot be started: {what}", f"Tell the user: {step}.")

    def _exited(self, export: Export, code: int, complaint: str, output: bytes) -> Exception:
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        said = complaint or "it said nothing on standard error"
        if not complaint and (printed := output[-_SHOWN_CHARS:].decode("utf-8", "replace").strip()):
            said = f"{said}, and last on standard output: {printed}"
        return self._failed(f"{export.spec.name} failed ({how}): {said}")

    def _value(self, export: Export, output: bytes) -> Any:
        if len(output) > MAX_ANSWER_BYTES:
            raise self._failed(f"{export.spec.name} printed more than {MAX_ANSWER_BYTES} bytes", "Ask for less.")
        try:
            return read_json(output)
        except (json.JSONDecodeError, UnicodeDecodeError):
            shown = output[:_SHOWN_CHARS].decode("utf-8", "replace").strip()
            what = f"printed no JSON value on standard output, but {shown!r}" if shown else "printed nothing"
            raise self._failed(f"{export.spec.name} {what}", "Tell the user: the program has to print JSON.") from None
        except ValueError as why:
            what = f"{export.spec.name} printed JSON that cannot be used: {why}"
            raise self._failed(what, "Tell the user: it is the program that has to be repaired.") from None

    def _failed(self, message: str, suggestion: str = "") -> Exception:
        return handler_failed(message, suggestion, name="CommandFailed", limit=self._message_limit)


def start_problem(file: Path) -> tuple[str, str] | None:
    """What is wrong with it and what to write; None where nothing can be said. Raises `OSError`."""
    with file.open("rb") as opened:
        start = opened.read(_READ_BYTES)
    first = start.split(_END_OF_LINE, 1)[0]
    if not first.startswith(b"#!"):
        if b"\0" in start or not platform.HAS_FILE_MODES:
            return None  # a compiled program
        return f"{file.name} does not say what runs it", "write #!/bin/sh, or what it is written in, as its first line"
    if first.endswith(b"\r"):
        what = f"the lines of {file.name} end as on Windows, so the program that its first line names is not found"
        return what, f"save it with LF line ends: sed -i 's/\\r$//' {shlex.quote(str(file))}"
    words = first[2:].decode("utf-8", "replace").split()
    if not words:
        return f"the first line of {file.name} names no program", "write #!/bin/sh"
    if words[0].startswith("/") and not os.access(words[0], os.X_OK):
        return f"the first line of {file.name} names {words[0]:.80}, which cannot be run here", "fix it, or install it"
    return None


MAX_STDOUT_CHARS = 20_000
MAX_STDERR_CHARS = 6_000
MAX_FAILED_STDOUT_CHARS = 5_000
MAX_FAILED_STDERR_CHARS = 4_000
"""Together about what Bash shows of a command that failed."""


class CommandAnswer:
    """One call's. Its outputs are read when the command has ended, or goes on without its caller."""

    def __init__(self, create_file: CreateFile) -> None:
        self._create_file = create_file
        self._streams = SeparateStreams(create_file)

    def fresh_streams(self) -> SeparateStreams:
        """For a start of the command, which may be the second one."""
        self._streams = SeparateStreams(self._create_file)
        return self._streams

    async def of(self, run: Awaitable[ToolResult], notices: Sequence[str] = ()) -> ToolResult:
        """Bash's result in JSON. Raises its `ToolError`, whose output is the same JSON."""
        try:
            result = await run
        except ToolError as failed:
            if failed.facts is None or "exit_code" not in failed.facts:
                raise  # nothing of it ran
            value = self.value(failed.facts, notices, failed=True)
            raise ToolError(
                failed.code, failed.message, failed.suggestion, facts=value, output=as_json(value)
            ) from failed
        value = self.value(result.facts or {}, notices)
        return ToolResult(content=(text_block(as_json(value)),), structured=value, task_id=result.task_id)

    def value(
        self,
        facts: Mapping[str, Any],
        notices: Sequence[str] = (),
        *,
        failed: bool = False,
    ) -> dict[str, Any]:
        """From Bash's facts. What does not apply to a call is not in it."""
        stdout = self._streams.stdout.shown(MAX_FAILED_STDOUT_CHARS if failed else MAX_STDOUT_CHARS)
        stderr = self._streams.stderr.shown(MAX_FAILED_STDERR_CHARS if failed else MAX_STDERR_CHARS)
        value: dict[str, Any] = {
            "stdout": stdout.text,
            "stderr": stderr.text,
            "exitCode": facts.get("exit_code"),
            "timedOut": bool(facts.get("timed_out")),
            "durationMs": facts.get("duration_ms"),
        }
        more = {
            "cwd": facts.get("cwd"),
            "taskId": facts.get("task_id"),
            "outputFile": facts.get("output_file"),
            "truncated": _is_cut(stdout, stderr),
            "notices": list(notices),
        }
        return {**value, **{name: one for name, one in more.items() if one}}


def as_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_cut(*parts: OutputPart) -> bool:
    return any(part.truncated for part in parts)
