"""Bash: run a script in the workspace. How processes start, print and end lies in `goat_mcp.subprocesses`."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, cast

import anyio
from pydantic import Field

from goat_mcp.compression.wanted import is_wanted
from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult, text_result, with_notices
from goat_mcp.core.side_effect import Hints, Risk, SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import Access, BuiltinTool
from goat_mcp.editing.shell_reads import ReadFilesBefore, record_as_read, shown_file
from goat_mcp.sandbox.options import SandboxWish
from goat_mcp.sandbox.sandbox import ConfinedProcess, Sandbox
from goat_mcp.state.sessions import Session, Sessions
from goat_mcp.state.spill import SpillFiles
from goat_mcp.subprocesses.bash_script import find_bash
from goat_mcp.subprocesses.environment import CommandEnvironment, check_names
from goat_mcp.subprocesses.exit_meaning import exit_1_is_an_answer
from goat_mcp.subprocesses.git_hardening import GitHardening
from goat_mcp.subprocesses.options import BashOptions
from goat_mcp.subprocesses.output_capture import OutputPart
from goat_mcp.subprocesses.output_text import cut
from goat_mcp.subprocesses.process_guard import ProcessGuard
from goat_mcp.subprocesses.running_command import EndedBy, RunningCommand, signal_name, start_command
from goat_mcp.subprocesses.self_kill import kill_of_this_server
from goat_mcp.subprocesses.separate_streams import SeparateStreams
from goat_mcp.tasks.manager import TaskManager
from goat_mcp.tasks.shell_task import ShellTask
from goat_mcp.workspace import Workspace

DEFAULT_TIMEOUT_MS = 120_000
MAX_TIMEOUT_MS = 600_000
DEFAULT_BACKGROUND_MS = 1_800_000
MAX_BACKGROUND_MS = 7_200_000
MAX_CHARS = 30_000
MAX_FAILED_CHARS = 10_000
PROGRESS_EVERY_S = 2.0
MAX_PRESSED_CHARS = 1_000_000
"""More than the memory holds of an output: what is longer is not compressed."""
_NOTICE_CHARS = 160
"""About what it costs to say that an output is compressed; what saves no more is shown as it is."""
_SHOWN_NAMES = 10
_SYSTEM_PATH = "/usr/bin:/bin"


class BashInput(ToolInput):
    aliases: ClassVar[Mapping[str, str]] = {
        "cmd": "command",
        "cwd": "workdir",
        "timeout_ms": "timeout",
        "timeout_s": "timeout_s",
    }
    text_fields: ClassVar[frozenset[str]] = frozenset({"command"})

    command: str
    timeout: int | None = Field(None, gt=0, description="Milliseconds, at most 600000")
    description: str | None = None
    run_in_background: bool = Field(False, description="Answer at once with a task id")
    disable_sandbox: bool = Field(False, alias="dangerouslyDisableSandbox")
    workdir: str | None = Field(None, description="Directory for this call only")
    env: dict[str, str] | None = None

    @classmethod
    def rewrite(cls, arguments: dict[str, Any]) -> None:
        env = arguments.get("env")
        if isinstance(env, dict):
            pairs = cast("dict[str, Any]", env)
            arguments["env"] = {name: _as_text(value) for name, value in pairs.items()}
        if (seconds := arguments.pop("timeout_s", None)) is None:
            return
        try:
            milliseconds = math.ceil(float(seconds) * 1000)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"timeout_s: wants a number of seconds; got {str(seconds)[:60]!r}") from None
        if arguments.get("timeout", milliseconds) not in (milliseconds, str(milliseconds)):
            raise ValueError("timeout_s: came with a different timeout; send timeout, in milliseconds")
        arguments["timeout"] = milliseconds


class _SandboxFailed(ToolError):
    """The sandbox did not come up, so nothing of the command was run."""

    def __init__(self, command: RunningCommand) -> None:
        super().__init__(
            ErrorCode.SANDBOX,
            "sandbox unavailable: it could not be set up, so the command was not run",
            "Call again: the sandbox is then tried anew. If it stays so, tell the user.",
            output=command.capture.shown(MAX_FAILED_CHARS).text,
        )


@dataclass(frozen=True)
class _Limits:
    """How long a command may run, and how long its call waits for it; None: until it has ended."""

    run_s: float
    wait_s: float | None
    timeout_ms: int | None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Given:
    """What a tool of another face gives with a command: the script that is run where the input's `command` is only how
    it is judged and shown, a standard input (a descriptor), and what keeps its two outputs apart. `notices` are what
    the result says in brackets."""

    script: str = ""
    stdin: int = subprocess.DEVNULL
    streams: Callable[[], SeparateStreams] | None = None
    notices: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class _Call:
    """One call at work."""

    input: BashInput
    ctx: ToolContext
    session: Session
    command: RunningCommand
    directory: Path
    limits: _Limits
    notices: list[str]
    sandbox: str
    """What it runs in: a confinement's name, `none`, or `off` where none was wanted."""


@dataclass(frozen=True)
class Bash(
    BuiltinTool[BashInput],
    side_effect=SideEffect.NETWORK,
    risk=Risk.CRITICAL,
    hints=Hints(read_only=False, destructive=True, idempotent=False, open_world=True),
    toolset="core",
    title="Run a command",
    always_load=True,
    max_result_chars=MAX_CHARS,
):
    """Run a bash script in the workspace. What it deletes or overwrites is gone: look before you rm.

    Stdout and stderr come back together. The directory carries over to the next call, variables do not; stdin is
    empty. What runs longer than 45 s becomes a background task: see TaskOutput. Prefer Read, Edit, Glob and Grep to
    cat, sed, find and grep.
    """

    examples = (
        ToolExample("Run the tests", {"command": "make test", "timeout": 300000}),
        ToolExample("Start a server in the background", {"command": "npm start", "run_in_background": True}),
    )

    workspace: Workspace
    sessions: Sessions
    tasks: TaskManager
    spill: SpillFiles
    guard: ProcessGuard
    environment: CommandEnvironment = field(default_factory=CommandEnvironment)
    options: BashOptions = field(default_factory=BashOptions)
    max_chars: int = MAX_CHARS
    sandbox: Sandbox | None = None

    def access(self, input: BashInput) -> Access:
        return Access(category="shell")

    async def execute(self, input: BashInput, ctx: ToolContext) -> ToolResult:
        return await self.run(input, ctx)

    async def run(self, input: BashInput, ctx: ToolContext, given: Given | None = None) -> ToolResult:
        """As `execute`, for tools that run commands under these same rules."""
        given = given or Given()
        _refuse(input)
        with suppress(_SandboxFailed):
            return await self._run(input, ctx, given)
        # Nothing has run. Most likely somebody replaced a file just when it was being mounted.
        try:
            return await self._run(input, ctx, given)
        except _SandboxFailed:
            if self.sandbox is not None:
                self.sandbox.start_failed()
            raise

    async def _run(self, input: BashInput, ctx: ToolContext, given: Given) -> ToolResult:
        if input.run_in_background:
            self.tasks.check_room()
        session = self.sessions.of(ctx.session_key)
        environment = await self.environment.build(input.env)
        notices = given.notices
        notices.clear()
        with self._directory(input, session, notices) as (started_in, directory):
            environment |= await GitHardening(self.guard).environment(input.command, directory, environment)
            confined, sandbox = await self._confine(input, ctx, directory, notices)
            before = ReadFilesBefore.of(session.reads)
            # bash itself comes from the user's PATH, whatever PATH the command is to see. A sandbox shows the system's.
            path = await self.environment.login_path.read() if confined is None else _SYSTEM_PATH
            command = self._start(given.script or input.command, given, environment, path, started_in, confined)
        limits = self._limits(input, ctx)
        notices += limits.notices
        call = _Call(input, ctx, session, command, directory, limits, notices, sandbox)
        try:
            command.end_at(limits.run_s)
            if input.run_in_background or not await _wait(command, limits.wait_s, ctx):
                return await self._as_task(call)
            return await self._ended(call, before)
        except BaseException:
            # Cancelled, most likely: the ending goes on by itself, the call does not wait for it.
            command.begin_end(EndedBy.STOP)
            raise

    async def _confine(
        self, input: BashInput, ctx: ToolContext, directory: Path, notices: list[str]
    ) -> tuple[ConfinedProcess | None, str]:
        """The sandbox of this command, if it has one, and its name. Raises `ToolError(SANDBOX)`."""
        if self.sandbox is None:
            return None, "off"
        session_key = ctx.rights.client_session or ctx.session_key
        state = await self.sandbox.state(session_key, ctx.principal)
        confined = await self.sandbox.confine_command(
            directory, session_key=session_key, principal=ctx.principal, writes_below=ctx.rights.writes_below
        )
        if state.unsandboxed:
            notices.append(f"unsandboxed: {state.reason}")
        if confined is not None:
            notices.extend(confined.notices)
        if confined is not None and input.disable_sandbox:
            notices.append("dangerouslyDisableSandbox was ignored: only the user's settings turn the sandbox off")
        return confined, "off" if state.wanted is SandboxWish.OFF else state.name

    def _start(
        self,
        script: str,
        given: Given,
        environment: Mapping[str, str],
        path: str,
        directory: str,
        confined: ConfinedProcess | None,
    ) -> RunningCommand:
        bash = find_bash(path)
        if bash is None:
            raise ToolError(ErrorCode.NOT_CONFIGURED, "there is no bash on PATH", "Ask the user to install bash.")
        try:
            return start_command(
                script,
                bash=bash,
                directory=directory,
                environment=environment,
                guard=self.guard,
                create_file=self.spill.create,
                confined=confined,
                options=self.options,
                stdin=given.stdin,
                streams=given.streams() if given.streams is not None else None,
            )
        except OSError as problem:
            raise ToolError(
                ErrorCode.IO, f"the command could not be started: {problem.strerror or problem}", "Try again later."
            ) from problem

    @contextmanager
    def _directory(self, input: BashInput, session: Session, notices: list[str]) -> Generator[tuple[str, Path]]:
        """Where the command starts: a name that stays what was checked while it is open, and the real path."""
        asked = input.workdir or str(session.cwd or self.workspace.primary)
        try:
            opened = self.workspace.open_directory(self.workspace.resolve(asked))
        except ToolError:
            if input.workdir is not None or session.cwd is None:
                raise
            # The directory the shell stood in was deleted, or is no longer inside the roots.
            session.cwd = None
            notices.append(f"Shell cwd was reset to {self.workspace.primary}")
            opened = self.workspace.open_directory(self.workspace.resolve(str(self.workspace.primary)))
        with opened:
            if not self.workspace.contains(opened.real_path):
                raise ToolError(
                    ErrorCode.PATH_OUTSIDE,
                    f"workdir {asked} is not inside a workspace root",
                    f"Use a directory below {', '.join(map(str, self.workspace.roots))}.",
                )
            by_descriptor = sys.platform == "linux"
            yield (f"/proc/self/fd/{opened.fd}" if by_descriptor else str(opened.real_path)), opened.real_path

    def _limits(self, input: BashInput, ctx: ToolContext) -> _Limits:
        most = MAX_BACKGROUND_MS if input.run_in_background else MAX_TIMEOUT_MS
        timeout_ms = None if input.timeout is None else min(input.timeout, most)
        notices = () if timeout_ms == input.timeout else (f"timeout {input.timeout} ms was reduced to {most} ms",)
        auto_s = ctx.setting("bash.auto_background_after_s", self.options.auto_background_after_s)
        if timeout_ms is not None:
            run_s = timeout_ms / 1000
        else:
            run_s = (DEFAULT_BACKGROUND_MS if input.run_in_background or auto_s else DEFAULT_TIMEOUT_MS) / 1000
        wait_s = min(auto_s, ctx.wait_left_s()) if auto_s else None
        if wait_s is not None and run_s <= wait_s:
            wait_s = None
        return _Limits(run_s, wait_s, timeout_ms, notices)

    async def _as_task(self, call: _Call) -> ToolResult:
        """The command goes on without the call."""
        command = call.command
        path = command.capture.keep_file()
        work = ShellTask(command, call.input.command, call.limits.run_s)
        try:
            task = await self.tasks.adopt(work, principal=call.ctx.principal, session_key=call.ctx.session_key)
        except ToolError as full:
            command.begin_end(EndedBy.STOP)
            part = command.capture.shown(MAX_FAILED_CHARS)
            raise ToolError(full.code, full.message, full.suggestion, output=part.text) from None
        lines = [f"Task started: {task.id}"]
        part = OutputPart("", 0)
        if not call.input.run_in_background:
            part = task.new_output(call.ctx.session_key, self._max_chars(call.ctx) - 1000)
            lines.append(part.text or "(no output yet)")
            waited_s = time.monotonic() - command.started_s
            call.notices.append(f"still running after {waited_s:.0f} s, until {call.limits.run_s:g} s at most")
        call.notices.append(f"output goes to {path}; TaskOutput reads it, TaskStop ends the task")
        facts = self._facts(call, task_id=task.id, output_file=str(path), truncated=part.truncated)
        return text_result("\n".join(lines), facts=facts, notices=call.notices)

    async def _ended(self, call: _Call, before: ReadFilesBefore) -> ToolResult:
        command = call.command
        code = command.exit_code
        if command.sandbox_failed:
            raise _SandboxFailed(command)
        self._keep_directory(call)
        call.notices.extend(command.put_right)
        stale = before.changed()
        if stale:
            more = f" and {len(stale) - _SHOWN_NAMES} more" if len(stale) > _SHOWN_NAMES else ""
            call.notices.append(f"files you have read changed: {', '.join(stale[:_SHOWN_NAMES])}{more}")
        if code == 0 and (shown := shown_file(call.input.command)) is not None:
            await anyio.to_thread.run_sync(record_as_read, shown, call.directory, self.workspace, call.session.reads)
        failed = command.ended_by is not None or not (
            code == 0 or (code == 1 and exit_1_is_an_answer(call.input.command))
        )
        if code == 1 and not failed:
            call.notices.append("exit code 1")
        task_id = await self._adopt_what_is_left(call)
        pressed = None if task_id or not is_wanted(self.options, call.ctx) else await _pressed(call, failed=failed)
        notices_chars = sum(len(notice) + 3 for notice in call.notices)
        max_chars = self._max_chars(call.ctx)
        max_chars = (min(MAX_FAILED_CHARS, max_chars) if failed else max_chars) - notices_chars
        part = command.capture.shown(max_chars) if pressed is None else _cut(pressed, max_chars)
        path = command.capture.path
        facts = self._facts(
            call,
            task_id=task_id,
            output_file=None if path is None else str(path),
            truncated=part.truncated,
            stale_reads=stale,
        )
        if failed:
            raise _failure(call, with_notices(part.text or "(no output)", call.notices), facts)
        return text_result(part.text or "(no output)", facts=facts, notices=call.notices)

    def _keep_directory(self, call: _Call) -> None:
        ended_in = call.command.directory
        if ended_in is None or call.input.workdir is not None:
            return
        if self.workspace.contains(Path(ended_in)):
            call.session.cwd = Path(ended_in)
        else:
            call.session.cwd = None
            call.notices.append(f"Shell cwd was reset to {self.workspace.primary}")

    async def _adopt_what_is_left(self, call: _Call) -> str | None:
        command = call.command
        if not command.left_running or command.ended_by is not None:
            return None
        what = ", ".join(command.left_running[:3])[:200]
        command.end_at(MAX_BACKGROUND_MS / 1000)
        command.capture.keep_file()
        work = ShellTask(command, call.input.command, MAX_BACKGROUND_MS / 1000)
        try:
            task = await self.tasks.adopt(work, principal=call.ctx.principal, session_key=call.ctx.session_key)
        except ToolError as full:
            command.begin_end(EndedBy.STOP)
            call.notices.append(f"ended what the command left running ({what}): {full.message}")
            return None
        task.mark_read(call.ctx.session_key, command.capture.total)
        call.notices.append(f"still running: {what}. Task started: {task.id}; TaskStop ends it")
        return task.id

    def _max_chars(self, ctx: ToolContext) -> int:
        return ctx.setting("output.max_chars", self.max_chars)

    def _facts(self, call: _Call, **more: Any) -> dict[str, Any]:
        command = call.command
        seconds = command.duration_s or time.monotonic() - command.started_s
        return {
            "exit_code": command.exit_code,
            "timed_out": command.ended_by is EndedBy.TIMEOUT,
            "duration_ms": round(seconds * 1000),
            "cwd": str(call.session.cwd or self.workspace.primary),
            "task_id": None,
            "output_file": None,
            "truncated": False,
            "stale_reads": [],
            "sandbox": call.sandbox,
            **more,
        }


async def _wait(command: RunningCommand, wait_s: float | None, ctx: ToolContext) -> bool:
    """Wait for the command's end, telling how it goes. Returns False when `wait_s` is over first."""
    if not ctx.wants_progress:
        return await command.wait_ended(wait_s)
    deadline_s = math.inf if wait_s is None else time.monotonic() + wait_s
    while True:
        left_s = deadline_s - time.monotonic()
        if await command.wait_ended(max(0.0, min(left_s, PROGRESS_EVERY_S))):
            return True
        if left_s <= PROGRESS_EVERY_S:
            return False
        await ctx.progress(time.monotonic() - command.started_s, None, command.capture.last_line() or None)


async def _pressed(call: _Call, *, failed: bool) -> str | None:
    """The output in fewer words, where that can be had. The whole is kept, and a notice says where."""
    # Loaded by those who want it: it brings the parser.
    from goat_mcp.compression.output import compressed_output

    command = call.command
    whole = command.capture.shown(MAX_PRESSED_CHARS)
    if command.ended_by is not None or signal_name(command.exit_code or 0) or whole.truncated:
        return None
    script = call.input.command
    pressed = await anyio.to_thread.run_sync(lambda: compressed_output(script, whole.text, failed=failed))
    if pressed is None or len(pressed) + _NOTICE_CHARS > len(whole.text):
        return None
    path = command.capture.keep_file()
    if command.capture.problem:
        return None  # what is left out would be nowhere
    call.notices.append(f"compressed from {len(whole.text)} to {len(pressed)} characters; the whole: {path}")
    return pressed


def _cut(text: str, max_chars: int) -> OutputPart:
    """The notice of the compression says already where the whole is."""
    if len(text) <= max_chars:
        return OutputPart(text, 0)
    return OutputPart(cut(text, max_chars, ""), 0, truncated=True)


def _refuse(input: BashInput) -> None:
    """What cannot or must not be run at all. Raises `ToolError`."""
    if "\0" in input.command:
        raise ToolError(ErrorCode.INPUT, "command: holds a NUL character", "Remove it; write $'\\0' or printf '\\0'.")
    try:
        input.command.encode("utf-8")
    except UnicodeEncodeError:
        raise ToolError(ErrorCode.INPUT, "command: holds a lone surrogate, which is no text", "Remove it.") from None
    check_names(input.env or {})
    if (words := kill_of_this_server(input.command)) is not None:
        raise ToolError(
            ErrorCode.BLOCKED,
            f"`{words[:200]}` would end goat-mcp itself (process {os.getpid()})",
            "Name a pattern that matches only the process you mean, or use its number.",
        )


def _failure(call: _Call, output: str, facts: Mapping[str, Any]) -> ToolError:
    command = call.command
    if command.ended_by is EndedBy.TIMEOUT:
        timeout_ms = call.limits.timeout_ms
        if timeout_ms is not None and timeout_ms < 1000:
            advice = f"timeout is in milliseconds: {timeout_ms} is {timeout_ms / 1000:g} s; for 30 s send 30000."
        else:
            advice = f"Send a longer timeout (at most {MAX_TIMEOUT_MS} ms), or run_in_background."
        message = f"timed out after {call.limits.run_s:g} s and was ended with all it started"
        return ToolError(ErrorCode.TIMEOUT, message, advice, facts=facts, output=output)
    if command.ended_by is EndedBy.OUTPUT:
        return ToolError(
            ErrorCode.TOO_LARGE,
            "printed more than 5 GB and was ended with all it started",
            "Filter the output, or write it to a file.",
            facts=facts,
            output=output,
        )
    code = command.exit_code
    if command.ended_by is EndedBy.STOP or code is None:
        return ToolError(ErrorCode.CANCELLED, "the command was stopped", facts=facts, output=output)
    signalled = signal_name(code)
    message = f"Exit code {code}" + (f" ({signalled})" if signalled else "")
    return ToolError(ErrorCode.EXIT, message, facts=facts, output=output)


def _as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value
