"""`python -m goat_mcp.cli.resident.linux_fork_server FOLDER NAME`: the resident process of one build.

Accepts launchers and forks for each. What a launcher sends is read in the fork only: nothing of one session is ever
in the memory of another.
"""

from __future__ import annotations

import fcntl
import gc
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import goat_mcp_launch
from goat_mcp.cli.resident.preloading import preload
from goat_mcp.cli.serve import become_undumpable
from goat_mcp.core import posix

if sys.platform != "linux":
    raise ImportError("only Linux has a resident process")

from goat_mcp.cli.resident.linux_session_start import Host, HostDiffers, become, join_host, read_request

IDLE_S = 600.0
"""Without a session for so long, it ends."""
LOOK_S = 30.0
"""How often it looks whether its files have changed."""
END_WITHIN_S = 5.0
"""A server whose launcher is gone gets so long to end by itself."""
GO_WITHIN_S = 2.0
_NO_SESSION = 75
"""The exit status of a fork that has refused its launcher: another resident process might not refuse it."""
_BACKLOG = 512
_SIZE = 8


@dataclass
class _Session:
    pid: int
    connection: socket.socket
    kill_at_s: float | None = None
    """Set once its launcher is gone; then nobody waits at the connection."""


@dataclass
class ForkServer:
    """Owns the socket `NAME.sock` while it holds the lock. Single-threaded: it forks."""

    folder: str
    name: str
    lock: int
    idle_s: float = IDLE_S
    look_s: float = LOOK_S
    _sessions: dict[int, _Session] = field(default_factory=dict[int, _Session])
    _address: tuple[int, int] = (0, 0)
    """Device and inode of our socket: whoever removes the folder lets another process have the same path."""

    def serve(self) -> Callable[[], None] | None:
        """Returns None when it is to end, and in a fork what the fork is to run."""
        become_undumpable()
        wake, wakes = os.pipe()
        for end in (wake, wakes):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, _wake_up)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        listener: socket.socket | None = self._listen()
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        poll.register(wake, select.POLLIN)
        used_s = looked_s = time.monotonic()
        while listener is not None or self._sessions:
            ready = dict(poll.poll(self._wait_ms()))
            now_s = time.monotonic()
            signals = os.read(wake, 4096) if wake in ready else b""
            is_over = signal.SIGTERM in signals
            if listener is not None and listener.fileno() in ready:
                try:
                    session = self._accept(listener, poll, (wake, wakes))
                except (BlockingIOError, ConnectionAbortedError):
                    session = None  # who asked is gone already
                except OSError:  # too many open files, most likely: the next launcher starts another
                    session, is_over = None, True
                if session is not None:
                    return session
            if self._report_ends(poll):
                used_s = now_s
            self._end_orphans(ready, poll, now_s)
            if listener is not None and now_s - looked_s >= self.look_s:
                looked_s = now_s
                is_over = is_over or self._is_outdated()
            is_over = is_over or (not self._sessions and now_s - used_s >= self.idle_s)
            if listener is not None and is_over:
                poll.unregister(listener)
                self._close(listener)
                listener = None
        return None

    def _listen(self) -> socket.socket:
        """Whoever holds the lock may remove what an earlier one has left."""
        folder = os.open(self.folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with suppress(FileNotFoundError):
                os.unlink(f"{self.name}.sock", dir_fd=folder)
            listener = socket.socket(socket.AF_UNIX)
            # Bound under another name first: a launcher must not find one that does not listen yet.
            listener.bind(f"/proc/self/fd/{folder}/{self.name}.new")
            listener.listen(_BACKLOG)
            listener.setblocking(False)
            self._address = _identity(os.stat(f"{self.name}.new", dir_fd=folder))
            os.rename(f"{self.name}.new", f"{self.name}.sock", src_dir_fd=folder, dst_dir_fd=folder)
            os.truncate(self.lock, 0)  # it came up
        finally:
            os.close(folder)
        _remove_leftovers(self.folder)
        return listener

    def _is_outdated(self) -> bool:
        try:
            return goat_mcp_launch.build_name() != self.name or not self._is_ours()
        except OSError:  # the package is just being replaced, or gone
            return True

    def _is_ours(self) -> bool:
        """Whether launchers still find it: somebody may have removed the folder, and another process made it again."""
        try:
            return _identity(os.stat(f"{self.folder}/{self.name}.sock")) == self._address
        except OSError:
            return False

    def _close(self, listener: socket.socket) -> None:
        """No launcher finds it any more; the next one may start another. Sessions go on."""
        if self._is_ours():
            for kind in ("sock", "lock"):
                with suppress(OSError):
                    os.unlink(f"{self.folder}/{self.name}.{kind}")
        listener.close()
        os.close(self.lock)

    def _wait_ms(self) -> float:
        kills = [one.kill_at_s for one in self._sessions.values() if one.kill_at_s is not None]
        wait_s = min([self.look_s, self.idle_s, *(max(0.0, at_s - time.monotonic()) for at_s in kills)])
        return wait_s * 1000 + 1

    def _accept(self, listener: socket.socket, poll: select.poll, pipes: tuple[int, int]) -> Callable[[], None] | None:
        threads = len(os.listdir("/proc/self/task"))
        connection, _ = listener.accept()
        connection.setblocking(True)
        if goat_mcp_launch.peer_of(connection)[1] != posix.geteuid():
            connection.close()
            return None
        if threads != 1:  # a fork has this thread only, and perhaps a lock of another
            _refuse(connection, "the resident process has threads")
            return None
        try:
            pid = os.fork()
        except OSError as problem:
            _refuse(connection, f"no process could be forked: {problem.strerror}")
            return None
        if pid:
            self._sessions[pid] = _Session(pid, connection)
            poll.register(connection, select.POLLRDHUP)
            return None
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        listener.close()
        for descriptor in (*pipes, self.lock):
            os.close(descriptor)
        for session in self._sessions.values():
            session.connection.close()
        self._sessions.clear()
        return _started(connection)

    def _report_ends(self, poll: select.poll) -> bool:
        """Whether one has ended that was a session."""
        has_served = False
        while self._sessions:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            session = self._sessions.pop(pid, None)
            if session is None:
                continue
            if session.kill_at_s is None:
                poll.unregister(session.connection)
            code = os.waitstatus_to_exitcode(status)
            with suppress(OSError):
                session.connection.sendall(b"x" + code.to_bytes(4, "big", signed=True), socket.MSG_DONTWAIT)
            session.connection.close()
            has_served = has_served or code != _NO_SESSION
        return has_served

    def _end_orphans(self, ready: dict[int, int], poll: select.poll, now_s: float) -> None:
        """A server ends by itself when its launcher is gone. One that hangs must not stay."""
        for session in self._sessions.values():
            if session.kill_at_s is None and session.connection.fileno() in ready:
                session.kill_at_s = now_s + END_WITHIN_S
                poll.unregister(session.connection)  # its end would be reported again and again
            elif session.kill_at_s is not None and now_s >= session.kill_at_s:
                # Not reaped yet: the number is still that of the fork.
                os.kill(session.pid, signal.SIGKILL)
                session.kill_at_s = now_s + END_WITHIN_S


def _started(connection: socket.socket) -> Callable[[], None]:
    """In a fork: what the launcher wants to run, as soon as it says go. Without our `s` it serves by itself."""
    os.setsid()
    connection.settimeout(GO_WITHIN_S)
    try:
        host = Host.of(connection)
        signals = join_host(host)
        request = read_request(connection)  # from here on there are secrets in our memory
        connection.sendall(b"+" + os.getpid().to_bytes(4, "big"))
        become(request, signals, connection)  # while the launcher reads that
        if connection.recv(1) != b"g":
            os._exit(_NO_SESSION)
        connection.sendall(b"s")
    except HostDiffers as why:
        _refuse(connection, str(why))
        os._exit(_NO_SESSION)
    except Exception as problem:
        _refuse(connection, f"the resident process failed: {problem!r}")
        os._exit(_NO_SESSION)
    connection.settimeout(None)
    connection.detach()
    return _run


def _run() -> None:
    from goat_mcp.cli.main import main

    main()


def _refuse(connection: socket.socket, why: str) -> None:
    line = " ".join(why.split())
    with suppress(OSError):
        connection.sendall(b"-" + line.encode("utf-8", "replace") + b"\n")
    connection.close()


def _remove_leftovers(folder: str) -> None:
    """What those of other builds have left that were killed. Whoever holds a lock may remove it."""
    for path in Path(folder).glob("*.lock"):
        with suppress(OSError), path.open("rb+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found = os.fstat(lock.fileno())
            is_recent = time.time() - found.st_mtime < goat_mcp_launch.START_AGAIN_S
            if not is_recent and os.path.samestat(found, path.lstat()):
                path.with_suffix(".sock").unlink(missing_ok=True)
                path.unlink()


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _wake_up(number: int, frame: object) -> None:
    """The loop reads the number from the wake-up descriptor."""


def _forget_host_signals() -> None:
    """What the first host blocked or ignored is nothing to the others."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:  # Python ignores these two
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def main(folder: str, name: str, *, idle_s: float = IDLE_S, look_s: float = LOOK_S) -> None:
    """Serve until there is no need any more; in each fork, be a `goat-mcp` of its own. Descriptor 3 holds the lock."""
    os.set_inheritable(3, False)
    _forget_host_signals()
    sys.path[0] = os.path.dirname(sys.executable)  # as for the console script, not the current folder
    gc.disable()
    _kept = preload()  # as long as this process and its forks run
    if goat_mcp_launch.build_name() != name:
        return  # the files changed while they were read
    gc.freeze()
    session = ForkServer(folder, name, lock=3, idle_s=idle_s, look_s=look_s).serve()
    if session is not None:
        session()


if __name__ == "__main__":
    main(*sys.argv[1:])
