"""What ignore files mean: which rule decides about a path, in ripgrep's order of precedence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from goat_mcp.files.search.glob_pattern import BadGlob, expand_braces, names_expression

Matcher = Callable[[str], object]


@dataclass(frozen=True)
class Rule:
    """One line. `brings_back` is a line that starts with `!`."""

    matches: Matcher
    brings_back: bool
    only_directories: bool


@dataclass(frozen=True)
class Rules:
    """One ignore file. Paths are relative to the directory it speaks for; its last matching line decides."""

    rules: tuple[Rule, ...]

    @classmethod
    def parse(cls, lines: Iterable[str]) -> Rules:
        return cls(tuple(rule for line in lines if (rule := _rule(line)) is not None))

    def decide(self, path: str, is_directory: bool) -> bool | None:
        """True: ignored; False: brought back; None: no line says anything."""
        for rule in reversed(self.rules):
            if (is_directory or not rule.only_directories) and rule.matches(path):
                return not rule.brings_back
        return None


@dataclass(frozen=True)
class Level:
    """The ignore files of one directory, by kind, and how a path is written relative to it.

    `prefix` stands before a path (relative to where the search starts) for a directory above; `depth` is the
    number of names to drop for one below.
    """

    by_kind: tuple[Rules | None, ...]
    prefix: str
    depth: int
    is_repository: bool

    def path_here(self, names: Sequence[str]) -> str:
        return self.prefix + "/".join(names[self.depth :])


def parse_lines(data: bytes) -> Rules:
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    return Rules.parse(line.removesuffix("\r") for line in text.split("\n"))


def _rule(line: str) -> Rule | None:
    if line.startswith("#"):
        return None
    brings_back = line.startswith("!")
    pattern = _without_trailing_blanks(line[1:] if brings_back else line)
    if pattern.startswith("\\") and pattern[1:2] in ("!", "#"):
        pattern = pattern[1:]
    only_directories = pattern.endswith("/")
    pattern = pattern.rstrip("/") if only_directories else pattern
    is_anchored = "/" in pattern
    pattern = pattern.lstrip("/")
    if not pattern:
        return None
    try:
        expressions = [
            names_expression([*([] if is_anchored else ["**"]), *_names(alternative)])
            for alternative in expand_braces(pattern)
        ]
        compiled = re.compile("|".join(expressions), re.DOTALL)
    except (BadGlob, re.error):
        return None  # as ripgrep does: a line that is no pattern says nothing
    return Rule(compiled.fullmatch, brings_back, only_directories)


def _without_trailing_blanks(text: str) -> str:
    stripped = text.rstrip(" \t")
    if stripped.endswith("\\") and len(stripped) < len(text):
        return stripped + text[len(stripped)]
    return stripped


def _names(pattern: str) -> list[str]:
    names: list[str] = []
    for name in pattern.split("/"):
        if name and not (name == "**" and names and names[-1] == "**"):
            names.append(name)
    return names


def decide(
    levels: Sequence[Level], everywhere: Sequence[Rules | None], names: Sequence[str], is_directory: bool
) -> bool:
    """Whether a path (names from the start of the search) is ignored.

    A kind of file (.rgignore, .ignore, .gitignore, exclude) outranks the next one at whatever level it lies;
    within a kind the deepest level decides. Git's kinds end at the top of the repository.
    """
    kinds = len(levels[0].by_kind) if levels else 0
    for kind in range(kinds):
        is_of_git = kind >= _FIRST_KIND_OF_GIT
        for level in reversed(levels):
            rules = level.by_kind[kind]
            if rules is not None:
                decision = rules.decide(level.path_here(names), is_directory)
                if decision is not None:
                    return decision
            if is_of_git and level.is_repository:
                break
    for rules in everywhere:
        if rules is not None:
            decision = rules.decide("/".join(names), is_directory)
            if decision is not None:
                return decision
    return False


_FIRST_KIND_OF_GIT = 2
