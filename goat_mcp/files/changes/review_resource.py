"""`goat://review` and `goat://review/ID`: the changes that wait for a person, and what each would do."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import anyio.to_thread

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError
from goat_mcp.core.resources import Reading, json_entry, json_reading, last_part, template
from goat_mcp.files.changes.review import OWNER, REVIEW_URI, Review
from goat_mcp.files.changes.staged import StagedChange

MAX_DIFF_CHARS = 100_000


class ReviewResource:
    entries = (json_entry(REVIEW_URI, "review", "Changes of files that wait for the user's review, oldest first"),)
    templates = (template(f"{REVIEW_URI}/{{id}}", "change", "The diff of one change that waits", "text/plain"),)

    def __init__(self, review: Review) -> None:
        self._review = review

    async def read(self, uri: str, ctx: ToolContext) -> Reading | None:
        if uri == REVIEW_URI:
            waiting = await anyio.to_thread.run_sync(self._review.oldest_first, ctx.principal)
            return json_reading({"waiting": [described(staged) for staged in waiting]})
        id = last_part(uri, f"{REVIEW_URI}/")
        return None if id is None else await anyio.to_thread.run_sync(self._diff, id, ctx.principal)

    def _diff(self, id: str, principal: str) -> Reading | None:
        try:
            return Reading(self._review.diff(self._review.find(id, principal), MAX_DIFF_CHARS), "text/plain")
        except ToolError:
            return None


class ReviewChanges:
    """Announces what other processes make of the queue."""

    def __init__(self, review: Review) -> None:
        self._review = review
        self._seen: frozenset[tuple[str, str]] | None = None

    async def look(self, principals: Collection[str]) -> None:
        """Whose change it is, is told, and the owner. The first look only remembers."""
        before = self._seen
        waiting = await anyio.to_thread.run_sync(self._review.oldest_first, OWNER)
        self._seen = frozenset((staged.id, staged.author.principal) for staged in waiting)
        for id, principal in sorted(self._seen ^ before if before is not None else ()):
            self._review.announce(id, principal)


def described(staged: StagedChange) -> dict[str, Any]:
    return {
        "id": staged.id,
        "uri": f"{REVIEW_URI}/{staged.id}",
        "path": str(staged.path),
        "kind": staged.kind,
        "tool": staged.author.tool,
        "call_id": staged.author.call_id,
        "principal": staged.author.principal,
        "staged_at": datetime.fromtimestamp(staged.at_s, UTC).isoformat(timespec="seconds"),
        "size": staged.after.size if staged.after else 0,
        "apply": f"goat-mcp review apply {staged.id}",
    }
