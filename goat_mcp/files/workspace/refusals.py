"""The words of refused paths: from an operating system's error to what a model can do about it."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle

_SHOWN_CHARS = 300


def shown(path: object) -> str:
    """A path that can be put into a message: bytes that are no text, and controls, are escaped."""
    text = str(path)
    if not text.isprintable():
        text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    return cut_middle(text, _SHOWN_CHARS)


def outside(asked: object, roots: Sequence[Path]) -> ToolError:
    """Names the path as it was asked for, never where a link in it leads."""
    allowed = ", ".join(map(str, roots))
    return ToolError(
        ErrorCode.PATH_OUTSIDE,
        f"outside the allowed roots: {shown(asked)}",
        f"Use a path below {allowed}; the operator can add roots with --workspace.",
    )


def denied_by_rule(asked: object, rule: str) -> ToolError:
    return ToolError(
        ErrorCode.PERMISSION,
        f"{shown(asked)} is denied by rule {rule}",
        "Choose another way; only the user can change the rule.",
    )


def no_workspace() -> ToolError:
    return ToolError(
        ErrorCode.NO_WORKSPACE,
        "no workspace directory is set, so file tools have nowhere to work",
        "Ask the user to start goat-mcp with --workspace DIR.",
    )


def not_found(asked: object, near: Sequence[str] = ()) -> ToolError:
    return ToolError(
        ErrorCode.NOT_FOUND,
        f"not found: {shown(asked)}",
        f"Did you mean {' or '.join(near)}?" if near else "Look for it with Glob.",
        facts={"did_you_mean": list(near)} if near else None,
    )


def not_regular(asked: object) -> ToolError:
    return ToolError(
        ErrorCode.NOT_REGULAR, f"not a regular file: {shown(asked)}", "Devices, pipes and sockets cannot be opened."
    )


def is_directory(asked: object) -> ToolError:
    return ToolError(ErrorCode.DIRECTORY, f"is a directory: {shown(asked)}", "List what is in it with Glob.")


def not_a_directory(asked: object) -> ToolError:
    return ToolError(ErrorCode.NOT_A_DIRECTORY, f"not a directory: {shown(asked)}", "Name the directory it lies in.")


def stale(asked: object, what: str) -> ToolError:
    return ToolError(ErrorCode.STALE, f"{what}: {shown(asked)}", "Read the file again, then repeat the change.")


def hard_linked(asked: object, links: int) -> ToolError:
    return ToolError(
        ErrorCode.HARD_LINKED,
        f"has {links} hard links, so other names would be left behind or changed too: {shown(asked)}",
        "Ask the user; a copy in its place (cp FILE COPY && mv COPY FILE) has one name only.",
    )


def dangling_link(asked: object) -> ToolError:
    return ToolError(
        ErrorCode.NOT_FOUND,
        f"a link to something that does not exist: {shown(asked)}",
        "Create the file under its own path, or remove the link first.",
    )


def system_error(problem: OSError, asked: object, roots: Sequence[Path]) -> ToolError:
    """What an OSError about a path means to the caller. Lists no near names: that costs a look around."""
    match problem.errno:
        case errno.EXDEV:
            return outside(asked, roots)
        case errno.ENOENT:
            return not_found(asked)
        case errno.ENOTDIR:
            return ToolError(
                ErrorCode.NOT_A_DIRECTORY, f"a part of the path is a file: {shown(asked)}", "Choose another folder."
            )
        case errno.EMFILE | errno.ENFILE:
            return ToolError(ErrorCode.IO, f"too many open files: {shown(asked)}", "Try again in a moment.")
        case errno.EISDIR:
            return is_directory(asked)
        case errno.ENXIO | errno.ENODEV | errno.EOPNOTSUPP:
            return not_regular(asked)
        case errno.ENAMETOOLONG:
            return ToolError(ErrorCode.INPUT, f"name too long: {shown(asked)}", "A name has at most 255 bytes.")
        case errno.ELOOP:
            return ToolError(
                ErrorCode.IO, f"too many links: {shown(asked)}", "The links lead in a circle; use the real path."
            )
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            reason = os.strerror(problem.errno).lower()
            return ToolError(
                ErrorCode.IO, f"{reason}: {shown(asked)}", "The file is as it was. Make room, then try again."
            )
        case _:
            reason = (problem.strerror or str(problem)).lower()
            return ToolError(
                ErrorCode.IO, f"{reason}: {shown(asked)}", "Check the permissions of the file and its folder."
            )
