"""A stdio upstream's process: its environment, how it starts, and how it ends with everything it started.

The environment is an allow-list and what the entry declares, nothing else (R-UP-8, ISO-5). When to start and end it is
the supervisor's business.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from goat_mcp.core import platform
from goat_mcp.core.errors import ToolError
from goat_mcp.processes import windows_environment
from goat_mcp.processes.launch import Confined, Launch
from goat_mcp.processes.process_guard import MARKER_VARIABLE, ProcessGuard, guarded_start
from goat_mcp.processes.process_table import start_clock
from goat_mcp.processes.process_tree import ProcessTree
from goat_mcp.processes.program_lookup import program_on
from goat_mcp.processes.stop_signals import unblocked_for_children
from goat_mcp.processes.windows_program import program_start
from goat_mcp.upstreams.config.entry import Confine, StdioLaunch
from goat_mcp.upstreams.faults import FaultMarks, StartFailure
from goat_mcp.upstreams.status import ReasonCode
from goat_mcp.upstreams.transports.child_pipes import ChildPipes, Outbox, StdioTransport
from goat_mcp.upstreams.transports.frame_inbox import Inbox
from goat_mcp.upstreams.transports.frames import FrameReader

CLOSE_WAIT_S = 2.0
"""How long a process may take to end by itself, and again after TERM (LIF-8)."""


@asynccontextmanager
async def stdio_transport(
    launch: StdioLaunch,
    *,
    guard: ProcessGuard | None,
    close_wait_s: float = CLOSE_WAIT_S,
    confine: Confine | None = None,
    environment: dict[str, str] | None = None,
) -> AsyncGenerator[tuple[StdioTransport, Inbox, Outbox]]:
    """Run the process meanwhile. Raises `StartFailure` where it cannot be started at all.

    `environment`: all that it gets; by default what `child_environment` makes of its entry.
    """
    marks = FaultMarks()
    link = StdioTransport(marks, FrameReader(marks))
    environment = child_environment(launch.env) if environment is None else environment
    program = program_of(launch.command, environment)
    if launch.cwd and not Path(launch.cwd).is_dir():  # noqa: ASYNC240  # one look, as for the program
        raise StartFailure(ReasonCode.FOLDER_NOT_FOUND, f"cwd {launch.cwd!r}: there is no such folder")
    call = f"upstream-{secrets.token_hex(8)}"
    marker = call if guard is None else guard.marker(call)
    if guard is not None:
        guard.start()
    plan = await _plan([program, *launch.args], launch, environment, {MARKER_VARIABLE: marker}, confine)
    not_before = start_clock()
    try:
        with unblocked_for_children():
            transport, process = await asyncio.get_running_loop().subprocess_exec(
                lambda: ChildPipes(link),
                *plan.arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=plan.environment,
                cwd=plan.directory or None,
                **guarded_start(is_watched=guard is not None),
                pass_fds=plan.pass_fds,
            )
    except BaseException as problem:
        plan.finish()
        if not isinstance(problem, OSError | ValueError):
            raise
        raise StartFailure(ReasonCode.START_FAILED, f"cannot start {launch.command!r}: {problem}") from None
    finally:
        for descriptor in plan.own_fds:
            os.close(descriptor)
    link.pid = transport.get_pid()
    if guard is not None:
        guard.watch(link.pid)
    try:
        yield link, process.inbox, Outbox(process, link)
    finally:
        with anyio.CancelScope(shield=True):
            tree = ProcessTree(
                link.pid,
                f"{MARKER_VARIABLE}={marker}".encode(),
                not_before=not_before,
                leader_is_outside=plan.has_process_namespace,
                jobs=None if guard is None else guard.jobs,
            )
            await _stop(process, tree, close_wait_s, has_answered=link.has_answered)
            if not plan.leaves_nothing:
                await anyio.to_thread.run_sync(plan.finish)
        if guard is not None:
            guard.forget(link.pid)
        transport.close()


async def _plan(
    arguments: Sequence[str],
    launch: StdioLaunch,
    environment: Mapping[str, str],
    marker: Mapping[str, str],
    confine: Confine | None,
) -> Launch:
    """How the process starts: in the sandbox that its entry wants. Raises `StartFailure`."""
    confined: Confined | None = None
    if launch.sandbox is not None:
        if confine is None:
            raise StartFailure(
                ReasonCode.SANDBOX_UNAVAILABLE, "its entry wants a sandbox, and nobody here can make one"
            )
        try:
            confined = await confine(launch.sandbox, Path(launch.cwd or Path.cwd()))
        except ToolError as none:
            raise StartFailure(ReasonCode.SANDBOX_UNAVAILABLE, none.message) from None
    if confined is None and not platform.HAS_JOB_OBJECTS:
        return Launch(arguments=tuple(arguments), environment={**environment, **marker}, directory=launch.cwd or "")
    try:
        if confined is None:
            started, variables = program_start(arguments, environment)
            whole = {**environment, **variables, **marker}
            return Launch(arguments=started, environment=whole, directory=launch.cwd or "")
        return confined.launch(arguments, environment=environment, marker=marker)
    except OSError as problem:
        raise StartFailure(
            ReasonCode.START_FAILED,
            f"cannot start {launch.command!r}{'' if confined is None else ' in a sandbox'}: {problem}",
        ) from None


def program_of(command: str, environment: Mapping[str, str]) -> str:
    """The executable, absolute. A name is looked up in the absolute folders of the child's PATH: a relative one, as
    `.`, would find what a repository has put there (R-UP-8). Raises `StartFailure`.
    """
    if os.sep in command or (os.altsep and os.altsep in command):
        path = str(Path(command).expanduser())
        found = program_on("", path) if platform.SYSTEM == "windows" else path  # an ending may be left out there
        if found is None or not Path(found).is_file():
            raise StartFailure(ReasonCode.COMMAND_NOT_FOUND, f"command {command!r}: there is no file {path}")
        return found
    found = program_on(windows_environment.variable(environment, "PATH"), command)
    if found is None:
        raise StartFailure(
            ReasonCode.COMMAND_NOT_FOUND,
            f"command {command!r} is not on PATH; install it or give its absolute path in the entry",
        )
    return found


async def _stop(
    process: ChildPipes,
    tree: ProcessTree,
    wait_s: float,
    *,
    has_answered: bool,
) -> None:
    """Close stdin, wait, TERM, wait, KILL: the process and all it started, also what left its group.

    One that never answered hangs or still loads its code. It has nothing to finish: TERM comes at once, KILL in half of
    the time.
    """
    process.close_stdin()
    if has_answered:
        with anyio.move_on_after(wait_s):
            await process.exited.wait()
    await tree.end(wait_s if has_answered else wait_s / 2)
    with anyio.move_on_after(wait_s):
        await process.exited.wait()


_PASSED_ON = frozenset({"PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER", "LOGNAME", "SHELL"})
_OF_WSL = frozenset({"WSL_INTEROP", "WSL_DISTRO_NAME"})
"""Without the first one a program of Windows does not always start from WSL."""


def child_environment(declared: Mapping[str, str], ours: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables for a child: the allow-listed ones of `ours` (default: this process), overlaid with `declared`."""
    source = os.environ if ours is None else ours
    if platform.SYSTEM == "windows":
        return windows_environment.overlaid(windows_environment.kept(source), declared)
    passed_on = _PASSED_ON | _OF_WSL if platform.IN_WSL else _PASSED_ON
    kept = {
        name: value
        for name, value in source.items()
        # `()` starts an exported shell function, which is code rather than data.
        if (name.upper() in passed_on or name.startswith("LC_")) and not value.startswith("()")
    }
    return {**kept, **declared}
