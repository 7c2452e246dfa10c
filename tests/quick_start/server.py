"""The process that has imported everything and forks for each launcher: python -m tests.quick_start.server SOCKET."""

from __future__ import annotations

import ast
import atexit
import gc
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from goat_mcp.cli.resident.preloading import preload
from goat_mcp.gateway.build import manifests
from tests.quick_start import login_path

_MODULES_OF_TEST_SERVERS = ("mcp.server.lowlevel", "mcp.server.stdio", "mcp.server.mcpserver", "uvicorn")
_NOT_IMPORTED = ("goat_mcp.__main__",)


@dataclass(frozen=True)
class Request:
    """What a launcher wants to run, and its standard streams and folder as descriptors."""

    words: list[str]
    environment: dict[str, str]
    umask: int
    descriptors: list[int]


def main(address: str) -> None:
    gc.disable()
    _import_everything()
    # Forks find done what each of them would do first. What is returned stays, as in the resident process.
    kept = preload()
    manifests.shipped = cache(manifests.shipped)
    manifests.shipped()
    login_path.ask_once(ahead=True)
    gc.collect()
    gc.freeze()
    gc.enable()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        print("ready", flush=True)
        run = _Forks(listener).serve()
    run()
    del kept


def _import_everything() -> None:
    import goat_mcp

    names = [module.name for module in pkgutil.walk_packages(goat_mcp.__path__, "goat_mcp.", onerror=lambda _: None)]
    for name in (*names, *_MODULES_OF_TEST_SERVERS):
        if name not in _NOT_IMPORTED:
            try:
                __import__(name)
            except ImportError:
                continue  # of another system, or of an extra that is not installed


class _Forks:
    """Forks for each request, relays signals, and reports how each fork ended.

    If a launcher goes away, its fork is killed: a killed launcher is a killed process.
    """

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._connections: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()

    def serve(self) -> Callable[[], None]:
        """Ends in the server by exiting, and in each fork by returning what that is to run."""
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write)
        signal.signal(signal.SIGCHLD, _wake)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(wake_read, selectors.EVENT_READ)
        self._selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._listener:
                    if (run := self._fork()) is not None:
                        return run
                elif key.fileobj == wake_read:
                    os.read(wake_read, 512)
                    self._report_ends()
                elif key.fileobj == sys.stdin.fileno():
                    self._end()
                else:
                    self._relay(key.data)

    def _fork(self) -> Callable[[], None] | None:
        connection, _ = self._listener.accept()
        try:
            request = _read_request(connection)
        except (OSError, EOFError):
            connection.close()
            return None
        pid = os.fork()
        if pid == 0:
            return lambda: _become(request)
        for descriptor in request.descriptors:
            os.close(descriptor)
        self._connections[pid] = connection
        self._selector.register(connection, selectors.EVENT_READ, pid)
        return None

    def _relay(self, pid: int) -> None:
        """A signal, or the end of the launcher. The pid is still that of the fork: it is not reaped yet."""
        connection = self._connections.get(pid)
        if connection is None:
            return
        try:
            numbers = connection.recv(16)
        except ConnectionResetError:
            numbers = b""
        for number in numbers or bytes([signal.SIGKILL]):
            os.kill(pid, number)
        if not numbers:
            self._selector.unregister(connection)

    def _report_ends(self) -> None:
        while self._connections:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            connection = self._connections.pop(pid)
            if connection in self._selector.get_map():
                self._selector.unregister(connection)
            with connection:
                try:
                    connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
                except OSError:
                    continue  # its launcher was killed

    def _end(self) -> None:
        for pid in self._connections:
            os.kill(pid, signal.SIGKILL)
        os._exit(0)


def _wake(number: int, frame: object) -> None:
    """A signal that has a handler writes to the wake-up descriptor."""


def _read_request(connection: socket.socket) -> Request:
    head, descriptors, _, _ = socket.recv_fds(connection, 8, 4)
    length = int.from_bytes(head, "big")
    body = bytearray()
    while len(body) < length:
        part = connection.recv(length - len(body))
        if not part:
            raise EOFError
        body += part
    words, environment, umask = ast.literal_eval(body.decode("utf-8", "surrogateescape"))
    return Request(words, environment, umask, descriptors)


def _become(request: Request) -> None:
    """Be the process that the launcher stands for, to its end."""
    *streams, folder = request.descriptors
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setpgid(0, 0)
    os.fchdir(folder)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for descriptor in request.descriptors:
        os.close(descriptor)
    os.umask(request.umask)
    os.environ.clear()
    os.environ.update(request.environment)
    _open_streams()
    sys.orig_argv[:] = [sys.executable, *request.words]
    code = 1
    try:
        _run(request.words)
        code = 0
    except SystemExit as end:
        code = _exit_code(end)
    except BaseException:
        traceback.print_exc()
    threading._shutdown()  # pyright: ignore  # waits for the threads that are no daemons
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]  # as at the end of every Python
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue  # nobody reads it, or it is closed
    os._exit(code)


def _open_streams() -> None:
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  # for good
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)  # noqa: SIM115


def _run(words: list[str]) -> None:
    if words[0] == "-m":
        sys.path[0] = str(Path.cwd())
        sys.argv[:] = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(words[0]).parent)
        sys.argv[:] = words
        runpy.run_path(words[0], run_name="__main__")


def _exit_code(end: SystemExit) -> int:
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code & 0xFF
    print(end.code, file=sys.stderr)
    return 1


if __name__ == "__main__":
    main(sys.argv[1])
