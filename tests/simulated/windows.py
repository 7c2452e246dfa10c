"""Imports every module of goat-mcp as Windows would have it: python -m tests.simulated.windows

In this process what Windows' Python does not have cannot be imported (`fcntl`, `resource`, `termios`, ...) or is gone
from os, signal, socket, select and time. For goat-mcp `sys.platform` reads `win32`, and `os.name` is `nt`. The modules
of pywin32 and of Windows itself are doubles that have every name. The standard library and other packages are those of
Linux. So this shows that nothing is missing when a module is loaded, and nothing about what it does then:
`make windows-under-wine` runs that. Prints JSON: for each module what went wrong, or nothing.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.abc
import importlib.util
import json
import pkgutil
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

from tests.simulated.mac_process import caller, is_ours

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "manifests"

NO_MODULES = (
    "fcntl",
    "resource",
    "termios",
    "tty",
    "pty",
    "grp",
    "pwd",
    "syslog",
    "posix",
    "_posixsubprocess",
    "crypt",
)
WINDOWS_MODULES = (
    "msvcrt",
    "winreg",
    "pywintypes",
    "pythoncom",
    "winerror",
    "ntsecuritycon",
    "_win",
    "win32",
    "_overlapped",
)
"""How their names begin."""
GONE = {
    "os": """
        O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_NOCTTY O_SYNC O_DSYNC O_ASYNC O_PATH O_TMPFILE O_DIRECT
        WNOHANG WUNTRACED WIFEXITED WEXITSTATUS WIFSIGNALED WTERMSIG EX_OK EX_USAGE EX_TEMPFAIL P_PID P_PIDFD
        chown lchown chroot fchdir fchmod fchown fork forkpty getegid geteuid getgid getgroups getpgid getpgrp
        getpriority getresuid getresgid getsid getuid initgroups killpg mkfifo mknod major minor makedev nice openpty
        pathconf fpathconf pidfd_open pipe2 posix_fallocate posix_fadvise posix_spawn pread preadv pwrite pwritev readv
        writev register_at_fork sched_getaffinity sched_yield sendfile set_blocking get_blocking setegid seteuid setgid
        setgroups setpgid setpriority setsid setuid statvfs fstatvfs sync sysconf tcgetpgrp tcsetpgrp ttyname ctermid
        uname wait wait3 wait4 waitid memfd_create eventfd listxattr getxattr setxattr removexattr copy_file_range
        splice lockf confstr getloadavg confstr_names sysconf_names fdatasync getrandom
        """,
    "signal": """
        SIGKILL SIGHUP SIGCONT SIGSTOP SIGTSTP SIGCHLD SIGUSR1 SIGUSR2 SIGPIPE SIGQUIT SIGALRM SIGWINCH SIGPROF SIGXCPU
        SIGXFSZ SIGTTIN SIGTTOU SIG_BLOCK SIG_UNBLOCK SIG_SETMASK pthread_sigmask pthread_kill sigpending sigwait
        sigwaitinfo sigtimedwait siginterrupt setitimer getitimer alarm pause pidfd_send_signal ITIMER_REAL ITIMER_PROF
        """,
    "socket": "AF_UNIX SO_PEERCRED SO_REUSEPORT SCM_RIGHTS CMSG_LEN CMSG_SPACE MSG_DONTWAIT MSG_NOSIGNAL AF_NETLINK",
    "select": "epoll poll EPOLLIN POLLIN POLLOUT POLLHUP POLLERR",
    "time": "CLOCK_MONOTONIC CLOCK_BOOTTIME CLOCK_REALTIME CLOCK_PROCESS_CPUTIME_ID clock_gettime tzset",
}
"""Gone for goat-mcp; the standard library of Linux needs them and keeps them."""


class _ByCaller(ModuleType):
    """A module that shows goat-mcp less than others."""

    def __getattribute__(self, name: str) -> object:
        own = ModuleType.__getattribute__(self, "__dict__")
        if name in own["_differs"] and is_ours(caller(1)):
            if (value := own["_differs"][name]) is None:
                raise AttributeError(f"module {own['__name__']!r} has no attribute {name!r} on Windows")
            return value
        return ModuleType.__getattribute__(self, name)


class _Modules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds doubles of Windows' own modules for goat-mcp. The standard library asks for some to see where it is."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.startswith(WINDOWS_MODULES) and _is_imported_by_us():
            return ModuleSpec(fullname, self, is_package="." not in fullname)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        double = MagicMock(name=spec.name)
        double.error = OSError  # pywin32's own exception
        double.__path__ = []
        return double

    def exec_module(self, module: ModuleType) -> None:
        """A double has everything already."""


def _is_imported_by_us() -> bool:
    frame = caller(2)
    while frame is not None and ("importlib" in frame.f_code.co_filename or frame.f_code is _import.__code__):
        frame = frame.f_back
    return is_ours(frame)


_LINUX_IMPORT = builtins.__import__


def _import(name: str, *words: Any, **options: Any) -> ModuleType:
    if name in NO_MODULES and is_ours(caller(1)):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return _LINUX_IMPORT(name, *words, **options)


def enter() -> None:
    """From now on goat-mcp finds itself on Windows."""
    importlib._bootstrap._new_module = ModuleType  # pyright: ignore  # it asks `sys` what a module is
    differs: dict[str, dict[str, Any]] = {name: dict.fromkeys(gone.split()) for name, gone in GONE.items()}
    differs["os"] |= {"name": "nt", "sep": "\\", "altsep": "/", "pathsep": ";", "O_BINARY": 0x8000}
    differs["sys"] = {"platform": "win32"}
    differs["stat"] = {"IO_REPARSE_TAG_SYMLINK": 0xA000000C, "IO_REPARSE_TAG_MOUNT_POINT": 0xA0000003}
    for name, different in differs.items():
        module = importlib.import_module(name)
        module.__dict__["_differs"] = different
        module.__class__ = _ByCaller
    sys.meta_path.insert(0, _Modules())
    builtins.__import__ = _import


def names() -> Iterator[str]:
    """Every module of goat-mcp, and every Python file of the shipped manifests by its path."""
    import goat_mcp

    for module in pkgutil.walk_packages(goat_mcp.__path__, "goat_mcp."):
        if module.name != "goat_mcp.__main__":
            yield module.name
    for file in sorted(MANIFESTS.rglob("*.py")):
        yield file.relative_to(ROOT).as_posix()


def load(name: str) -> None:
    if not name.endswith(".py"):
        importlib.import_module(name)
        return
    spec = importlib.util.spec_from_file_location(name.replace("/", "_").replace("-", "_")[:-3], ROOT / name)
    assert spec is not None and spec.loader is not None
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def main() -> None:
    found: dict[str, str] = {}
    enter()
    for name in names():
        try:
            load(name)
        except Exception:
            found[name] = traceback.format_exc()
        else:
            found[name] = ""
    print(json.dumps(found))


if __name__ == "__main__":
    main()
