"""A directory of its own for each principal, below one that all share: nobody gets to another's (design D6)."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from goat_mcp.core import platform, posix
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.rights import OWNERS
from goat_mcp.files.workspace.roots import Roots

MAX_OPEN = 256
"""Directories that are held open; the one that was not used for longest is opened again when it is needed."""
_NAME_CHARS = 40
_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_-]+")


def directory_name(principal: str) -> str:
    """What the directory of a principal is called: readable, and by its hash never that of another one."""
    plain = _NOT_IN_NAME.sub("_", principal)[:_NAME_CHARS]
    return f"{plain}-{hashlib.sha256(principal.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


class PersonalRoots:
    """`shared` holds the directories, `caller` says whose call is running, `readable` is what all may read besides.

    Whoever runs the server works in `shared` itself.
    """

    def __init__(self, shared: Path, caller: Callable[[], str], readable: tuple[Path, ...]) -> None:
        self._shared = shared
        self._caller = caller
        self._readable = readable
        self._open: OrderedDict[str, Roots] = OrderedDict()
        self._opening = Lock()

    def now(self) -> Roots | None:
        """The roots of the present caller, whose directory is made if it is not there; None for an owner.

        Raises `ToolError(PATH_OUTSIDE)` for a directory that is not safely theirs.
        """
        principal = self._caller()
        if principal in OWNERS:
            return None
        with self._opening:
            if (known := self._open.get(principal)) is not None:
                self._open.move_to_end(principal)
                return known
            directory = self._shared / directory_name(principal)
            _make_private(directory)
            roots = Roots((directory,), self._readable)
            roots.writable[0].pin()
            self._open[principal] = roots
            if len(self._open) > MAX_OPEN:
                self._open.popitem(last=False)
            return roots


def _make_private(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        found = os.lstat(directory)
        # Somebody else could have put a link, or a directory of their own, where this one belongs.
        is_ours = stat.S_ISDIR(found.st_mode) and (not platform.HAS_FILE_MODES or found.st_uid == posix.getuid())
        if is_ours and platform.HAS_FILE_MODES and stat.S_IMODE(found.st_mode) != 0o700:
            directory.chmod(0o700)
    except OSError as problem:
        raise _refused(directory, (problem.strerror or "it cannot be made").lower()) from None
    if not is_ours:
        raise _refused(directory, "it is a link, or belongs to another user")


def _refused(directory: Path, why: str) -> ToolError:
    return ToolError(
        ErrorCode.PATH_OUTSIDE,
        f"your working directory {directory.name} cannot be used: {why}",
        "Tell whoever runs this server.",
    )
