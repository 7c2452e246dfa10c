"""Rules about files, held against those that a command names: the best that can be told without running it.

Only rules that deny or ask are: what `Read(...)` allows, no command is allowed by it. What cannot be followed exactly
as bash would is met by the first rule that could mean it (R-SHELL-5b). A sandbox is what keeps files from what a
command starts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from posixpath import basename, split
from typing import NamedTuple

from goat_mcp.calls.permissions.call import Call
from goat_mcp.calls.permissions.named_paths import NamedPaths, Unfollowed
from goat_mcp.calls.permissions.rule import Rule
from goat_mcp.calls.permissions.rules import WRITES_OF_COMMANDS, RuleList
from goat_mcp.commands.shell.file_use import FileDoubt, FileUse

_SHOWN_CHARS = 60
_WAY_OUT = "write each path as it is, or use the tools Read, Grep, Edit and Write"


class FileHit(NamedTuple):
    """`told`: which file it is, or what could not be followed, for people."""

    rule: Rule
    told: str


def rule_on_files(rules: RuleList, call: Call) -> FileHit | None:
    """The first rule of a list that means a file which a command names, or may mean what cannot be followed."""
    doubts: list[FileDoubt] = []
    for use, paths, bases in _uses(call, doubts):
        try:
            hit = _hit(rules, call, use, paths, bases)
        except Unfollowed as reason:
            doubts.append(FileDoubt(use.text, str(reason)))
            continue
        if hit is not None:
            return hit
    return next((hit for doubt in doubts if (hit := _in_doubt(rules, doubt)) is not None), None)


def paths_written(call: Call) -> Iterator[str]:
    """The files that the scripts of a call certainly change, as far as their words say which; for a directory that
    something is written into, some name in it."""
    for use, paths, _ in _uses(call, []):
        if use.writes:
            with suppress(Unfollowed):
                for path in paths.of(use, paths.directories):
                    yield path
                    if use.inside:
                        yield f"{path}/_"


def _uses(call: Call, doubts: list[FileDoubt]) -> Iterator[tuple[FileUse, NamedPaths, Sequence[str]]]:
    """Each use of a file that can be followed, and the directories it may be relative to. Others become `doubts`."""
    for script in call.scripts:
        changes = script.files.changes
        doubts += changes.doubts
        paths = NamedPaths(call.directory, changes.targets, changes.perhaps)
        if paths.is_cut:
            doubts.append(FileDoubt("cd", "so many changes of directory are not followed"))
        for files in script.files.commands:
            doubts += files.doubts
            try:
                bases = paths.with_folders(files.folders) if files.folders else paths.directories
            except Unfollowed as reason:
                doubts.append(FileDoubt("a command", str(reason)))
                bases = paths.directories
            yield from ((use, paths, bases) for use in files.uses)


def _in_doubt(rules: RuleList, doubt: FileDoubt) -> FileHit | None:
    families = ("Read", *WRITES_OF_COMMANDS) if doubt.may_write else ("Read",)
    for rule, _ in rules.about_paths(*families):
        shown = doubt.word if len(doubt.word) <= _SHOWN_CHARS else f"{doubt.word[: _SHOWN_CHARS - 3]}..."
        return FileHit(rule, f"`{shown}` may name such a file: {doubt.why}; {_WAY_OUT}")
    return None


def _hit(rules: RuleList, call: Call, use: FileUse, paths: NamedPaths, bases: Sequence[str]) -> FileHit | None:
    families = ("Read", *WRITES_OF_COMMANDS) if use.writes or use.may_write else ("Read",)
    does = "writes" if use.writes else "names"
    for path in paths.of(use, bases):
        for rule in rules.about_path(path, call.roots, *families):
            return FileHit(rule, f"it {does} {path}")
        if use.inside or (use.contents and os.path.isdir(path)):  # noqa: PTH112 - of a name that is too long `Path` raises
            for rule in rules.about_path(f"{path}/_", call.roots, *families):
                return FileHit(rule, f"it {'writes into' if use.writes else 'names'} {path}")
        if use.writes and _is_in_workspace(path, call):
            for rule in rules.about_all_files(*WRITES_OF_COMMANDS):
                return FileHit(rule, f"it writes {path}")
        if use.below and os.path.isdir(path):  # noqa: PTH112 - of a name that is too long `Path` raises
            for found in paths.below(path, use):
                for rule in rules.about_path(found, call.roots, *families):
                    way = "name other paths" if use.writes else _way_around(path, found)
                    does = "changes" if use.writes else "reads"
                    return FileHit(rule, f"it {does} all below {path}, and there is {found}: {way}")
    return None


def _is_in_workspace(path: str, call: Call) -> bool:
    """Whether it certainly is: with an expansion left nobody knows where a path leads."""
    return not any(sign in path for sign in "$`") and any(
        path == root or path.startswith(f"{root.rstrip('/')}/") for root in call.roots
    )


def _way_around(folder: str, found: str) -> str:
    above, name = split(found)
    option = f"--exclude={name}" if above == folder else f"--exclude-dir={basename(above)}"
    return f"name other folders, or leave it out, as grep does with {option}"
