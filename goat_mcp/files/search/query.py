"""What is asked of an engine, whichever it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

Report = Literal["files", "matching", "counts", "lines"]
"""Every file; files with a match; matches counted per file; the matching lines themselves."""

MAX_SHOWN_COLUMNS = 500
"""Longer lines are shown as a preview of this many characters."""
MAX_LINE_COLUMNS = MAX_SHOWN_COLUMNS + 2
"""What an engine reports of a line: with its end, and so that a line of just the length above is seen to be whole."""

VCS_DIRECTORIES = (".git", ".jj", ".sl", ".hg", ".svn")
"""Never listed or searched, unless a search starts inside one."""


DATA_MARK = "{data}"
"""In an argument of a `Command`: the path its data can be read from."""


@dataclass(frozen=True)
class Query:
    """One search, in the terms both engines share.

    `path_rules` are lines in `.gitignore` syntax, rooted where the search starts, that hide more files;
    the repository's own ignore files keep their say. `max_depth` 1 is the start directory alone.
    """

    patterns: tuple[str, ...] = ()
    literal: bool = False
    ignore_case: bool = False
    multiline: bool = False
    only_matching: bool = False
    look_around: bool = False
    before: int = 0
    after: int = 0
    file_type: str | None = None
    path_rules: tuple[str, ...] = ()
    max_depth: int | None = None
    include_ignored: bool = False

    @classmethod
    def from_json(cls, members: dict[str, Any]) -> Query:
        """Back from `dataclasses.asdict` and JSON, which knows no tuples."""
        query = cls(**members)
        return replace(query, patterns=tuple(query.patterns), path_rules=tuple(query.path_rules))


@dataclass(frozen=True)
class Command:
    """How to start an engine: its arguments, and data it reads from a descriptor named in them.

    `DATA_MARK` in an argument stands for the path of that descriptor. A `confined` engine can open nothing but what
    it searches and the files named in `readable`, as far as the kernel offers that.
    """

    program: str
    arguments: tuple[str | bytes, ...]
    data: bytes | None = None
    confined: bool = False
    readable: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """Where to search: an open directory, or one open regular file.

    `shown` is its absolute path as the caller knows it, `real_path` where it really is.
    """

    fd: int
    is_directory: bool
    shown: str
    real_path: str
