"""Rules about files, held against those that a command names: the best that can be told without running it.

Only rules that deny or ask are: what `Read(...)` allows, no command is allowed by it. A sandbox is what keeps files
from what a command starts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from posixpath import basename, split
from typing import NamedTuple

from goat_mcp.permissions.call import Call
from goat_mcp.permissions.named_paths import NamedPaths
from goat_mcp.permissions.rule import Rule
from goat_mcp.permissions.rules import WRITES_OF_COMMANDS, RuleList
from goat_mcp.shell.file_use import FileUse
from goat_mcp.shell.file_uses import changes_of_directory, file_uses


class FileHit(NamedTuple):
    """`told`: which file it is, for people."""

    rule: Rule
    told: str


def rule_on_files(rules: RuleList, call: Call) -> FileHit | None:
    """The first rule of a list that means a file which a command names."""
    for script in call.scripts:
        paths = NamedPaths(call.directory, list(changes_of_directory(script)))
        for use in file_uses(script):
            if (hit := _hit(rules, call, use, paths)) is not None:
                return hit
    return None


def paths_written(call: Call) -> Iterator[str]:
    """The files that the scripts of a call certainly change, as far as their words say which; for a directory that
    something is written into, some name in it."""
    for script in call.scripts:
        paths = NamedPaths(call.directory, list(changes_of_directory(script)))
        for use in file_uses(script):
            if use.writes:
                for path in paths.of(use.text):
                    yield path
                    if use.inside:
                        yield f"{path}/_"


def _hit(rules: RuleList, call: Call, use: FileUse, paths: NamedPaths) -> FileHit | None:
    families = ("Read", *WRITES_OF_COMMANDS) if use.writes else ("Read",)
    does = "writes" if use.writes else "names"
    for path in paths.of(use.text):
        for rule in rules.about_path(path, call.roots, *families):
            return FileHit(rule, f"it {does} {path}")
        if use.inside:
            for rule in rules.about_path(f"{path}/_", call.roots, *families):
                return FileHit(rule, f"it writes into {path}")
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
