"""Glob: find files by name."""

from __future__ import annotations

import heapq
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import ClassVar

from pydantic import Field

from goat_mcp.core import platform
from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import BuiltinTool
from goat_mcp.files.documents.visible_text import visible_line
from goat_mcp.files.search.deadline import SearchDeadline, in_thread
from goat_mcp.files.search.engine import Search, SearchEngine
from goat_mcp.files.search.glob_pattern import BadGlob, GlobPattern, has_magic, slashed
from goat_mcp.files.search.path_rules import rules_of_directory
from goat_mcp.files.search.query import Query, Target
from goat_mcp.files.settings import SearchLimits
from goat_mcp.files.workspace import Workspace, WorkspacePath

_NOTHING = "No files found"
MAX_ENTRIES = 1_000_000
_SECOND_LOOK_S = 5.0


class GlobInput(ToolInput):
    pattern: str
    path: str | None = Field(None, description="directory, default workspace root")
    include_ignored: bool = False
    limit: int = Field(100, ge=1, le=1000)

    aliases: ClassVar[Mapping[str, str]] = {"directory": "path", "no_ignore": "include_ignored"}


@dataclass(frozen=True)
class Glob(BuiltinTool[GlobInput], side_effect=SideEffect.NONE, toolset="core", title="Find files", always_load=True):
    """Find files by glob pattern: "**/*.py" at any depth, "*.py" in the directory itself, "src/**/*.{ts,tsx}".

    Returns absolute paths, newest first. Hidden files are included, ignored ones (.gitignore) only if asked for.
    """

    workspace: Workspace
    engine: SearchEngine
    limits: SearchLimits = field(default_factory=SearchLimits)

    examples = (
        ToolExample("All Python files, newest first", {"pattern": "**/*.py"}),
        ToolExample("Two kinds below a directory", {"pattern": "**/*.{ts,tsx}", "path": "@src"}),
    )

    async def execute(self, input: GlobInput, ctx: ToolContext) -> ToolResult:
        if "limit" not in input.model_fields_set:
            input = input.model_copy(update={"limit": ctx.setting("search.glob_limit", self.limits.glob_limit)})
        start = self._start(input)
        listing, shown = await in_thread(lambda deadline: self._find(start, input, deadline))
        return _answer(listing, shown)

    def _start(self, input: GlobInput) -> _Start:
        """Where to start, and the pattern below it. An absolute pattern, or `..` in it, moves the start."""
        pattern = input.pattern
        if "\0" in pattern:
            raise ToolError(ErrorCode.PATTERN, f"the pattern holds a NUL character: {pattern!r}", "Send it without.")
        if pattern.startswith("@/"):
            pattern = str(self.workspace.primary) + pattern[1:]
        pattern = slashed(pattern)
        drive = pattern[:2] if platform.SYSTEM == "windows" and pattern[1:3] == ":/" else ""
        pattern = pattern.removeprefix(drive)
        is_absolute = pattern.startswith("/")
        names = [name for name in pattern.split("/") if name not in ("", ".")]
        leading = 0
        while leading < len(names) - 1 and not has_magic(names[leading]):
            leading += 1
        if not is_absolute:
            ups = [level for level, name in enumerate(names) if name == ".."]
            leading = min(leading, ups[-1] + 1) if ups else 0
        rest = names[leading:]
        if not rest or ".." in rest:
            raise ToolError(ErrorCode.PATTERN, f"no pattern for files: {cut_middle(pattern, 200)}", "Try **/*.py.")
        base = drive if is_absolute else (input.path or str(self.workspace.primary)).rstrip("/")
        moved = "/".join([base, *names[:leading]])
        if moved == drive:
            moved += "/"
        return _Start(self.workspace.resolve(moved), "/".join(rest), may_be_missing=leading > 0)

    def _find(self, start: _Start, input: GlobInput, deadline: SearchDeadline) -> tuple[Listing, list[str]]:
        try:
            pattern = GlobPattern.parse(start.pattern)
        except BadGlob as bad:
            literal = self._literal(start)
            if literal is None:
                message = f"{bad}: {cut_middle(start.pattern, 200)}"
                raise ToolError(ErrorCode.PATTERN, message, "Put a backslash before [ or { to mean it.") from None
            return Listing([], total=1), [literal]
        try:
            opened = self.workspace.open_directory(start.root)
        except ToolError as missing:
            if missing.code is ErrorCode.NOT_FOUND and start.may_be_missing:
                return Listing([]), []
            raise
        with opened:
            shown = str(opened.real_path if ".." in start.root.relative.split("/") else start.root)
            search = self.engine.search(Target(opened.directory, shown, str(opened.real_path)), deadline)
            listing = list_newest(search, pattern, input.limit, include_ignored=input.include_ignored)
            paths = [search.shown(path) for path in listing.paths]
        literal = self._literal(start) if has_magic(start.pattern) else None
        if literal is not None and literal not in paths:
            # the caller named this very file, whatever else the pattern may mean
            if listing.only_ignored:
                listing, paths = Listing([]), []
            listing.total += 1
            paths = [literal, *paths][: input.limit]
        return listing, paths

    def _literal(self, start: _Start) -> str | None:
        """The file whose name is the pattern itself (`data[2].csv`), if there is one."""
        try:
            path = self.workspace.resolve(f"{start.root}/{start.pattern}")
            found = self.workspace.stat(path)
        except ToolError:
            return None
        if found is None or not stat.S_ISREG(found.st_mode) or not self.engine.shows(str(path)):
            return None
        return str(path)


@dataclass(frozen=True)
class _Start:
    root: WorkspacePath
    pattern: str
    may_be_missing: bool


@dataclass
class Listing:
    """The first paths (relative, `./` in front), newest first, and how many there are.

    `only_ignored`: nothing else matched. `deeper`: if nothing matched, how many files further down do.
    """

    paths: list[str]
    total: int = 0
    is_complete: bool = True
    timed_out: bool = False
    too_many: bool = False
    only_ignored: bool = False
    deeper: int = 0


def list_newest(search: Search, pattern: GlobPattern, limit: int, *, include_ignored: bool) -> Listing:
    """Walk once; if nothing matches, once more for ignored files and, for a bare name, for deeper ones."""
    query = Query(
        path_rules=rules_of_directory(pattern.literal_names),
        max_depth=pattern.max_depth,
        include_ignored=include_ignored,
    )
    found = _walk(search, query, pattern.expression, limit)
    if found.total or search.deadline.is_over:
        return found
    if not include_ignored:
        hidden = _walk(search.part(_SECOND_LOOK_S), replace(query, include_ignored=True), pattern.expression, limit)
        if hidden.total:
            hidden.only_ignored = True
            return hidden
    if "/" not in pattern.text and not search.deadline.is_over:
        deeper = _walk(search.part(_SECOND_LOOK_S), replace(query, max_depth=None), f".*/(?:{pattern.expression})", 1)
        found.deeper = deeper.total
    return found


def _walk(search: Search, query: Query, expression: str, limit: int) -> Listing:
    matches = re.compile(rf"\./(?:{expression})", re.DOTALL).fullmatch
    listing = Listing([])
    start = search.target.opened
    assert not isinstance(start, int)

    def entries() -> Iterator[tuple[int, str]]:
        listed = total = 0
        for paths in batches:
            listed += len(paths)
            for path in filter(matches, paths):
                try:
                    mtime_ns = start.stat(path).st_mtime_ns
                except OSError:
                    continue  # gone since it was listed
                total += 1
                yield -mtime_ns, path
            listing.total = total
            if listed > MAX_ENTRIES:
                listing.too_many = True
                return

    with closing(search.files(query)) as batches:
        listing.paths = [path for _, path in heapq.nsmallest(limit, entries())]
    listing.timed_out = search.deadline.timed_out
    listing.is_complete = not listing.too_many and not listing.timed_out and not search.is_partial
    return listing


def _answer(listing: Listing, shown: list[str]) -> ToolResult:
    notices: list[str] = []
    is_truncated = listing.total > len(shown)
    if listing.only_ignored:
        notices.append("only ignored files matched")
    if is_truncated:
        more = "" if listing.is_complete else "+"
        notices.append(f"{len(shown)} of {listing.total}{more} shown, newest first")
    if listing.timed_out:
        notices.append("timed out, list incomplete")
    elif listing.too_many:
        notices.append(f"stopped after {MAX_ENTRIES:,} files, list incomplete; name a subdirectory")
    elif not listing.is_complete:
        notices.append("some directories could not be read, list incomplete")
    if listing.deeper:
        notices.append(f"{listing.deeper} files match in subdirectories; put **/ before the pattern")
    facts = {
        "total": listing.total,
        "count_is_complete": listing.is_complete,
        "timed_out": listing.timed_out,
        "truncated": is_truncated,
    }
    return text_result("\n".join(map(visible_line, shown)) or _NOTHING, facts=facts, notices=notices)
