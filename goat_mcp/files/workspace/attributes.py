"""What a file has beside its content (owner, mode, access lists, ...), and giving it to the one that replaces it.

The one place for it: each system has its own.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from goat_mcp.core import platform, posix
from goat_mcp.files.workspace import windows_directory
from goat_mcp.files.workspace.directory import Directory

NEW_FILE_MODE = 0o666
_READ_FLAGS = os.O_RDONLY | posix.O_NONBLOCK
_ACL = "system.posix_acl_access"
_NOT_COPIED = ("security.capability", "security.ima", "security.evm")
"""Attributes that vouch for the old bytes."""


def give_new_mode(fd: int, mode: int | None) -> None:
    """To a file that was not there before; None: as the umask has it."""
    if platform.HAS_FILE_MODES:
        _set_mode(fd, NEW_FILE_MODE & ~_umask() if mode is None else mode)


def give_attributes(directory: Directory, name: str, fd: int) -> None:
    """Those of a file to an open one: owner, extended attributes (ACLs are some) and mode, in the order in which none
    undoes another."""
    if platform.SYSTEM == "windows":
        windows_directory.give_attributes(directory, name, fd)
    if not platform.HAS_FILE_MODES:
        return
    found, mine = directory.stat(name), os.fstat(fd)
    mode = stat.S_IMODE(found.st_mode)
    if (mine.st_uid, mine.st_gid) != (found.st_uid, found.st_gid):
        try:
            posix.fchown(fd, found.st_uid, found.st_gid)
        except PermissionError:
            mode &= ~(stat.S_ISUID | stat.S_ISGID)  # never for another owner than the one who set them
            with suppress(PermissionError):
                posix.fchown(fd, -1, found.st_gid)
    with suppress(OSError):
        source = directory.open(name, _READ_FLAGS)
        try:
            _give_extended(source, fd)
        finally:
            os.close(source)
    _set_mode(fd, mode)


def _set_mode(fd: int, mode: int) -> None:
    """Of a file that was just made. A drive of Windows in WSL has modes only if it is mounted with `metadata`."""
    if stat.S_IMODE(os.fstat(fd).st_mode) == mode:
        return
    try:
        posix.fchmod(fd, mode)
    except PermissionError:
        if not platform.IN_WSL:
            raise


def _give_extended(source: int, fd: int) -> None:
    if platform.HAS_COPYFILE:
        from goat_mcp.files.workspace.macos_attributes import copy_extended  # ctypes: only for a written file

        copy_extended(source, fd)
    if not platform.HAS_EXTENDED_ATTRIBUTES:
        return
    names = posix.listxattr(source)
    for name in set(posix.listxattr(fd)).difference(names) & {_ACL}:
        posix.removexattr(fd, name)  # came from the folder's default, and would widen access
    for name in names:
        if name not in _NOT_COPIED:
            with suppress(OSError):
                posix.setxattr(fd, name, posix.getxattr(source, name))


def _umask() -> int:
    """The process's umask. Setting it to read it would open a gap for other threads, so the kernel is asked first."""
    with suppress(OSError, ValueError, IndexError):
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(status.partition("\nUmask:")[2].split()[0], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
