"""The words of refused paths: from an operating system's error to what a model can do about it, with the paths that
were probably meant. For those it looks below one root only, at few entries."""

from __future__ import annotations

import difflib
import errno
import os
import unicodedata
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.files.workspace.beneath import Beneath, Location
from goat_mcp.files.workspace.directory import Directory
from goat_mcp.files.workspace.roots import Names, is_kernel_path, split_names
from goat_mcp.files.workspace.temp_files import is_temp_name
from goat_mcp.files.workspace.windows_directory import LinkRefused
from goat_mcp.state.windows_files import is_in_use

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


def redirected(asked: object, problem: LinkRefused) -> ToolError:
    return ToolError(
        ErrorCode.PATH_OUTSIDE,
        f"{shown(problem.filename or asked)} {'' if problem.errno == errno.EXDEV else 'is '}{problem.strerror}",
        "Use the path of the directory or file itself.",
    )


def in_use(asked: object) -> ToolError:
    return ToolError(
        ErrorCode.BUSY, f"open in another program: {shown(asked)}", "Ask the user to close it there, then try again."
    )


def dangling_link(asked: object) -> ToolError:
    return ToolError(
        ErrorCode.NOT_FOUND,
        f"a link to something that does not exist: {shown(asked)}",
        "Create the file under its own path, or remove the link first.",
    )


def system_error(problem: OSError, asked: object, roots: Sequence[Path]) -> ToolError:
    """What an OSError about a path means to the caller. Lists no near names: that costs a look around."""
    if isinstance(problem, LinkRefused):
        return redirected(asked, problem)
    if is_in_use(problem):
        return in_use(asked)
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


MAX_NEAR = 3
MAX_ENTRIES = 2000
_LIKENESS = 0.6
_NOT_LOOKED_INTO = frozenset({".git", ".hg", ".svn", ".jj", ".sl", "node_modules", "__pycache__", ".venv"})


def near_paths(beneath: Beneath, location: Location) -> list[str]:
    """Up to three existing paths: names like the missing one in its folder, then the same name elsewhere."""
    found: dict[str, None] = {}
    first, *rest = location.missing
    in_folder = [name for name, _ in _entries(location.directory, MAX_ENTRIES)]
    for name in _like(first, in_folder):
        if not rest or beneath.exists(location.root, _below_root(location, (name, *rest))):
            found[str(location.parent.joinpath(name, *rest))] = None
    budget = MAX_ENTRIES
    for top in dict.fromkeys((location.parent, location.root.real)):
        if len(found) >= MAX_NEAR or budget <= 0:
            break
        for path, seen in _named(beneath, location, top, location.missing[-1], budget):
            budget -= seen
            if path is not None:
                found[str(path)] = None
    return list(found)[:MAX_NEAR]


def _like(name: str, names: list[str]) -> list[str]:
    by_key: dict[str, list[str]] = {}
    for other in names:
        by_key.setdefault(_key(other), []).append(other)
    return [
        other
        for key in difflib.get_close_matches(_key(name), by_key, n=MAX_NEAR, cutoff=_LIKENESS)
        for other in by_key[key]
    ]


def _key(name: str) -> str:
    """Names that look alike are equal: case, composed accents, the unusual blanks of screenshots."""
    return unicodedata.normalize("NFKC", name).casefold()


def _below_root(location: Location, names: Names) -> Names:
    return (*split_names(location.parent.relative_to(location.root.real).as_posix()), *names)


def _named(
    beneath: Beneath, location: Location, top: Path, name: str, budget: int
) -> Iterator[tuple[Path | None, int]]:
    """Files called `name` below `top`, nearest first; with each step the number of entries looked at."""
    wanted = _key(name)
    waiting = deque([top])
    while waiting and budget > 0:
        folder = waiting.popleft()
        with suppress(OSError):
            below = split_names(folder.relative_to(location.root.real).as_posix())
            opened, _ = beneath.open_directory(location.root, below)
            with opened:
                entries = list(_entries(opened, budget))
            budget -= len(entries)
            yield None, len(entries)
            for entry, is_folder in sorted(entries):
                path = folder / entry
                if is_folder and entry not in _NOT_LOOKED_INTO and not is_kernel_path(split_names(path.as_posix())):
                    waiting.append(path)
                elif not is_folder and _key(entry) == wanted:
                    yield path, 0


def _entries(directory: Directory, most: int) -> Iterator[tuple[str, bool]]:
    """At most `most` names in an open directory, each with whether it is a directory; links count as files."""
    with suppress(OSError):
        for entry in islice(directory.entries(), most):
            if _is_plain(entry.name) and not is_temp_name(entry.name):
                yield entry.name, entry.is_dir(follow_symlinks=False)


def _is_plain(name: str) -> bool:
    """Letters, signs and blanks. A name with controls or direction marks is no help, and may be there to mislead."""
    return all(char.isprintable() or unicodedata.category(char) == "Zs" for char in name)
