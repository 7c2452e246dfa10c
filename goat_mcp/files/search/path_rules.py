"""Globs as ignore-file lines, so that an engine prunes while it walks, and `RuledPaths`, which has the last word.

`rg --glob` would also bring ignored files back; lines of an extra ignore file leave the repository's rules in force.
But those outrank it: what a .gitignore keeps with `!` no extra line hides, so what was found is looked at once more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from goat_mcp.files.search.glob_pattern import GlobPattern, split_globs
from goat_mcp.files.search.python_engine.ignore_rules import Rules

_SPECIAL = re.compile(r"([\\*?\[\]{}!# ])")


def rules_of_globs(globs: str, *, below: str) -> tuple[str, ...]:
    """Hide what a list of globs does not name: `*.py, !test_*` keeps Python files that are no tests.

    A glob without a slash fits at any depth. `below` is the absolute path the search starts in; globs
    may start with it. Raises `BadGlob`.
    """
    wanted: list[str] = []
    unwanted: list[str] = []
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
        (unwanted if negated else wanted).append(bare)
    rules = [f"!{glob}" for glob in wanted]
    if wanted:
        rules = ["*", "!*/", *rules]
    return (*rules, *unwanted)


def rules_of_directory(names: Sequence[str]) -> tuple[str, ...]:
    """Hide all that is not below the directory with these names."""
    rules: list[str] = []
    parent = ""
    for name in names:
        rules += [f"{parent}/*", f"!{parent}/{literal_rule(name)}"]
        parent += f"/{literal_rule(name)}"
    return tuple(rules)


class RuledPaths:
    """Tells whether path rules leave a file (relative, `./` in front): it, or a directory above it, may be hidden."""

    def __init__(self, path_rules: Sequence[str]) -> None:
        self._rules = Rules.parse(path_rules)
        self._open_directories = {".": True}

    def leave(self, path: str) -> bool:
        directory = path.rpartition("/")[0]
        return self._is_open(directory) and not self._rules.decide(path[2:], is_directory=False)

    def _is_open(self, directory: str) -> bool:
        known = self._open_directories.get(directory)
        if known is None:
            above = directory.rpartition("/")[0]
            known = self._is_open(above) and not self._rules.decide(directory[2:], is_directory=True)
            self._open_directories[directory] = known
        return known


def literal_rule(name: str) -> str:
    """A name as it must be written in an ignore file to mean only itself."""
    return _SPECIAL.sub(r"\\\1", name)
