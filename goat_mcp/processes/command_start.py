"""How a script is started: in a bash of its own, in a sandbox if it has one, under the guard.

What becomes of it from then on is `running_command`'s.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from goat_mcp.core import platform
from goat_mcp.processes.bash_invocation import arguments, confined_arguments, raised, script_descriptor
from goat_mcp.processes.bash_options import BashOptions, limit_line
from goat_mcp.processes.command_pipes import CommandPipes
from goat_mcp.processes.launch import Confined, Launch
from goat_mcp.processes.output_capture import CreateFile, OutputCapture, SeparateStreams
from goat_mcp.processes.pids_cgroup import CommandCgroup, PidsCgroups, join_line
from goat_mcp.processes.process_guard import MARKER_VARIABLE, ProcessGuard
from goat_mcp.processes.process_table import start_clock
from goat_mcp.processes.process_tree import ProcessTree
from goat_mcp.processes.running_command import RunningCommand
from goat_mcp.processes.stop_signals import unblocked_for_children
from goat_mcp.processes.windows_command import start_windows_command


def start_command(
    script: str,
    *,
    bash: str,
    directory: str | Path,
    environment: Mapping[str, str],
    guard: ProcessGuard,
    create_file: CreateFile,
    confined: Confined | None = None,
    options: BashOptions | None = None,
    stdin: int = subprocess.DEVNULL,
    streams: SeparateStreams | None = None,
    cgroups: PidsCgroups | None = None,
) -> RunningCommand:
    """Start `script`. Takes about a millisecond, in which the event loop waits: until bash has been loaded.

    Only for the thread of the event loop: a sandbox dies with the thread that started it. Where it is `confined` that
    names the directory. `stdin` is a descriptor that the caller closes afterwards. `streams` get what it prints to each
    of its two outputs, beside the one capture of both. `cgroups` limit its processes if the system's limit for users
    does not.

    Raises `OSError` when bash, the directory or a path of the sandbox cannot be used.
    """
    started_s = time.monotonic()
    options = options or BashOptions()
    if platform.HAS_JOB_OBJECTS and confined is None:
        return start_windows_command(
            script,
            bash=bash,
            directory=directory,
            environment=environment,
            guard=guard,
            create_file=create_file,
            options=options,
            stdin=stdin,
            streams=streams,
        )
    guard.start()
    marker = guard.marker(secrets.token_hex(8))
    not_before = start_clock()
    script_read = script_descriptor(script)
    output, output_write = os.pipe()
    report, report_write = os.pipe()
    status, status_write = os.pipe() if confined is not None else (-1, -1)
    errors, errors_write = os.pipe() if streams is not None else (-1, output_write)
    ours, theirs = [output, report, status, errors], [output_write, script_read]
    if streams is not None:
        theirs.append(errors_write)
    launch: Launch | None = None
    cgroup: CommandCgroup | None = None
    passed: tuple[int, ...] = ()
    try:
        theirs.append(report_write := raised(report_write))
        own_users = confined is not None and confined.has_process_namespace
        first = limit_line(options, counts_processes=own_users)
        if cgroups is not None and (cgroup := cgroups.make(options.max_processes)) is not None:
            theirs.append(join := raised(cgroup.join_descriptor))
            passed, first = (join,), join_line(join) + first
        command = arguments(bash, script_read, report_write, first=first)
        if confined is None:
            plan = Launch(
                arguments=tuple(command),
                environment={**environment, MARKER_VARIABLE: marker},
                directory=str(directory),
                pass_fds=(script_read, report_write, *passed),
            )
        else:
            theirs.append(status_write := raised(status_write))
            plan = launch = confined.launch(
                confined_arguments(command, status_write, report_write, stays=confined.has_process_namespace),
                environment=environment,
                marker={MARKER_VARIABLE: marker},
                pass_fds=(script_read, report_write, status_write, *passed),
            )
            theirs.extend(launch.own_fds)
        with guard.starting_command():
            with unblocked_for_children():
                process = subprocess.Popen(
                    plan.arguments,
                    stdin=stdin,
                    stdout=output_write,
                    stderr=errors_write,
                    cwd=plan.directory,
                    env=plan.environment,
                    start_new_session=True,
                    pass_fds=plan.pass_fds,
                )
            guard.watch(process.pid, is_command=True)
    except BaseException:
        _close_all(ours)
        if launch is not None:
            launch.finish()
        if cgroup is not None:
            cgroup.remove()
        raise
    finally:
        _close_all(theirs)
    tree = ProcessTree(
        leader=process.pid,
        marker=f"{MARKER_VARIABLE}={marker}".encode(),
        pipe=f"pipe:[{os.fstat(report).st_ino}]" if platform.HAS_PROC else "",
        not_before=not_before,
        leader_is_outside=plan.has_process_namespace,
        before_kill=None if cgroup is None else cgroup.forbid_more,
    )
    return RunningCommand(
        process,
        tree,
        CommandPipes(output=output, report=report, status=status, errors=errors, streams=streams),
        OutputCapture(create_file),
        guard,
        started_s=started_s,
        launch=launch,
        cgroup=cgroup,
    )


def _close_all(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        if descriptor >= 0:
            os.close(descriptor)
