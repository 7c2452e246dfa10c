"""The engine of Glob and Grep: ripgrep where there is one, else our own, behind one door.

Blocking; nothing starts before the first search. Ordering, paging and words belong to the callers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.files.search import ripgrep
from goat_mcp.files.search.clock import SearchClock
from goat_mcp.files.search.engine_process import EngineRun, running
from goat_mcp.files.search.file_types import FILE_TYPES
from goat_mcp.files.search.path_rules import RuledPaths
from goat_mcp.files.search.python_engine.command import PythonEngine
from goat_mcp.files.search.query import Query, Report, Target
from goat_mcp.files.search.records import FoundLine, GroupEnd, read_counts, read_lines, read_paths
from goat_mcp.files.search.ripgrep import Ripgrep, find_ripgrep
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.landlock import Landlock

_MAX_REASON_CHARS = 600


def show_all(path: str) -> bool:
    return True


@dataclass(frozen=True)
class SearchEngine:
    """Which engine searches, and how.

    Args:
        engine: "auto" takes ripgrep where it is found; "python" is for tests and for machines whose rg is broken.
        threads: of ripgrep; 0 leaves it to ripgrep. Source: goa `search.threads`.
        program: the rg to use instead of the one found.
        guard: ends a running engine when this process is killed.
        shows: whether an absolute path may appear in a result. Every path of every result passes it.
    """

    engine: Literal["auto", "ripgrep", "python"] = "auto"
    threads: int = 0
    program: str | None = None
    guard: ProcessGuard | None = None
    landlock: Landlock = field(default_factory=Landlock)
    shows: Callable[[str], bool] = show_all

    @cached_property
    def chosen(self) -> Ripgrep | PythonEngine:
        program = None if self.engine == "python" else self.program or find_ripgrep()
        if program is None and self.engine == "ripgrep":
            raise ToolError(ErrorCode.NOT_CONFIGURED, "ripgrep was asked for and is not installed", "Install ripgrep.")
        return PythonEngine() if program is None else Ripgrep(program, self.threads)

    def search(self, target: Target, clock: SearchClock) -> Search:
        return Search(self, target, clock, self.chosen)


@dataclass
class Search:
    """All runs over one target. Paths it gives are relative and begin with `./`, or are `<stdin>` for a file.

    `is_partial` tells that some files could not be read. What the pattern needs (look-around) or the machine
    lacks (threads) is found out once and kept for the next run. `ignored` are the entries that ignore rules hid from
    the last run; None where that is not known.
    """

    options: SearchEngine
    target: Target
    clock: SearchClock
    engine: Ripgrep | PythonEngine
    is_partial: bool = False
    looks_around: bool = False
    ignored: tuple[str, ...] | None = None

    def part(self, limit_s: float) -> Search:
        """The same search with less time."""
        return replace(self, clock=self.clock.at_most(limit_s))

    def adopt(self, part: Search) -> None:
        """Take over what a part of this search found out."""
        self.engine, self.looks_around = part.engine, part.looks_around
        self.is_partial |= part.is_partial
        self.ignored = part.ignored

    def mtime_ns(self, path: str) -> int:
        """When the file was changed last; 0 if that cannot be told."""
        if not self.target.is_directory:
            return 0
        try:
            return os.stat(path, dir_fd=self.target.fd, follow_symlinks=False).st_mtime_ns
        except OSError:
            return 0

    def files(self, query: Query) -> Generator[list[str]]:
        """Files that the query's rules and depth leave, in no order. Ignore files may keep some that its rules hide."""
        return self._names(query, "files", self._shown_only())

    def matching(self, query: Query, paths: Sequence[str] = ()) -> Generator[list[str]]:
        """Files with a match, in the whole target or in `paths`. Raises `ToolError(PATTERN)`, as the next two do."""
        return self._names(query, "matching", self._chosen_by(query), paths)

    def counts(self, query: Query) -> Generator[list[tuple[str, int]]]:
        """Files with a match and how many of their lines match."""
        is_chosen = self._chosen_by(query)
        for found in read_counts(self._run(query, "counts")):
            yield found if is_chosen is None else [(path, count) for path, count in found if is_chosen(path)]

    def lines(self, query: Query, paths: Sequence[str] = ()) -> Generator[FoundLine | GroupEnd]:
        """Matching lines and their context in `paths`, in this order, or in the target if that is a file."""
        if self.target.is_directory or self._shows(""):
            yield from read_lines(self._run(query, "lines", paths))

    def shown(self, path: str) -> str:
        """The absolute path that a relative one of this search stands for."""
        return f"{self.target.shown.rstrip('/')}/{path[2:]}" if self.target.is_directory else self.target.shown

    def _names(
        self, query: Query, report: Report, is_chosen: Callable[[str], bool] | None, paths: Sequence[str] = ()
    ) -> Generator[list[str]]:
        for found in read_paths(self._run(query, report, paths)):
            yield found if is_chosen is None else list(filter(is_chosen, found))

    def _shows(self, path: str) -> bool:
        """By the path as it was asked for, and by the real one: a link may have led to the start of the search."""
        shows, target = self.options.shows, self.target
        if shows is show_all:
            return True
        real = f"{target.real_path.rstrip('/')}/{path[2:]}" if target.is_directory else target.real_path
        return shows(self.shown(path)) and (target.real_path == target.shown or shows(real))

    def _shown_only(self) -> Callable[[str], bool] | None:
        return None if self.options.shows is show_all else self._shows

    def _chosen_by(self, query: Query) -> Callable[[str], bool] | None:
        """Which of the paths that an engine found belong to the answer; None: all. A named file always does."""
        if not query.path_rules or not self.target.is_directory:
            return self._shown_only()
        leave = RuledPaths(query.path_rules).leave
        return leave if self.options.shows is show_all else lambda path: leave(path) and self._shows(path)

    def _run(self, query: Query, report: Report, paths: Sequence[str] = ()) -> Generator[bytes]:
        while True:
            asked = replace(query, look_around=True) if self.looks_around else query
            command = self.engine.command(asked, report, self.target, paths)
            has_output = False
            try:
                with running(command, self.target, self.clock, self.options.landlock) as run, self._guarded(run):
                    for chunk in run.chunks():
                        has_output = True
                        yield chunk
            except OSError:
                if isinstance(self.engine, PythonEngine) or has_output:
                    raise
                self.engine = PythonEngine()  # an rg that cannot be started is as good as none
                continue
            if run.exit_code == PythonEngine.STUCK:
                self.clock.timed_out = True
            complaint = self._understood(run, asked, report)
            if self.clock.is_over or run.exit_code in (0, 1):
                return
            if has_output or not self._mended(asked, complaint):
                self.is_partial = True
                return

    def _understood(self, run: EngineRun, query: Query, report: Report) -> str:
        """What the engine complained of, without its notes on what it left out; those are kept."""
        self.ignored = None
        if not isinstance(self.engine, Ripgrep) or not ripgrep.names_ignored(query, report, self.target):
            return run.complaint
        if run.is_complaint_whole and run.exit_code in (0, 1):
            self.ignored = ripgrep.ignored_entries(run.complaint)
        return ripgrep.without_notes(run.complaint)

    def _mended(self, query: Query, complaint: str) -> bool:
        """Whether another try can do better. Raises `ToolError` where the question itself is wrong."""
        if ripgrep.wants_look_around(complaint) and not query.look_around:
            self.looks_around = True
            return True
        reason = ripgrep.bad_pattern(complaint)
        if reason is not None:
            raise bad_pattern(reason)
        if ripgrep.unknown_type(complaint):
            raise unknown_type(query.file_type or "")
        if isinstance(self.engine, Ripgrep) and self.engine.threads != 1 and ripgrep.lacks_resources(complaint):
            self.engine = replace(self.engine, threads=1)
            return True
        return False

    @contextmanager
    def _guarded(self, run: EngineRun) -> Generator[None]:
        guard = self.options.guard
        if guard is None:
            yield
            return
        guard.watch(run.process.pid)
        try:
            yield
        finally:
            guard.forget(run.process.pid)


def bad_pattern(reason: str) -> ToolError:
    if "limit exceeded" in reason:
        suggestion = "Simplify the pattern: one repetition inside another costs too much here. Or search fewer files."
    elif "not allowed in a regex" in reason:
        suggestion = "Set multiline to true to match across lines."
    else:
        suggestion = (
            "Correct the regular expression; escape ( ) [ ] { } . * + ? with a backslash to mean them literally."
        )
    return ToolError(ErrorCode.PATTERN, cut_middle(reason, _MAX_REASON_CHARS), suggestion)


def unknown_type(name: str) -> ToolError:
    from difflib import get_close_matches  # only an error needs it

    near = get_close_matches(name, FILE_TYPES, n=3)
    return ToolError(
        ErrorCode.INPUT,
        f"type: unknown file type {cut_middle(name, 60)!r}",
        f"Did you mean {' or '.join(near)}?" if near else "Use a type such as py, js, ts, go, rust, java, md, or glob.",
    )
