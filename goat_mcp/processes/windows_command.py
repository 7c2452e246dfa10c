"""How a script is started on Windows: in Git's bash, in a job object. What becomes of it is `running_command`'s."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from goat_mcp.processes.bash_options import BashOptions
from goat_mcp.processes.command_pipes import CommandPipes
from goat_mcp.processes.output_capture import CreateFile, OutputCapture, SeparateStreams
from goat_mcp.processes.process_guard import MARKER_VARIABLE, ProcessGuard, guarded_start
from goat_mcp.processes.process_tree import ProcessTree
from goat_mcp.processes.running_command import RunningCommand
from goat_mcp.processes.thread_pipes import ThreadReader
from goat_mcp.processes.windows_bash import RUN_VARIABLE, arguments, bash_path, run_file
from goat_mcp.processes.windows_job import JobLimits

_SCRIPT, _RUN, _REPORT = "script", "run", "directory"
_MAX_REPORT_BYTES = 64 * 1024


def start_windows_command(
    script: str,
    *,
    bash: str,
    directory: str | Path,
    environment: Mapping[str, str],
    guard: ProcessGuard,
    create_file: CreateFile,
    options: BashOptions,
    stdin: int,
    streams: SeparateStreams | None,
) -> RunningCommand:
    """As `start_command`, without a sandbox."""
    started_s = time.monotonic()
    marker = guard.marker(secrets.token_hex(8))
    folder = Path(tempfile.mkdtemp(prefix="goat-mcp-command-"))
    output, output_write = os.pipe()
    errors, errors_write = os.pipe() if streams is not None else (-1, output_write)
    try:
        (folder / _SCRIPT).write_bytes(script.encode("utf-8"))
        run = run_file(bash_path(str(folder / _SCRIPT)), bash_path(str(folder / _REPORT)))
        (folder / _RUN).write_bytes(run.encode("utf-8"))
        with guard.starting_command():
            process = subprocess.Popen(
                arguments(bash),
                stdin=stdin,
                stdout=output_write,
                stderr=errors_write,
                cwd=str(directory),
                env={**environment, MARKER_VARIABLE: marker, RUN_VARIABLE: bash_path(str(folder / _RUN))},
                **guarded_start(),
            )
            limits = JobLimits(options.max_memory_bytes, options.max_processes)
            guard.watch(process.pid, is_command=True, limits=limits)
    except BaseException:
        for descriptor in {output, errors} - {-1}:
            os.close(descriptor)
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        for descriptor in {output_write, errors_write}:
            os.close(descriptor)
    return RunningCommand(
        process,
        ProcessTree(leader=process.pid, marker=f"{MARKER_VARIABLE}={marker}".encode(), jobs=guard.jobs),
        ThreadedPipes(output=output, errors=errors, streams=streams, folder=folder),
        OutputCapture(create_file),
        guard,
        started_s=started_s,
    )


class ThreadedPipes(CommandPipes):
    """Threads read what the event loop cannot watch; where the script stood at its end is in a file."""

    def __init__(self, *, output: int, errors: int, streams: SeparateStreams | None, folder: Path) -> None:
        super().__init__(output=output, report=-1, errors=errors, streams=streams)
        self._folder = folder
        self._readers: dict[int, ThreadReader] = {}
        self._ended_in: str | None = None

    def listen(self, printed: Callable[[bytes], None], bash_ended: Callable[[], None]) -> None:
        def take_output(data: bytes) -> None:
            if self._streams is not None:
                self._streams.stdout.add(data)
            printed(data)

        def take_errors(data: bytes) -> None:
            if self._streams is not None:
                self._streams.stderr.add(data)
            printed(data)

        for descriptor, take in ((self._output, take_output), (self._errors, take_errors)):
            if descriptor >= 0:
                self._open.add(descriptor)
                self._readers[descriptor] = ThreadReader(descriptor, _Pieces(self, descriptor, take), self._loop)

    def close(self, descriptor: int) -> None:
        if descriptor in self._open:
            self._open.remove(descriptor)
            self._readers[descriptor].close()

    def close_all(self) -> None:
        self._ended_in = self.directory
        super().close_all()
        shutil.rmtree(self._folder, ignore_errors=True)

    def read_what_is_there(self) -> None:
        """It comes by itself, within the time that a command's output is waited for."""

    @property
    def has_reporters(self) -> bool:
        """The job knows."""
        return True

    @property
    def directory(self) -> str | None:
        try:
            with (self._folder / _REPORT).open("rb") as file:
                text = file.read(_MAX_REPORT_BYTES).decode("utf-8", "replace").removesuffix("\n")
        except OSError:
            return self._ended_in
        return os.path.normpath(text) if os.path.isabs(text) else None  # noqa: PTH117  # bash's text


class _Pieces(asyncio.Protocol):
    """What one of a command's pipes brings."""

    def __init__(self, pipes: ThreadedPipes, descriptor: int, take: Callable[[bytes], None]) -> None:
        self._pipes = pipes
        self._descriptor = descriptor
        self._take = take

    def data_received(self, data: bytes) -> None:
        self._take(data)
        self._pipes.activity.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._pipes.close(self._descriptor)
        self._pipes.activity.set()
