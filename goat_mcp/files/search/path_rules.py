"""Globs as ignore-file lines, so that ripgrep prunes while it walks, and `RuledPaths`, which has the last word.

`rg --glob` would also list ignored files; lines of an extra ignore file leave the repository's rules in force. But the
repository's rules outrank them: an extra line does not hide what a .gitignore keeps with `!`. So every path that
ripgrep reports is checked once more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from goat_mcp.files.search.glob_pattern import BadGlob, GlobPattern, expand_braces, names_expression, split_globs

_SPECIAL = re.compile(r"([\\*?\[\]{}!# ])")


def rules_of_globs(globs: str, *, below: str) -> tuple[str, ...]:
    """Hide what a list of globs does not name: `*.py, !test_*` keeps Python files that are no tests.

    A glob without a slash fits at any depth. `below` is the absolute path the search starts in; globs
    may start with it. Raises `BadGlob`.
    """
    included: list[str] = []
    excluded: list[str] = []
    for glob in split_globs(globs):
        negated = glob.startswith("!")
        bare = glob[1:] if negated else glob
        bare = bare.removeprefix("./")
        if bare.startswith(below.rstrip("/") + "/"):
            bare = bare[len(below.rstrip("/")) :]
        if not bare:
            continue
        GlobPattern.parse(bare)
        if bare[0] in "#!":
            bare = "\\" + bare
        (excluded if negated else included).append(bare)
    rules = [f"!{glob}" for glob in included]
    if included:
        rules = ["*", "!*/", *rules]
    return (*rules, *excluded)


def rules_of_directory(names: Sequence[str]) -> tuple[str, ...]:
    """Hide all that is not below the directory with these names."""
    rules: list[str] = []
    parent = ""
    for name in names:
        literal = _SPECIAL.sub(r"\\\1", name)
        rules += [f"{parent}/*", f"!{parent}/{literal}"]
        parent += f"/{literal}"
    return tuple(rules)


class RuledPaths:
    """Whether path rules keep a file (relative, `./` in front). They may hide it, or a directory above it."""

    def __init__(self, path_rules: Sequence[str]) -> None:
        self._last_first = [rule for line in reversed(path_rules) if (rule := _parse(line)) is not None]
        self._open_directories = {".": True}

    def keep(self, path: str) -> bool:
        directory = path.rpartition("/")[0]
        return self._is_open(directory) and not self._hides(path[2:], is_directory=False)

    def _is_open(self, directory: str) -> bool:
        known = self._open_directories.get(directory)
        if known is None:
            above = directory.rpartition("/")[0]
            known = self._is_open(above) and not self._hides(directory[2:], is_directory=True)
            self._open_directories[directory] = known
        return known

    def _hides(self, path: str, *, is_directory: bool) -> bool:
        for rule in self._last_first:
            if (is_directory or not rule.only_directories) and rule.matches(path):
                return not rule.negated
        return False


@dataclass(frozen=True)
class _Rule:
    """One line of an ignore file. The last line that matches decides; a `negated` one (`!`) keeps the path."""

    matches: Callable[[str], object]
    negated: bool
    only_directories: bool


def _parse(line: str) -> _Rule | None:
    negated = line.startswith("!")
    pattern = line[1:] if negated else line
    if pattern[:2] in ("\\!", "\\#"):
        pattern = pattern[1:]
    any_depth = [] if "/" in pattern.rstrip("/") else ["**"]
    if not pattern.strip("/"):
        return None
    try:
        expressions = [
            names_expression([*any_depth, *(name for name in alternative.split("/") if name)])
            for alternative in expand_braces(pattern.rstrip("/"))
        ]
        matches = re.compile("|".join(expressions), re.DOTALL).fullmatch
    except (BadGlob, re.error):
        return None  # as ripgrep does: a line that is no pattern has no effect
    return _Rule(matches, negated, only_directories=pattern.endswith("/"))
