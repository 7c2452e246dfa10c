"""The folder of the user's own sockets: who may use it, who owns a name in it, and how paths that are too long work.

`flock` decides who owns a name. A socket is removed by the owner of its lock only.
"""

from __future__ import annotations

import errno
import hashlib
import os
import select
import socket
import struct
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import goat_mcp_launch
from goat_mcp.core import platform, posix
from goat_mcp.processes.linux_confinement import why_confined
from goat_mcp.state.file_lock import try_lock

IS_SUPPORTED = platform.HAS_PROC
"""Whether a socket tells who is at its other end, and any path of one can be used."""
_AF_UNIX: int = getattr(socket, "AF_UNIX", 0)
_SO_PEERCRED = getattr(socket, "SO_PEERCRED", 0)


def runtime_folder() -> Path:
    """Where sockets of this user are, as for the resident process. Raises `OSError` if others can use it."""
    try:
        return Path(goat_mcp_launch.runtime_folder())
    except goat_mcp_launch.NotResident as why:
        raise PermissionError(errno.EPERM, str(why)) from None


@contextmanager
def _address(folder: Path, name: str) -> Generator[str]:
    """A path for the socket that is never too long: through a descriptor of its folder."""
    descriptor = os.open(folder, os.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def connected(folder: Path, name: str) -> socket.socket:
    """A connection to the socket's owner, who is this user. Does not block. Raises `OSError`."""
    one = socket.socket(_AF_UNIX, socket.SOCK_STREAM)
    try:
        one.setblocking(False)
        with _address(folder, name) as address:
            one.connect(address)
        pid, user = peer_of(one)
        if user != posix.geteuid() or not is_confined_as_we_are(pid):
            raise PermissionError(errno.EPERM, "another user or a sandbox listens there", name)
    except BaseException:
        one.close()
        raise
    return one


def peer_of(one: socket.socket) -> tuple[int, int]:
    """The process and the user at the other end."""
    pid, uid, _ = struct.unpack("3i", one.getsockopt(socket.SOL_SOCKET, _SO_PEERCRED, struct.calcsize("3i")))
    return pid, uid


def has_hung_up(descriptor: int) -> bool:
    """Whether nobody is at the other end any more, also if there is something left to read."""
    poll = getattr(select, "poll")()  # noqa: B009  # Windows' does not have it
    poll.register(descriptor, 0)
    return bool(poll.poll(0))


def is_confined_as_we_are(pid: int) -> bool:
    """Whether a process may do as much as this one. What runs in a sandbox must not have others start programs outside
    of it, nor get what is meant for them. False for one that cannot be seen."""
    try:
        return not why_confined(f"/proc/{pid}")
    except OSError:
        return False


class OwnedSocket:
    """A listening socket whose name is ours as long as we hold the lock beside it."""

    def __init__(self, folder: Path, name: str, lock: int, listening: socket.socket) -> None:
        self.listening = listening
        self._folder = folder
        self._name = name
        self._lock = lock
        self._socket = (folder / name).lstat()
        self.is_held = True

    def is_found(self) -> bool:
        """Whether who comes finds us: somebody may have removed the folder, and another process made it again."""
        return self.is_held and _is_at(self._folder / self._name, self._socket)

    def release(self) -> None:
        """Nobody finds us from now on. Those who are connected stay so."""
        if not self.is_held:
            return
        self.is_held = False
        for name, ours in ((self._name, self._socket), (f"{self._name}.lock", os.fstat(self._lock))):
            if _is_at(self._folder / name, ours):
                with suppress(OSError):
                    (self._folder / name).unlink()
        self.listening.close()
        os.close(self._lock)


def owned_socket(folder: Path, name: str, *, backlog: int = 128) -> OwnedSocket | None:
    """Listen at this name; None if somebody else does. Raises `OSError`."""
    path = folder / f"{name}.lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT | posix.O_CLOEXEC | posix.O_NOFOLLOW, 0o600)
    listening = socket.socket(_AF_UNIX, socket.SOCK_STREAM)
    try:
        # Whoever had it may have removed it meanwhile: the lock that counts is another file then.
        if not try_lock(lock) or not _is_at(path, os.fstat(lock)):
            raise BlockingIOError(errno.EAGAIN, "somebody else holds the lock", str(path))
        with suppress(FileNotFoundError):
            (folder / name).unlink()
        with _address(folder, name) as address:
            listening.bind(address)
        (folder / name).chmod(0o600)
        listening.listen(backlog)
        listening.setblocking(False)
    except BlockingIOError:
        listening.close()
        os.close(lock)
        return None
    except BaseException:
        listening.close()
        os.close(lock)
        raise
    return OwnedSocket(folder, name, lock, listening)


def _is_at(path: Path, ours: os.stat_result) -> bool:
    try:
        return os.path.samestat(ours, path.lstat())
    except OSError:
        return False


@cache
def build_id() -> str:
    """Changes with any file of the package, with its place and with Python: the processes of two builds never mix."""
    facts = [sys.version, sys.executable, *sorted(goat_mcp_launch.files_seen(str(Path(__file__).parents[2])))]
    return hashlib.sha256("\n".join(facts).encode("utf-8", "surrogateescape")).hexdigest()[:32]
