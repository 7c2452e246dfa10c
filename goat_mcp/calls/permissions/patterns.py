"""Patterns in rules: of paths, as ignore files write them (`./secrets/**`, `.env`, `//etc/**`, `~/.ssh/**`); of text.

A pattern that matches a directory matches all that is in it. The workspace decides whether a path may be read at all.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from goat_mcp.files.search.glob_pattern import BadGlob, expand_braces, has_magic, names_expression


def text_pattern(text: str) -> Callable[[str], object]:
    """A function that tells whether a whole text is meant. Raises `ValueError` for an empty pattern."""
    if not text:
        raise ValueError("the pattern is empty")
    # Each part is found as early as it can be and never looked for again: no pattern makes this slow.
    first, *rest = re.sub(r"\*+", "*", text).split("*")
    parts = [re.escape(first), *(f"(?>.*?{re.escape(part)})" for part in rest[:-1])]
    last = f".*{re.escape(rest[-1])}" if rest else ""
    return re.compile("".join(parts) + last, re.DOTALL).fullmatch


_WORKTREES = ".worktrees/"
_FLAGS = re.DOTALL if sys.platform == "linux" else re.DOTALL | re.IGNORECASE
"""Elsewhere two spellings are one file."""


@dataclass(frozen=True)
class PathPattern:
    """One parsed pattern. `anchor` is the absolute directory it is relative to; empty: each root of the workspace.

    `expression` is a regular expression for what follows the anchor; `relative` the path itself, if it `is_exact`.
    """

    anchor: str
    is_exact: bool
    relative: str
    expression: str

    def is_path(self, path: str, roots: Sequence[str]) -> bool:
        """Whether an exact pattern is this very path, and not a directory above it."""
        anchors: Iterable[str] = (self.anchor,) if self.anchor else roots
        return self.is_exact and any(path == f"{anchor.rstrip('/')}/{self.relative}" for anchor in anchors)

    @cached_property
    def _is_match(self) -> Callable[[str], object]:
        return re.compile(self.expression, _FLAGS).fullmatch

    def matches(self, path: str, roots: Sequence[str], *, copies: bool = True) -> bool:
        """Whether an absolute path is meant. With `copies`, also where it is that of a copy in an agent's worktree."""
        return any(self._is_match(rest) for rest in _rests(path, self.anchor, roots, copies))


class PathPatterns:
    """Many patterns at once: tells in one look that a path is none of them, which is the usual case."""

    def __init__(self, patterns: Iterable[PathPattern]) -> None:
        by_anchor: dict[str, list[str]] = {}
        for pattern in patterns:
            by_anchor.setdefault(pattern.anchor, []).append(f"(?:{pattern.expression})")
        self._is_match = {
            anchor: re.compile("|".join(expressions), _FLAGS).fullmatch for anchor, expressions in by_anchor.items()
        }

    def match(self, path: str, roots: Sequence[str]) -> bool:
        return any(
            is_match(rest) for anchor, is_match in self._is_match.items() for rest in _rests(path, anchor, roots, True)
        )


def _rests(path: str, anchor: str, roots: Sequence[str], copies: bool) -> Iterator[str]:
    """What of a path follows an anchor, or each root where there is none."""
    for start in (anchor,) if anchor else roots:
        below = start if start.endswith("/") else f"{start}/"
        if path.startswith(below):
            rest = path[len(below) :]
            yield rest
            if copies and not anchor and rest.startswith(_WORKTREES):
                # What is forbidden of a file is forbidden of its copy.
                _, _, copied = rest[len(_WORKTREES) :].partition("/")
                if copied:
                    yield copied


def parse_path_pattern(text: str, base: str = "") -> PathPattern:
    """`//x` is absolute, `~/x` lies below the home directory, `/x` below `base` (empty: each root), all else below
    each root; a name without a slash fits at any depth. Raises `ValueError` with what is wrong.

    Source: Claude Code, "Permissions", Read and Edit rules.
    """
    rest, anchor = text, ""
    if text.startswith("//"):
        rest, anchor = text[2:], "/"
    elif text == "~" or text.startswith("~/"):
        rest, anchor = text[2:], str(Path.home())
    elif text.startswith("/"):
        rest, anchor = text[1:], base
    is_anchored = anchor != "" or text.startswith("/") or "/" in rest.rstrip("/")
    rest = rest.removeprefix("./")
    names = [name for name in rest.split("/") if name and name != "."]
    if rest.startswith("!"):
        raise ValueError("a rule cannot except paths with `!`; write a second rule")
    if ".." in names:
        raise ValueError("`..` leads out of what the pattern is relative to; write an absolute one, `//path`")
    if text.startswith("@/"):
        raise ValueError("`@` is for the arguments of calls; write a path of the workspace as `/path`")
    if text.startswith(("\\", "file:")) or "\0" in text:
        raise ValueError("write paths with `/`, absolute ones as `//path`")
    if not names and not (text.startswith("//") or text in ("~", "~/", "/", "./", ".")):
        raise ValueError("the pattern is empty")
    expressions: list[str] = []
    try:
        for alternative in expand_braces("/".join(names)):
            found = [name for name in alternative.split("/") if name]
            expressions.append(names_expression(found if is_anchored or not found else ["**", *found]))
        expression = "|".join(f"(?:{one})(?:/.*)?" for one in expressions) if names else ".*"
        re.compile(expression, _FLAGS)
    except (BadGlob, re.error) as bad:
        raise ValueError(str(bad)) from None
    joined = "/".join(names)
    is_exact = is_anchored and not has_magic(re.sub(r"\\.", "", joined))
    return PathPattern(anchor, is_exact, re.sub(r"\\(.)", r"\1", joined), expression)


def exact_path_pattern(path: str) -> str:
    """The pattern that means this absolute path and no other."""
    return "/" + re.sub(r"([\\*?\[\]{}!])", r"\\\1", path)
