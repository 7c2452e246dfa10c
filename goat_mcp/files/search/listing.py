"""Finding files by name: the newest of all that a pattern matches."""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace

from goat_mcp.files.search.engine import Search
from goat_mcp.files.search.glob_pattern import GlobPattern
from goat_mcp.files.search.path_rules import rules_of_directory
from goat_mcp.files.search.query import Query

MAX_ENTRIES = 1_000_000
_SECOND_LOOK_S = 5.0


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
    if found.total or search.clock.is_over:
        return found
    if not include_ignored:
        hidden = _walk(search.part(_SECOND_LOOK_S), replace(query, include_ignored=True), pattern.expression, limit)
        if hidden.total:
            hidden.only_ignored = True
            return hidden
    if "/" not in pattern.text and not search.clock.is_over:
        deeper = _walk(search.part(_SECOND_LOOK_S), replace(query, max_depth=None), f".*/(?:{pattern.expression})", 1)
        found.deeper = deeper.total
    return found


def _walk(search: Search, query: Query, expression: str, limit: int) -> Listing:
    matches = re.compile(rf"\./(?:{expression})", re.DOTALL).fullmatch
    fd = search.target.fd
    listing = Listing([])
    lstat = os.lstat

    def entries() -> Iterator[tuple[int, str]]:
        listed = total = 0
        for paths in batches:
            listed += len(paths)
            for path in filter(matches, paths):
                try:
                    mtime_ns = lstat(path, dir_fd=fd).st_mtime_ns
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
    listing.timed_out = search.clock.timed_out
    listing.is_complete = not listing.too_many and not listing.timed_out and not search.is_partial
    return listing
