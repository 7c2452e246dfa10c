"""One run of ripgrep: started confined to what it searches, read as a stream, gone afterwards."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from goat_mcp.core import platform, posix
from goat_mcp.files.search.deadline import SearchDeadline
from goat_mcp.files.search.query import Target
from goat_mcp.files.search.ripgrep import DATA_MARK, Command
from goat_mcp.processes.linux_landlock import EXECUTE, READ_DIR, READ_FILE, Landlock
from goat_mcp.processes.windows_job import CREATE_NO_WINDOW

_CHUNK_BYTES = 64 * 1024
_SMALL_CHUNK_BYTES = 16 * 1024
_GATHER_S = 0.003
"""After a small chunk, time for more to gather: to be woken for each write would cost ripgrep a core."""
_PIPE_BYTES = 1024 * 1024
"""Room for ripgrep to go on while we look at what it found."""
_MAX_COMPLAINT_BYTES = 256 * 1024
_PASSED_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "LANG", "LC_ALL", "SYSTEMROOT", "USERPROFILE")


@dataclass
class RipgrepRun:
    """A started ripgrep. `exit_code` and `complaint` (its stderr, cut) are there once all chunks are read."""

    process: subprocess.Popen[bytes]
    errors: IO[bytes]
    exit_code: int | None = None
    complaint: str = ""
    is_complaint_whole: bool = True

    def chunks(self) -> Iterator[bytes]:
        assert self.process.stdout is not None
        fd = self.process.stdout.fileno()
        while chunk := os.read(fd, _CHUNK_BYTES):
            yield chunk
            if len(chunk) < _SMALL_CHUNK_BYTES:
                time.sleep(_GATHER_S)
        self.exit_code = self.process.wait()
        self.errors.seek(0)
        complaint = self.errors.read(_MAX_COMPLAINT_BYTES + 1)
        self.is_complaint_whole = len(complaint) <= _MAX_COMPLAINT_BYTES
        self.complaint = complaint[:_MAX_COMPLAINT_BYTES].decode("utf-8", "replace").strip()


@contextmanager
def running(command: Command, target: Target, deadline: SearchDeadline, landlock: Landlock) -> Generator[RipgrepRun]:
    """Run `command` in the target directory, or with the target file as its standard input.

    Raises `OSError` if the program cannot be started.
    """
    with ExitStack() as stack:
        errors = stack.enter_context(tempfile.TemporaryFile())
        process = stack.enter_context(_started(command, target, _data_file(command.data, stack), errors, landlock))
        stack.enter_context(deadline.watching(process))
        yield RipgrepRun(process, errors)


@contextmanager
def _started(
    command: Command, target: Target, data: _DataFile, errors: IO[bytes], landlock: Landlock
) -> Generator[subprocess.Popen[bytes]]:
    # Opened here: a thread under Landlock could not open even /dev/null.
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        arguments = [one.replace(DATA_MARK, data.path) if isinstance(one, str) else one for one in command.arguments]

        def start() -> subprocess.Popen[bytes]:
            if isinstance(target.opened, int):
                os.lseek(target.opened, 0, os.SEEK_SET)
            return subprocess.Popen(
                [command.program, *arguments],
                stdin=target.opened if isinstance(target.opened, int) else nothing,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=_directory_name(target),
                env={name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ},
                pass_fds=data.descriptors,
                process_group=0 if platform.HAS_PROCESS_GROUPS else None,
                creationflags=CREATE_NO_WINDOW if platform.SYSTEM == "windows" else 0,  # else one opens for each search
                bufsize=0,
                pipesize=_PIPE_BYTES,
            )

        process = _start_confined(start, command, target, landlock) if landlock.is_available else start()
    finally:
        os.close(nothing)
    with process:
        yield process


def _start_confined(
    start: Callable[[], subprocess.Popen[bytes]], command: Command, target: Target, landlock: Landlock
) -> subprocess.Popen[bytes]:
    """Start from a thread that lives for this only: what it starts inherits its restriction."""
    started: list[subprocess.Popen[bytes]] = []
    problems: list[Exception] = []

    def start_restricted() -> None:
        try:
            landlock.restrict_this_thread(allowed)
            started.append(start())
        except Exception as problem:  # handed to the waiting thread, which raises it
            problems.append(problem)

    with ExitStack() as stack:
        allowed = [(_path_descriptor(command.program, stack), EXECUTE | READ_FILE)]
        if not isinstance(target.opened, int):
            allowed.append((target.opened.fileno(), READ_FILE | READ_DIR))
        for path in command.readable:
            with suppress(OSError):
                allowed.append((_path_descriptor(path, stack), READ_FILE))
        thread = threading.Thread(target=start_restricted, name="search-start")
        thread.start()
        thread.join()
    if problems:
        raise problems[0]
    return started[0]


def _path_descriptor(path: str, stack: ExitStack) -> int:
    fd = os.open(path, posix.O_PATH)
    stack.callback(os.close, fd)
    return fd


class _DataFile(NamedTuple):
    """Where a child can read the data of a command, and the descriptors that it needs for it."""

    path: str = ""
    descriptors: tuple[int, ...] = ()


def _data_file(data: bytes | None, stack: ExitStack) -> _DataFile:
    """In memory if the system has that, since Landlock would refuse a file."""
    if data is None:
        return _DataFile()
    if platform.SYSTEM == "windows":
        with tempfile.NamedTemporaryFile(delete=False) as named:
            stack.callback(Path(named.name).unlink, missing_ok=True)
            named.write(data)
        return _DataFile(named.name)
    if platform.HAS_MEMFD:
        fd = posix.memfd_create("search-data")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    stack.callback(os.close, fd)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return _DataFile(f"/dev/fd/{fd}", (fd,))


def _directory_name(target: Target) -> str | None:
    if isinstance(target.opened, int):
        return None
    # By its descriptor the directory stays the one that was opened, whatever its name leads to now.
    return f"/proc/self/fd/{target.opened.fileno()}" if platform.HAS_PROC else target.real_path
