"""The calls of POSIX and of Linux under one name on every system, so that every module can be imported everywhere.

A constant that a system does not have is 0. A call that it does not have raises `OSError` with ENOSYS. So nothing here
says that something is safe to do without: ask `core/platform.py` for the feature before, and do something else.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

LimitKind = Literal["AS", "CORE", "CPU", "DATA", "FSIZE"]

O_DIRECTORY: int = getattr(os, "O_DIRECTORY", 0)
O_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
O_NONBLOCK: int = getattr(os, "O_NONBLOCK", 0)
O_NOCTTY: int = getattr(os, "O_NOCTTY", 0)
O_PATH: int = getattr(os, "O_PATH", 0)
O_SEARCH: int = getattr(os, "O_SEARCH", 0)
"""macOS: a directory may be entered that may not be listed, as with O_PATH."""
O_CLOEXEC: int = getattr(os, "O_CLOEXEC", 0)
"""`os.open` sets it by itself; only a call to the kernel that goes another way needs it."""
F_GETPATH: int = 50 if sys.platform == "darwin" else 0
O_BINARY: int = getattr(os, "O_BINARY", 0)
"""Windows changes line ends in what is read and written without it."""

SIGKILL: signal.Signals = getattr(signal, "SIGKILL", signal.SIGTERM)
"""Windows ends a process at once on SIGTERM, too."""
SIGCONT: signal.Signals = getattr(signal, "SIGCONT", signal.SIGTERM)
SIGPROF: signal.Signals = getattr(signal, "SIGPROF", signal.SIGTERM)
SIGXCPU: signal.Signals = getattr(signal, "SIGXCPU", signal.SIGTERM)
SIG_BLOCK: int = getattr(signal, "SIG_BLOCK", 0)
SIG_UNBLOCK: int = getattr(signal, "SIG_UNBLOCK", 0)


@dataclass(frozen=True)
class UserRecord:
    """Who a user is. `shell` is what starts when he logs in."""

    name: str = ""
    home: str = ""
    shell: str = ""


def _missing(name: str) -> OSError:
    return OSError(errno.ENOSYS, f"this system has no {name}")


if sys.platform != "win32":
    from fcntl import fcntl as fcntl
    from os import chown as chown
    from os import fchmod as fchmod
    from os import fchown as fchown
    from os import geteuid as geteuid
    from os import getpgid as getpgid
    from os import getpgrp as getpgrp
    from os import getsid as getsid
    from os import getuid as getuid
    from os import killpg as killpg
    from os import pread as pread
    from os import pwrite as pwrite
    from os import register_at_fork as register_at_fork
    from os import set_blocking as set_blocking
    from os import sysconf as sysconf

    def machine() -> str:
        """The processor's architecture, in the kernel's words: `x86_64`."""
        return os.uname().machine

    def set_cpu_timer(seconds: float) -> None:
        """`SIGPROF` comes after so much time of the processor, once. 0 stops the timer."""
        signal.setitimer(signal.ITIMER_PROF, seconds)

    def user_name() -> str:
        """The name of the user that runs this process. KeyError if it has none."""
        import pwd  # only asked for files that a group may write

        return pwd.getpwuid(os.geteuid()).pw_name

    def group_members(gid: int) -> tuple[str, list[str]]:
        """The name of a group, and who is listed in it. KeyError if there is none."""
        import grp

        found = grp.getgrgid(gid)
        return found.gr_name, found.gr_mem

    def set_signal_mask(how: int, signals: Iterable[signal.Signals]) -> None:
        """Block or unblock signals for this thread: `SIG_BLOCK`, `SIG_UNBLOCK`."""
        signal.pthread_sigmask(how, signals)

    def pending_signals() -> set[int]:
        """Signals that came while they were blocked."""
        return set(signal.sigpending())

    def most_open_files() -> int | None:
        """How many descriptors this process may have; None if there is no limit."""
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return None if soft == resource.RLIM_INFINITY else soft

    def user_record() -> UserRecord:
        """This process's user in the system's list of users; all is empty if it does not have him."""
        import pwd

        with suppress(KeyError):
            found = pwd.getpwuid(os.getuid())
            return UserRecord(found.pw_name, found.pw_dir, found.pw_shell)
        return UserRecord()

    def limit_resource(kind: LimitKind, most: int) -> None:
        """From now on this process gets no more, `CPU` in seconds, the others in bytes. A lower limit stays in force.

        It does nothing if the system does not have this limit, or does not keep it: see `HAS_MEMORY_LIMITS`.
        """
        import resource

        number: int | None = getattr(resource, f"RLIMIT_{kind}", None)
        if number is None:
            return
        with suppress(ValueError, OSError):
            _, hard = resource.getrlimit(number)
            allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(number, (allowed, allowed))

    def duplicate_above(fd: int, lowest: int) -> int:
        """The same open file under another number, which is `lowest` or above it."""
        import fcntl

        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, lowest)

else:

    def fcntl(fd: int, command: int, argument: bytes, /) -> bytes:
        raise _missing("fcntl")

    def chown(path: str | os.PathLike[str], uid: int, gid: int) -> None:
        raise _missing("chown")

    def fchmod(fd: int, mode: int) -> None:
        raise _missing("fchmod")

    def fchown(fd: int, uid: int, gid: int) -> None:
        raise _missing("fchown")

    def geteuid() -> int:
        raise _missing("geteuid")

    def getpgid(pid: int, /) -> int:
        raise _missing("getpgid")

    def getpgrp() -> int:
        raise _missing("getpgrp")

    def getsid(pid: int, /) -> int:
        raise _missing("getsid")

    def getuid() -> int:
        raise _missing("getuid")

    def killpg(pgid: int, number: int, /) -> None:
        raise _missing("killpg")

    def pread(fd: int, length: int, offset: int, /) -> bytes:
        """Not one step here: nobody else may use the descriptor meanwhile."""
        before = os.lseek(fd, 0, os.SEEK_CUR)
        os.lseek(fd, offset, os.SEEK_SET)
        try:
            return os.read(fd, length)
        finally:
            os.lseek(fd, before, os.SEEK_SET)

    def pwrite(fd: int, data: bytes, offset: int, /) -> int:
        raise _missing("pwrite")

    def register_at_fork(*, after_in_child: Callable[[], object]) -> None:
        """Nothing to do: this system has no fork."""

    def set_blocking(fd: int, blocking: bool, /) -> None:
        raise _missing("set_blocking")

    def sysconf(name: str, /) -> int:
        raise _missing("sysconf")

    def machine() -> str:
        return os.environ.get("PROCESSOR_ARCHITECTURE", "")

    def user_name() -> str:
        raise _missing("getpwuid")

    def group_members(gid: int) -> tuple[str, list[str]]:
        raise _missing("getgrgid")

    def set_cpu_timer(seconds: float) -> None:
        raise _missing("setitimer")

    def set_signal_mask(how: int, signals: Iterable[signal.Signals]) -> None:
        raise _missing("pthread_sigmask")

    def pending_signals() -> set[int]:
        return set()

    def user_record() -> UserRecord:
        return UserRecord()

    def limit_resource(kind: LimitKind, most: int) -> None:
        """Nothing to do: what bounds a process here is its job object."""

    def most_open_files() -> int | None:
        return None

    def duplicate_above(fd: int, lowest: int) -> int:
        """The same open file under another number, which is `lowest` or above it."""
        below: list[int] = []
        try:
            while (copy := os.dup(fd)) < lowest:
                below.append(copy)
            return copy
        finally:
            for one in below:
                os.close(one)


if sys.platform == "darwin":
    _CS_DARWIN_USER_TEMP_DIR = 65537  # <unistd.h>; Python has no name for it

    def users_temporary_folder() -> str:
        """The one of this user alone, as `getconf DARWIN_USER_TEMP_DIR` says; empty if all users share one."""
        with suppress(ValueError, OSError):
            return os.confstr(_CS_DARWIN_USER_TEMP_DIR) or ""
        return ""

else:

    def users_temporary_folder() -> str:
        return ""


if sys.platform == "linux":

    def since_boot_s() -> float:
        """How long the system runs, with the time that it slept."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

elif sys.platform == "darwin":

    def since_boot_s() -> float:
        return time.clock_gettime(time.CLOCK_MONOTONIC_RAW)

else:

    def since_boot_s() -> float:
        return time.monotonic()


if sys.platform == "linux":
    from os import getxattr as getxattr
    from os import listxattr as listxattr
    from os import memfd_create as memfd_create
    from os import pidfd_open as pidfd_open
    from os import posix_fallocate as posix_fallocate
    from os import removexattr as removexattr
    from os import setxattr as setxattr
    from signal import pidfd_send_signal as pidfd_send_signal

    def seconds_since_boot() -> float:
        """Also those in which the machine slept."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def wait_for_signal(number: signal.Signals, timeout_s: float) -> int | None:
        """Wait for a signal that is blocked; None if none came, else who sent it: 0 if the kernel did."""
        info = signal.sigtimedwait({number}, timeout_s)
        # Interrupted (SIGSTOP and SIGCONT, a debugger), CPython 3.11 may give memory that nobody filled in.
        return info.si_pid if info is not None and info.si_signo == number else None

else:

    def seconds_since_boot() -> float:
        raise _missing("CLOCK_BOOTTIME")

    def wait_for_signal(number: signal.Signals, timeout_s: float) -> int | None:
        raise _missing("sigtimedwait")

    def getxattr(path: int | str, attribute: str) -> bytes:
        raise _missing("getxattr")

    def listxattr(path: int | str) -> list[str]:
        raise _missing("listxattr")

    def memfd_create(name: str, flags: int = 0) -> int:
        raise _missing("memfd_create")

    def pidfd_open(pid: int, flags: int = 0) -> int:
        raise _missing("pidfd_open")

    def posix_fallocate(fd: int, offset: int, length: int, /) -> None:
        raise _missing("posix_fallocate")

    def removexattr(path: int | str, attribute: str) -> None:
        raise _missing("removexattr")

    def setxattr(path: int | str, attribute: str, value: bytes) -> None:
        raise _missing("setxattr")

    def pidfd_send_signal(pidfd: int, number: int, /) -> None:
        raise _missing("pidfd_send_signal")
