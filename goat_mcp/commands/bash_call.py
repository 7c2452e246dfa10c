"""One call that runs a command: refusals, directory and time limits before it starts, and its result afterwards.

The command goes on as a task, or it has ended with its output.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from goat_mcp.commands.shell.words import Words, without_global_options
from goat_mcp.commands.tasks.manager import TaskManager
from goat_mcp.commands.tasks.task import ShellTask
from goat_mcp.core import platform
from goat_mcp.core.context import ToolContext, calling_model
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult, text_result, with_notices
from goat_mcp.files.editing.read_state import ReadFilesSnapshot, record_as_read, shown_file
from goat_mcp.files.workspace import Workspace
from goat_mcp.processes.bash_options import BashOptions
from goat_mcp.processes.environment import check_names
from goat_mcp.processes.output_capture import HEAD_SHARE, OutputPart, cut
from goat_mcp.processes.running_command import EndedBy, RunningCommand, signal_name
from goat_mcp.state.sessions import Session


def refuse_unrunnable(command: str, variables: Mapping[str, str]) -> None:
    """Refuse a command that cannot or must not run, whatever the rules say. `variables` are those that the call sets.

    Raises `ToolError`.
    """
    if "\0" in command:
        raise ToolError(ErrorCode.INPUT, "command: holds a NUL character", "Remove it; write $'\\0' or printf '\\0'.")
    try:
        command.encode("utf-8")
    except UnicodeEncodeError:
        raise ToolError(ErrorCode.INPUT, "command: holds a lone surrogate, which is no text", "Remove it.") from None
    check_names(variables)
    if "kill" in command:
        from goat_mcp.commands.self_kill import kill_of_this_server  # not at start

        if (words := kill_of_this_server(command)) is not None:
            raise ToolError(
                ErrorCode.BLOCKED,
                f"`{words[:200]}` would end goat-mcp itself (process {os.getpid()})",
                "Name a pattern that matches only the process you mean, or use its number.",
            )


@contextmanager
def start_directory(
    workspace: Workspace, session: Session, workdir: str | None, notices: list[str]
) -> Generator[tuple[str, Path]]:
    """A name of the directory that keeps meaning the checked one while this is open, and its real path.

    It is the one that the call names, else the shell's, else the first root. Raises `ToolError`.
    """
    requested = workdir or str(session.cwd or workspace.primary)
    try:
        opened = workspace.open_directory(workspace.resolve(requested))
    except ToolError:
        if workdir is not None or session.cwd is None:
            raise
        # The shell's directory was deleted, or is no longer inside the roots.
        session.cwd = None
        notices.append(f"Shell cwd was reset to {workspace.primary}")
        opened = workspace.open_directory(workspace.resolve(str(workspace.primary)))
    with opened:
        if not workspace.contains(opened.real_path):
            raise ToolError(
                ErrorCode.PATH_OUTSIDE,
                f"workdir {requested} is not inside a workspace root",
                f"Use a directory below {', '.join(map(str, workspace.roots))}.",
            )
        held = f"/proc/self/fd/{opened.directory.fileno()}" if platform.HAS_PROC else str(opened.real_path)
        yield held, opened.real_path


DEFAULT_TIMEOUT_MS = 120_000
MAX_TIMEOUT_MS = 600_000
DEFAULT_BACKGROUND_MS = 1_800_000
MAX_BACKGROUND_MS = 7_200_000


@dataclass(frozen=True)
class TimeLimits:
    """How long a command may run, and how long its call waits: None until its end. `timeout_ms` is the call's own."""

    run_s: float
    wait_s: float | None
    timeout_ms: int | None
    notices: tuple[str, ...] = ()


def time_limits(requested_ms: int | None, options: BashOptions, ctx: ToolContext, *, in_background: bool) -> TimeLimits:
    most = MAX_BACKGROUND_MS if in_background else MAX_TIMEOUT_MS
    timeout_ms = None if requested_ms is None else min(requested_ms, most)
    notices = () if timeout_ms == requested_ms else (f"timeout {requested_ms} ms was reduced to {most} ms",)
    auto_s = ctx.setting("bash.auto_background_after_s", options.auto_background_after_s)
    if timeout_ms is not None:
        run_s = timeout_ms / 1000
    else:
        run_s = (DEFAULT_BACKGROUND_MS if in_background or auto_s else DEFAULT_TIMEOUT_MS) / 1000
    wait_s = min(auto_s, ctx.wait_left_s()) if auto_s else None
    if wait_s is not None and run_s <= wait_s:
        wait_s = None
    return TimeLimits(run_s, wait_s, timeout_ms, notices)


MAX_FAILED_CHARS = 10_000
MAX_COMPRESSED_CHARS = 1_000_000
"""Longer output is not compressed."""
_NOTICE_CHARS = 160
"""About the length of the notice on compression. If compression saves less, the output stays as it is, unless it shows
source code: that has line numbers."""
_SHOWN_NAMES = 10


class SandboxFailed(ToolError):
    """The sandbox could not be set up, so nothing of the command ran."""

    def __init__(self, command: RunningCommand) -> None:
        super().__init__(
            ErrorCode.SANDBOX,
            "sandbox unavailable: it could not be set up, so the command was not run",
            "Call again: the sandbox is then tried again. If it stays so, tell the user.",
            output=command.capture.shown(MAX_FAILED_CHARS).text,
        )


@dataclass(frozen=True, kw_only=True)
class CommandCall:
    """A call whose command has started."""

    text: str
    """The command that the call names."""
    ctx: ToolContext
    session: Session
    command: RunningCommand
    directory: Path
    sandbox: str
    """A confinement's name, `none`, or `off` if the settings want none."""
    limits: TimeLimits
    in_background: bool
    changes_cwd: bool
    """Whether the directory at its end becomes the shell's."""
    reads_before: ReadFilesSnapshot
    notices: list[str]
    is_goas: bool = False
    """Of a long output only the end is shown, and time-outs are in seconds. Source: goa, `bash`."""

    @property
    def head_share(self) -> float:
        return 0.0 if self.is_goas else HEAD_SHARE


@dataclass(frozen=True)
class CallResults:
    """Makes the results of one tool's calls."""

    workspace: Workspace
    tasks: TaskManager
    options: BashOptions
    max_chars: int

    async def as_task(self, call: CommandCall) -> ToolResult:
        """The command goes on as a task; the call is done. Raises `ToolError` if there is no room for one."""
        command = call.command
        path = command.capture.keep_file()
        work = ShellTask(command, call.text, call.limits.run_s)
        try:
            task = await self.tasks.adopt(work, principal=call.ctx.principal, session_key=call.ctx.session_key)
        except ToolError as full:
            command.begin_end(EndedBy.STOP)
            part = command.capture.shown(MAX_FAILED_CHARS)
            raise ToolError(full.code, full.message, full.suggestion, output=part.text) from None
        lines = [f"Task started: {task.id}"]
        part = OutputPart("", 0)
        if not call.in_background:
            part = task.new_output(call.ctx.session_key, self._max_chars(call.ctx) - 1000)
            lines.append(part.text or "(no output yet)")
            waited_s = time.monotonic() - command.started_s
            call.notices.append(f"still running after {waited_s:.0f} s, until {call.limits.run_s:g} s at most")
        call.notices.append(f"output goes to {path}; TaskOutput reads it, TaskStop ends the task")
        facts = self._facts(call, task_id=task.id, output_file=str(path), truncated=part.truncated)
        return text_result("\n".join(lines), facts=facts, notices=call.notices, task_id=task.id)

    async def ended(self, call: CommandCall) -> ToolResult:
        """The command has ended. Raises `ToolError` if it failed."""
        command = call.command
        code = command.exit_code
        if command.sandbox_failed:
            raise SandboxFailed(command)
        self._keep_directory(call)
        call.notices.extend(command.put_right)
        stale = call.reads_before.changed()
        if stale:
            more = f" and {len(stale) - _SHOWN_NAMES} more" if len(stale) > _SHOWN_NAMES else ""
            call.notices.append(f"files you have read changed: {', '.join(stale[:_SHOWN_NAMES])}{more}")
        from goat_mcp.commands.shell.script_parsing import read_script  # not at start

        script = read_script(call.text) if code in (0, 1) else None
        if code == 0 and script and len(script.commands) == 1 and (shown := shown_file(script.commands[0])) is not None:
            await anyio.to_thread.run_sync(record_as_read, shown, call.directory, self.workspace, call.session.reads)
        failed = command.ended_by is not None or not (
            code == 0 or (code == 1 and script and exit_1_is_an_answer(script.all_commands))
        )
        if code == 1 and not failed:
            call.notices.append("exit code 1")
        task_id = await self._adopt_left_running(call)
        compressed = None
        if task_id is None and _is_compression_wanted(self.options, call.ctx):
            compressed = await _compressed(call, failed=failed)
        notices_chars = sum(len(notice) + 3 for notice in call.notices)
        max_chars = self._max_chars(call.ctx)
        max_chars = (min(MAX_FAILED_CHARS, max_chars) if failed else max_chars) - notices_chars
        if compressed is None:
            part = command.capture.shown(max_chars, head_share=call.head_share)
        else:
            part = _cut(compressed, max_chars, call.head_share)
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

    def _keep_directory(self, call: CommandCall) -> None:
        ended_in = call.command.directory
        if ended_in is None or not call.changes_cwd:
            return
        if self.workspace.contains(Path(ended_in)):
            call.session.cwd = Path(ended_in)
        else:
            call.session.cwd = None
            call.notices.append(f"Shell cwd was reset to {self.workspace.primary}")

    async def _adopt_left_running(self, call: CommandCall) -> str | None:
        command = call.command
        if not command.left_running or command.ended_by is not None:
            return None
        what = ", ".join(command.left_running[:3])[:200]
        command.end_at(MAX_BACKGROUND_MS / 1000)
        command.capture.keep_file()
        work = ShellTask(command, call.text, MAX_BACKGROUND_MS / 1000)
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

    def _facts(self, call: CommandCall, **more: Any) -> dict[str, Any]:
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


def _is_compression_wanted(options: BashOptions, ctx: ToolContext) -> bool:
    """By the first pattern that matches a name of the model, then the setting for all, then where the model runs."""
    model = calling_model(ctx)
    names = [name.lower() for name in model.names] if model else []
    for pattern, wanted in options.compress_output_of_model.items():
        if any(fnmatchcase(name, pattern.lower()) for name in names):
            return wanted
    for_all = ctx.setting("bash.compress_output", options.compress_output)
    if for_all is not None:
        return for_all
    return model is not None and model.is_local


async def _compressed(call: CommandCall, *, failed: bool) -> str | None:
    """The compressed output, if that is possible. The whole stays in a file, which a notice names."""
    # Loaded when needed: it brings the parser.
    from goat_mcp.commands.compression.output import compressed_output

    command = call.command
    whole = command.capture.shown(MAX_COMPRESSED_CHARS)
    if command.ended_by is not None or signal_name(command.exit_code or 0) or whole.truncated:
        return None
    compress = partial(compressed_output, call.text, whole.text, failed=failed, directory=call.directory)
    compressed = await anyio.to_thread.run_sync(compress)
    if compressed is None:
        return None
    saves_more = len(compressed.text) + _NOTICE_CHARS <= len(whole.text)
    if not saves_more and not compressed.is_numbered:
        return None
    path = command.capture.keep_file()
    if command.capture.problem:
        return None  # there is no file with the whole output
    if saves_more:
        what = f"compressed from {len(whole.text)} to {len(compressed.text)} characters; the whole"
    else:
        what = "lines are numbered; as printed"
    call.notices.append(f"{what}: {path}")
    return compressed.text


def _cut(text: str, max_chars: int, head_share: float) -> OutputPart:
    """Cut without a notice: the one on compression already names the file with the whole output."""
    if len(text) <= max_chars:
        return OutputPart(text, 0)
    return OutputPart(cut(text, max_chars, "", head_share), 0, truncated=True)


def _failure(call: CommandCall, output: str, facts: Mapping[str, Any]) -> ToolError:
    command = call.command
    if command.ended_by is EndedBy.TIMEOUT:
        timeout_ms = call.limits.timeout_ms
        if call.is_goas:
            advice = "Send a longer timeout (at most 300 s), or start it with bg_exec."
        elif timeout_ms is not None and timeout_ms < 1000:
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


_ANSWER_BY_EXIT = frozenset({"grep", "egrep", "fgrep", "rg", "find", "diff", "test", "[", "[["})
_GIT_ANSWERS = (("git", "diff"), ("git", "grep"))


def exit_1_is_an_answer(commands: Sequence[Words]) -> bool:
    """Whether exit code 1 of a script only says "nothing found", "different" or "no": its last command decides."""
    last = commands[-1] if commands else ("",)
    return last[0] in _ANSWER_BY_EXIT or without_global_options(last)[:2] in _GIT_ANSWERS
