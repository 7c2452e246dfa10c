"""What makes a Python process a Mac: `enter`, before anything else is imported. `macos.py` says what that means.

It is copied into the Python that `macos.py` makes, and is imported at each of its starts: it imports next to nothing.
"""

from __future__ import annotations

import _signal  # pyright: ignore[reportMissingImports]  # the part of `signal` that asks the system
import _socket
import builtins
import errno
import fcntl
import importlib
import io
import os
import posix
import resource
import select
import sys
import time
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

_GONE: dict[ModuleType, str] = {
    os: """
        O_PATH O_TMPFILE O_DIRECT O_LARGEFILE O_NOATIME O_RSYNC RTLD_DEEPBIND P_PIDFD pidfd_open memfd_create eventfd
        eventfd_read eventfd_write copy_file_range splice pipe2 listxattr getxattr setxattr removexattr posix_fallocate
        posix_fadvise fdatasync sched_getaffinity sched_setaffinity sched_getscheduler sched_setscheduler sched_getparam
        sched_setparam sched_rr_get_interval sched_param getrandom getresuid getresgid setresuid setresgid waitid
        waitid_result unshare setns timerfd_create
        """,
    _signal: "sigtimedwait sigwaitinfo pidfd_send_signal SIGRTMIN SIGRTMAX SIGPWR SIGSTKFLT SIGPOLL",
    _socket: """
        SO_PEERCRED SO_PASSCRED SO_BINDTODEVICE SO_MARK SO_DOMAIN SO_PROTOCOL SOCK_NONBLOCK SOCK_CLOEXEC AF_NETLINK
        AF_VSOCK AF_ALG MSG_NOSIGNAL TCP_KEEPIDLE TCP_USER_TIMEOUT TCP_QUICKACK SCM_CREDENTIALS
        """,
    select: "epoll",
    time: "CLOCK_BOOTTIME CLOCK_TAI pthread_getcpuclockid",
    resource: """
        prlimit RLIMIT_NICE RLIMIT_MSGQUEUE RLIMIT_RTPRIO RLIMIT_RTTIME RLIMIT_SIGPENDING RUSAGE_THREAD
        """,
    fcntl: "F_ADD_SEALS F_GET_SEALS F_SETPIPE_SZ F_GETPIPE_SZ F_NOTIFY F_OFD_SETLK F_SETLEASE",
}
"""Those that a Python on a Mac does not have. Not every constant of Linux is here: those that somebody may ask for."""

_GONE_WITH: dict[ModuleType, tuple[str, ...]] = {
    os: ("MFD_", "EFD_", "XATTR_", "POSIX_FADV_", "GRND_", "SCHED_"),
    select: ("EPOLL",),
    fcntl: ("F_SEAL_", "DN_"),
}
"""And all whose names begin so."""

BELIEVERS = ("platformdirs",)
"""Libraries that are to take this for a Mac: they do as the system's name says and call nothing that is not here."""

F_GETPATH = 50
caller = sys._getframe  # pyright: ignore[reportPrivateUsage]  # there is no other way to ask
_LIBRARY = os.path.dirname(os.__file__) + "/"  # noqa: PTH120  # this is on every start


def enter() -> None:
    """From now on this process is a Mac."""
    for module, names in _GONE.items():
        begins = _GONE_WITH.get(module, ())
        for name in (*names.split(), *(name for name in dir(module) if name.startswith(begins))):
            for place in (os, posix) if module is os else (module,):
                if hasattr(place, name):
                    delattr(place, name)
    public: list[str] = vars(os)["__all__"]
    public[:] = [name for name in public if hasattr(os, name)]
    _change_names()
    _hide_proc()
    _change_calls()


def is_ours(frame: FrameType | None) -> bool:
    """Code of goat-mcp, of its tests or of a user: not the standard library's, and of no other package."""
    if frame is None:
        return False
    file = frame.f_code.co_filename
    if "/site-packages/" in file:
        return file.partition("/site-packages/")[2].startswith(BELIEVERS)
    return not file.startswith((_LIBRARY, "<frozen "))


def is_asked_by_us() -> bool:
    """The nearest caller that is not the standard library is ours."""
    frame: FrameType | None = caller(2)
    while frame is not None and frame.f_code.co_filename.startswith((_LIBRARY, "<frozen ")):
        frame = frame.f_back
    return is_ours(frame)


class _Sys(ModuleType):
    @property
    def platform(self) -> str:
        return "darwin" if is_ours(caller(1)) else "linux"


def _change_names() -> None:
    importlib._bootstrap._new_module = ModuleType  # pyright: ignore  # it asks `sys` what a module is
    sys.__class__ = _Sys  # pyright: ignore[reportAttributeAccessIssue]  # a module may become one of a class of its own
    linux = os.uname

    def uname() -> os.uname_result:
        own = linux()
        if not is_asked_by_us():
            return own
        machine = {"aarch64": "arm64"}.get(own.machine, own.machine)
        return os.uname_result(("Darwin", own.nodename, "24.1.0", "Darwin Kernel Version 24.1.0", machine))

    os.uname = uname


def _hide_proc() -> None:
    """All that takes a path. A wrapped call is as good for `dir_fd` and descriptors as the one that it wraps."""
    for name in ("open", "stat", "lstat", "access", "listdir", "scandir", "readlink", "chdir", "statvfs"):
        inner = getattr(os, name)
        outer = _without_proc(inner)
        setattr(os, name, outer)
        for able in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
            if inner in able:
                able.add(outer)
    builtins.open = io.open = _without_proc(io.open)


def _without_proc(inner: Callable[..., Any]) -> Callable[..., Any]:
    def outer(path: Any = ".", *words: Any, **options: Any) -> Any:
        if not isinstance(path, int) and _is_proc(path, options.get("dir_fd")) and is_asked_by_us():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return inner(path, *words, **options)

    outer.__name__ = inner.__name__
    return outer


def _is_proc(path: Any, dir_fd: int | None) -> bool:
    text = os.fsdecode(path)
    if dir_fd is not None and text.split("/")[0] == "proc":
        return os.path.samestat(_fstat(dir_fd), _stat("/"))
    return text.startswith("/proc") and text[5:6] in ("", "/")


def _change_calls() -> None:
    inner_fcntl, inner_limit = fcntl.fcntl, resource.setrlimit

    def outer_fcntl(fd: Any, command: int, argument: Any = 0) -> Any:
        if command != F_GETPATH:
            return inner_fcntl(fd, command, argument)  # pyright: ignore[reportUnknownVariableType]
        number: int = fd if isinstance(fd, int) else fd.fileno()
        return os.fsencode(_path_of(number)).ljust(len(argument), b"\0")

    def outer_limit(kind: int, limits: tuple[int, int]) -> None:
        if kind == resource.RLIMIT_AS:
            raise ValueError("current limit exceeds maximum limit")
        inner_limit(kind, limits)

    fcntl.F_GETPATH, fcntl.F_FULLFSYNC = F_GETPATH, 51  # pyright: ignore[reportAttributeAccessIssue]  # Linux has none
    fcntl.fcntl, resource.setrlimit = outer_fcntl, outer_limit


_readlink, _fstat, _stat = os.readlink, os.fstat, os.stat


def _path_of(fd: int) -> str:
    """Where an open file is now. It has gone: ENOENT, as on a Mac."""
    path = _readlink(f"/proc/self/fd/{fd}")
    if not _fstat(fd).st_nlink or not path.startswith("/"):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return path
