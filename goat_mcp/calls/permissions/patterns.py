"""Patterns in rules: of paths, as ignore files write them (`./secrets/**`, `.env`, `//etc/**`, `~/.ssh/**`); of text.

A pattern that matches a directory matches all that is in it. The workspace decides whether a path may be read at all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from pathlib import Path

from goat_mcp.core import platform
from goat_mcp.files.search.glob_pattern import BadGlob, expand_braces, has_magic, names_expression
from goat_mcp.files.workspace.directory import folds_names, lies_in
from goat_mcp.files.workspace.names import comparable
from goat_mcp.files.workspace.windows_paths import as_in_rules
from goat_mcp.processes.wsl import wsl_paths


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
_ESCAPED, _UNESCAPED = re.compile(r"\\(.)"), r"\1"
_IsMatch = Callable[[str], object]


@dataclass(frozen=True)
class PathPattern:
    """One parsed pattern. `anchor` is the absolute directory it is relative to; empty: each root of the workspace.

    `glob` is for what follows the anchor, or with `at_any_depth` for the end of it; `relative` the path itself, if it
    `is_exact`.
    """

    anchor: str
    is_exact: bool
    relative: str
    glob: str
    at_any_depth: bool

    def is_path(self, path: str, roots: Sequence[str]) -> bool:
        """Whether an exact pattern is this very path, and not a directory above it."""
        path, roots = as_in_rules(path), tuple(map(as_in_rules, roots))
        anchors: Iterable[str] = (self.anchor,) if self.anchor else roots
        return self.is_exact and any(path == f"{anchor.rstrip('/')}/{self.relative}" for anchor in anchors)

    @cached_property
    def _alone(self) -> PathPatterns:
        return PathPatterns((self,))

    def matches(self, path: str, roots: Sequence[str], *, copies: bool = True) -> bool:
        """Whether an absolute path is meant. `copies` is for what is forbidden: also if it is that of a copy in an
        agent's worktree, or of where links in the pattern lead."""
        return self._alone.match(path, roots, copies=copies)

    @cached_property
    def expression(self) -> str:
        """A regular expression for what follows the anchor. Raises `BadGlob`."""
        return self._expression(self.glob)

    @cached_property
    def real(self) -> PathPattern | None:
        """The same where the links lead that are in its part without wildcards (`//tmp/x` is `//private/tmp/x` on
        macOS); None if there are none. What is allowed must not go by it: others may have made such a link."""
        if not self.anchor or platform.SYSTEM == "windows":
            return None
        names = self.glob.split("/")
        fixed = list(takewhile(lambda name: not has_magic(re.sub(r"\\.", "", name)), names))
        path = f"{self.anchor.rstrip('/')}/{_ESCAPED.sub(_UNESCAPED, '/'.join(fixed))}"
        real = os.path.realpath(path)
        if real.rstrip("/") == path.rstrip("/"):
            return None
        glob = "/".join([_escaped(real), *names[len(fixed) :]])
        return PathPattern("/", self.is_exact, real.strip("/"), glob.strip("/"), at_any_depth=False)

    @cached_property
    def folded_expression(self) -> str:
        """The same for what `comparable` makes of it, to be compared without case."""
        if not self.glob.isascii():
            with suppress(BadGlob):  # a range of letters may be none any more
                return f"{self.expression}|{self._expression(comparable(self.glob))}"
        return self.expression

    def _expression(self, glob: str) -> str:
        if not glob:
            return ".*"
        names = ([name for name in one.split("/") if name] for one in expand_braces(glob))
        prefix = ["**"] if self.at_any_depth else []
        return "|".join(f"(?:{names_expression(one and [*prefix, *one])})(?:/.*)?" for one in names)


class PathPatterns:
    """Many patterns at once: tells in one look that a path is none of them, which is the usual case.

    If the file system takes differently spelled names for one, they are compared as it does (`comparable`).
    """

    def __init__(self, patterns: Iterable[PathPattern]) -> None:
        self._patterns = tuple(patterns)

    @cached_property
    def _real(self) -> PathPatterns | None:
        real = tuple(one.real for one in self._patterns if one.real is not None)
        return PathPatterns(real) if real else None

    @cached_property
    def _exact(self) -> Mapping[str, _IsMatch]:
        return _by_anchor(((one.anchor, one.expression) for one in self._patterns), re.DOTALL)

    @cached_property
    def _folded(self) -> Mapping[str, _IsMatch]:
        spellings = ((comparable(one.anchor), one.folded_expression) for one in self._patterns)
        return _by_anchor(spellings, re.DOTALL | re.IGNORECASE)

    def match(self, path: str, roots: Sequence[str], *, copies: bool = True) -> bool:
        is_folded = _is_folded(path, roots)
        path, roots = as_in_rules(path), tuple(map(as_in_rules, roots))
        if _is_any(self._exact, path, roots, copies):
            return True
        if is_folded and _is_any(self._folded, comparable(path), tuple(map(comparable, roots)), copies):
            return True
        return copies and self._real is not None and self._real.match(path, (), copies=False)


def _by_anchor(expressions: Iterable[tuple[str, str]], flags: re.RegexFlag) -> Mapping[str, _IsMatch]:
    found: dict[str, list[str]] = {}
    for anchor, expression in expressions:
        found.setdefault(anchor, []).append(expression)
    return {anchor: re.compile("|".join(some), flags).fullmatch for anchor, some in found.items()}


def _is_any(matchers: Mapping[str, _IsMatch], path: str, roots: Sequence[str], copies: bool) -> bool:
    return any(is_match(rest) for anchor, is_match in matchers.items() for rest in _rests(path, anchor, roots, copies))


def _is_folded(path: str, roots: Sequence[str]) -> bool:
    """Whether another spelling of a path may be the same file: as its root has it, else its directory."""
    if platform.SYSTEM == "windows":
        return True
    around = [root for root in roots if lies_in(path, root)] or [path.rpartition("/")[0] or "/"]
    return any(map(folds_names, around))


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
    each root; a name without a slash fits at any depth. On Windows drives are directories (`//c/x`). There and in WSL
    `C:\\x` and `C:/x` are read as absolute. Raises `ValueError` with what is wrong.

    Source: Claude Code, "Permissions", Read and Edit rules.
    """
    if re.match(r"[A-Za-z]:[\\/]", text):
        if platform.SYSTEM == "windows":
            text = f"/{as_in_rules(text)}"
        elif platform.IN_WSL:
            text = f"/{wsl_paths().drives}/{text[0].lower()}{text[2:]}".replace("\\", "/")
    rest, anchor = text, ""
    if text.startswith("//"):
        rest, anchor = text[2:], "/"
    elif text == "~" or text.startswith("~/"):
        rest, anchor = text[2:], as_in_rules(str(Path.home()))
    elif text.startswith("/"):
        rest, anchor = text[1:], as_in_rules(base)
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
    joined = "/".join(names)
    is_exact = is_anchored and not has_magic(re.sub(r"\\.", "", joined))
    pattern = PathPattern(anchor, is_exact, _ESCAPED.sub(_UNESCAPED, joined), joined, not is_anchored)
    try:
        re.compile(pattern.expression, re.DOTALL)
    except (BadGlob, re.error) as bad:
        raise ValueError(str(bad)) from None
    return pattern


def exact_path_pattern(path: str) -> str:
    """The pattern that means this absolute path and no other."""
    return f"/{_escaped(as_in_rules(path))}"


def _escaped(path: str) -> str:
    return re.sub(r"([\\*?\[\]{}!])", r"\\\1", path)
