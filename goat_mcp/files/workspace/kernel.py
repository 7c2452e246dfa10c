"""System calls that Python has no name for: `openat2`, the kind of a file system, a descriptor's path.

Each is optional: where the kernel or platform lacks one, the answer says so and `beneath` does without.
"""

from __future__ import annotations

import errno
import os
import sys
from functools import cached_property
from pathlib import Path
from typing import Any

_OPENAT2 = 437
"""The same number on every Linux architecture but the two that number calls their own way."""
_OWN_NUMBERS = ("alpha", "mips")
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08
_AGAIN = 64
_F_GETPATH = 50
_STATFS_BYTES = 256

_KERNEL_FILE_SYSTEMS = frozenset(
    {
        0x9FA0,  # proc
        0x62656572,  # sysfs
        0x27E0EB,  # cgroup
        0x63677270,  # cgroup2
        0x64626720,  # debugfs
        0x74726163,  # tracefs
        0x73636673,  # securityfs
        0xCAFE4A11,  # bpf
        0x62656570,  # configfs
        0x1CD1,  # devpts
    }
)


class Kernel:
    """What the running kernel offers. `without_openat2` acts as if it were older."""

    def __init__(self, *, without_openat2: bool = False) -> None:
        self._without_openat2 = without_openat2

    @cached_property
    def has_openat2(self) -> bool:
        """Found out by one call: filters in containers answer ENOSYS or EPERM."""
        if self._without_openat2 or not sys.platform.startswith("linux"):
            return False
        if os.uname().machine.startswith(_OWN_NUMBERS) or self._libc is None:
            return False
        root = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.close(self.open_beneath(root, ".", os.O_PATH | os.O_CLOEXEC))
        except OSError:
            return False
        finally:
            os.close(root)
        return True

    @cached_property
    def _libc(self) -> Any:
        try:
            import ctypes  # some milliseconds that only the first opened file pays
        except ImportError:
            return None
        return ctypes.CDLL(None, use_errno=True)

    def open_beneath(self, dir_fd: int, relative: str, flags: int) -> int:
        """`openat2` with RESOLVE_BENEATH and RESOLVE_NO_MAGICLINKS. OSError EXDEV: the path would leave."""
        import ctypes

        how = (ctypes.c_uint64 * 3)(flags, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
        name = ctypes.c_char_p(os.fsencode(relative))
        for _ in range(_AGAIN):
            fd = self._libc.syscall(
                ctypes.c_long(_OPENAT2), ctypes.c_int(dir_fd), name, ctypes.byref(how), ctypes.c_size_t(24)
            )
            if fd >= 0:
                return int(fd)
            problem = ctypes.get_errno()
            # EAGAIN: something was renamed while a `..` was resolved, and the kernel could not be sure
            if problem not in (errno.EAGAIN, errno.EINTR):
                raise OSError(problem, os.strerror(problem), relative)
        raise OSError(errno.EXDEV, "kept changing while it was opened", relative)

    def is_kernel_file_system(self, fd: int) -> bool:
        """The file is the kernel speaking (proc, sysfs, ...), wherever that file system is mounted."""
        if not sys.platform.startswith("linux") or self._libc is None:
            return False
        import ctypes

        answer = (ctypes.c_long * (_STATFS_BYTES // ctypes.sizeof(ctypes.c_long)))()
        if self._libc.fstatfs(ctypes.c_int(fd), ctypes.byref(answer)) != 0:
            return False
        return (answer[0] & 0xFFFFFFFF) in _KERNEL_FILE_SYSTEMS


def descriptor_path(fd: int) -> str | None:
    """The path the kernel knows an open file by, None where it does not say."""
    try:
        if sys.platform == "darwin":
            import fcntl

            return os.fsdecode(fcntl.fcntl(fd, _F_GETPATH, bytes(1024)).rstrip(b"\0"))
        return str(Path(f"/proc/self/fd/{fd}").readlink())
    except OSError:
        return None
