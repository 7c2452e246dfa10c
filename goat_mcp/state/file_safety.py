"""Whether somebody else on this machine could have written, replaced or read a file: owner, mode, folders above.

POSIX only. Elsewhere permissions are lists that nothing here understands, and every file passes.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_ROOT = 0
_UNMAPPED = 65534
"""Whom a folder of the host's root belongs to, seen from a container with users of its own."""


def why_not_ours(found: os.stat_result) -> str:
    """Why a file that should be the user's own is not; empty where it is."""
    if os.name != "posix" or found.st_uid == os.geteuid():
        return ""
    return f"belongs to another user (uid {found.st_uid})"


def why_writable(found: os.stat_result) -> str:
    """How somebody else could change what is there; empty where nobody can. The system's own files are trusted."""
    if os.name != "posix":
        return ""
    if found.st_uid not in (os.geteuid(), _ROOT, _UNMAPPED):
        return why_not_ours(found)
    if found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and not _is_private_group(found.st_gid)):
        return f"can be written by others (mode {stat.S_IMODE(found.st_mode):04o})"
    return ""


def why_readable(found: os.stat_result) -> str:
    """How somebody else could read what is there; empty where nobody can."""
    if os.name != "posix" or not found.st_mode & 0o077:
        return ""
    return f"can be read by others (mode {stat.S_IMODE(found.st_mode):04o})"


def why_folder_unsafe(folder: Path, *, shared_is_safe: bool = False) -> str:
    """Why a file in `folder` could be replaced by somebody else; empty where it could not.

    A shared folder such as /tmp may be above it, since nobody renames there what is not theirs; for `folder` itself
    `shared_is_safe` says. Raises `OSError`.
    """
    if os.name != "posix":
        return ""
    real = folder.resolve(strict=True)
    for place in (real, *real.parents):
        found = place.stat()
        is_shared = (shared_is_safe or place != real) and bool(found.st_mode & stat.S_ISVTX)
        if is_shared and found.st_uid in (os.geteuid(), _ROOT, _UNMAPPED):
            continue
        if reason := why_writable(found):
            return f"is in {place}, which {reason}"
    return ""


def _is_private_group(group: int) -> bool:
    """Many systems give each user a group of their own and let it write by default: nobody else is in it."""
    import grp
    import pwd

    try:
        entry = grp.getgrgid(group)
        name = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False
    return entry.gr_name == name and set(entry.gr_mem) <= {name}
