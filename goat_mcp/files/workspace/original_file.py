"""The file that is about to be replaced: whether it is the one the caller saw, and what the new one takes over."""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress

from goat_mcp.files.workspace import refusals
from goat_mcp.files.workspace.beneath import Location
from goat_mcp.files.workspace.opened import AnyVersion, FileIdentity, FileVersion, hash_of
from goat_mcp.files.workspace.roots import NO_FOLLOW

_READ_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | NO_FOLLOW
_ACL = "system.posix_acl_access"
_NOT_COPIED = ("security.capability", "security.ima", "security.evm")
"""Attributes that vouch for the old bytes."""


class OriginalFile:
    """As it is found at a place. `asked` is the path in the caller's words, for errors."""

    def __init__(self, location: Location, asked: object) -> None:
        self._location = location
        self._asked = asked
        self._accepted: FileIdentity | None = None

    def check(self, expect: FileVersion | AnyVersion) -> None:
        """Raises `ToolError(STALE)` unless the content is the expected one."""
        if isinstance(expect, AnyVersion):
            return
        try:
            found = self.stat()
        except FileNotFoundError:
            raise refusals.stale(self._asked, "was deleted since it was read") from None
        identity = FileIdentity.of(found)
        if identity in (expect.identity, self._accepted):
            return
        if not stat.S_ISREG(found.st_mode) or found.st_size != expect.size:
            raise refusals.stale(self._asked, "changed since it was read")
        fd = os.open(self._location.name, _READ_FLAGS, dir_fd=self._location.parent_fd)
        try:
            before, read_from_ns = os.fstat(fd), time.time_ns()
            if hash_of(fd) != expect.sha256:
                raise refusals.stale(self._asked, "changed since it was read")
            if FileIdentity.of(before) == FileIdentity.of(os.fstat(fd)):
                self._accepted = FileIdentity.settled(before, read_from_ns)
        finally:
            os.close(fd)

    def give_attributes(self, fd: int) -> None:
        """Owner, extended attributes (ACLs are some) and mode, in the order in which none undoes another."""
        found = self.stat()
        mode = stat.S_IMODE(found.st_mode)
        mine = os.fstat(fd)
        if (mine.st_uid, mine.st_gid) != (found.st_uid, found.st_gid):
            try:
                os.fchown(fd, found.st_uid, found.st_gid)
            except PermissionError:
                mode &= ~(stat.S_ISUID | stat.S_ISGID)  # never for another owner than the one who set them
                with suppress(PermissionError):
                    os.fchown(fd, -1, found.st_gid)
        self._give_extended(fd)
        os.fchmod(fd, mode)

    def _give_extended(self, fd: int) -> None:
        if not hasattr(os, "listxattr"):
            return
        with suppress(OSError):
            source = os.open(self._location.name, _READ_FLAGS, dir_fd=self._location.parent_fd)
            try:
                names = os.listxattr(source)
                for name in set(os.listxattr(fd)).difference(names) & {_ACL}:
                    os.removexattr(fd, name)  # came from the folder's default, and would widen access
                for name in names:
                    if name not in _NOT_COPIED:
                        with suppress(OSError):
                            os.setxattr(fd, name, os.getxattr(source, name))
            finally:
                os.close(source)

    def stat(self) -> os.stat_result:
        return os.stat(self._location.name, dir_fd=self._location.parent_fd, follow_symlinks=False)
