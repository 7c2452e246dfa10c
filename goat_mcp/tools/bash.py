"""Bash: run a script in the workspace. Its results: `goat_mcp.commands`; its processes: `goat_mcp.processes`."""

from __future__ import annotations

import math
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, cast

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from goat_mcp.commands.bash_call import (
    CallResults,
    CommandCall,
    SandboxFailed,
    refuse_unrunnable,
    start_directory,
    time_limits,
)
from goat_mcp.commands.git_hardening import GitHardening
from goat_mcp.commands.sandbox.options import SandboxMode
from goat_mcp.commands.sandbox.sandbox import ConfinedProcess, Sandbox
from goat_mcp.commands.tasks.manager import TaskManager
from goat_mcp.core import platform
from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.coercion import Problem, shown_value
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult
from goat_mcp.core.side_effect import Hints, Risk, SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import Access, BuiltinTool
from goat_mcp.files.editing.read_state import ReadFilesSnapshot
from goat_mcp.files.workspace import Workspace
from goat_mcp.processes.bash_invocation import find_bash
from goat_mcp.processes.bash_options import BashOptions
from goat_mcp.processes.command_start import start_command
from goat_mcp.processes.environment import CommandEnvironment
from goat_mcp.processes.output_capture import SeparateStreams
from goat_mcp.processes.pids_cgroup import PidsCgroups
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.processes.running_command import EndedBy, RunningCommand
from goat_mcp.processes.windows_bash import find_git_bash
from goat_mcp.state.sessions import Sessions
from goat_mcp.state.spill import SpillFiles

MAX_CHARS = 30_000
PROGRESS_EVERY_S = 2.0
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
    # goa's bash shows the end of a long output, and has its time-out in seconds.
    is_goas: SkipJsonSchema[bool] = False

    @classmethod
    def rewrite(cls, arguments: dict[str, Any]) -> Iterable[Problem]:
        env = arguments.get("env")
        if isinstance(env, dict):
            pairs = cast("dict[str, Any]", env)
            arguments["env"] = {name: _as_text(value) for name, value in pairs.items()}
        if (seconds := arguments.pop("timeout_s", None)) is None:
            return ()
        try:
            milliseconds = math.ceil(float(seconds) * 1000)
        except (TypeError, ValueError, OverflowError):
            return (("timeout_s", f"wants a number of seconds; got {shown_value(seconds)}"),)
        if arguments.get("timeout", milliseconds) not in (milliseconds, str(milliseconds)):
            return (("timeout_s", "came with a different timeout; send timeout, in milliseconds"),)
        arguments["timeout"] = milliseconds
        return ()


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
    cgroups: PidsCgroups | None = None

    def access(self, input: BashInput) -> Access:
        return Access(category="shell")

    async def execute(self, input: BashInput, ctx: ToolContext) -> ToolResult:
        return await self.run(input, ctx)

    async def run(self, input: BashInput, ctx: ToolContext, given: Given | None = None) -> ToolResult:
        """As `execute`, for tools that run commands under these same rules."""
        given = given or Given()
        refuse_unrunnable(input.command, input.env or {})
        with suppress(SandboxFailed):
            return await self._run(input, ctx, given)
        # Nothing has run. Most likely somebody replaced a file just when it was being mounted.
        try:
            return await self._run(input, ctx, given)
        except SandboxFailed:
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
        with start_directory(self.workspace, session, input.workdir, notices) as (started_in, directory):
            reads = await GitHardening(self.guard).of(input.command, directory, environment)
            if given.script and reads.covers_all:
                environment |= reads.variables
            confined, sandbox = await self._confine(input, ctx, directory, notices)
            before = ReadFilesSnapshot.of(session.reads)
            # bash itself comes from the user's PATH, whatever PATH the command is to see. A sandbox shows the system's.
            path = await self.environment.login_path.read() if confined is None else _SYSTEM_PATH
            command = self._start(given.script or reads.script, given, environment, path, started_in, confined)
        in_background = input.run_in_background
        limits = time_limits(input.timeout, self.options, ctx, in_background=in_background)
        notices += limits.notices
        call = CommandCall(
            text=input.command,
            ctx=ctx,
            session=session,
            command=command,
            directory=directory,
            sandbox=sandbox,
            limits=limits,
            in_background=in_background,
            changes_cwd=input.workdir is None,
            reads_before=before,
            notices=notices,
            is_goas=input.is_goas,
        )
        results = CallResults(self.workspace, self.tasks, self.options, self.max_chars)
        try:
            command.end_at(limits.run_s)
            if in_background or not await _wait(command, limits.wait_s, ctx):
                return await results.as_task(call)
            return await results.ended(call)
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
        session_key = ctx.client_session
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
        return confined, "off" if state.wanted is SandboxMode.OFF else state.name

    def _program(self, path: str) -> str:
        """The bash that runs it. Raises `ToolError(NOT_CONFIGURED)`."""
        if platform.SYSTEM == "windows":
            return find_git_bash(self.options.git_bash, {**os.environ, "PATH": path}, os.path.isfile)
        if (bash := find_bash(path)) is None:
            raise ToolError(ErrorCode.NOT_CONFIGURED, "there is no bash on PATH", "Ask the user to install bash.")
        return bash

    def _start(
        self,
        script: str,
        given: Given,
        environment: Mapping[str, str],
        path: str,
        directory: str,
        confined: ConfinedProcess | None,
    ) -> RunningCommand:
        try:
            return start_command(
                script,
                bash=self._program(path),
                directory=directory,
                environment=environment,
                guard=self.guard,
                create_file=self.spill.create,
                confined=confined,
                options=self.options,
                stdin=given.stdin,
                streams=given.streams() if given.streams is not None else None,
                cgroups=self.cgroups,
            )
        except OSError as problem:
            raise ToolError(
                ErrorCode.IO, f"the command could not be started: {problem.strerror or problem}", "Try again later."
            ) from problem


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


def _as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value
