"""The lists of resources, templates and prompts as clients get them: ours first, then the upstreams', in pages (AGG-4).

A cursor names the list it is about, so that no entry is skipped or comes twice.

One of a list that has changed since is refused: a page of the new list would repeat or leave out what lies between, and
a client that starts again has the list whole.
"""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from goat_mcp.catalog.offerings import Kind
from goat_mcp.core.rights import Rights
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.result_compatibility import sanitized_answer

if TYPE_CHECKING:  # loaded when somebody asks for a list
    from goat_mcp.catalog.resource_catalog import VisibleResources

PAGE_SIZE = 1_000
_DIGEST_CHARS = 16
KINDS: tuple[Kind, ...] = ("resources", "templates", "prompts")
Entries = Sequence[Mapping[str, Any]]


class Pages:
    """Of one kind of list."""

    def __init__(self, what: str, page_size: int = PAGE_SIZE) -> None:
        self._what = what
        self._page_size = page_size
        self._known: tuple[Entries, str] = ((), "")

    def page(self, entries: Entries, cursor: str | None) -> tuple[Entries, str | None]:
        """The entries of the page, and the cursor of the next. Raises `MCPError` for a cursor of another list."""
        if cursor is None and len(entries) <= self._page_size:
            return entries, None
        digest = self._digest(entries)
        start = 0 if cursor is None else self._start(cursor, digest, len(entries))
        end = start + self._page_size
        return entries[start:end], _cursor(digest, end) if end < len(entries) else None

    def _start(self, cursor: str, digest: str, total: int) -> int:
        try:
            of, _, text = urlsafe_b64decode(cursor.encode("ascii")).decode("ascii").partition(".")
            start = int(text)
            if of == digest and _cursor(digest, start) == cursor and start in range(0, total, self._page_size)[1:]:
                return start
        except ValueError:
            pass
        raise foreign_cursor(self._what)

    def _digest(self, entries: Entries) -> str:
        """Stands for the list as it is. A client asks for page after page: it is worked out for the first."""
        if self._known[0] is not entries:
            text = json.dumps(list(entries), sort_keys=True)
            self._known = (entries, hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARS])
        return self._known[1]


def foreign_cursor(what: str) -> MCPError:
    """The refusal of a cursor that no list of ours gave out."""
    return MCPError(code=types.INVALID_PARAMS, message=f"this cursor is of another list: list {what} from the start")


def _cursor(digest: str, start: int) -> str:
    return urlsafe_b64encode(f"{digest}.{start}".encode("ascii")).decode("ascii")


class ResourceLists:
    """Calls `changed` for each list that clients have and that is another now. What nobody has listed is no news."""

    def __init__(self, gateway: Gateway, changed: Callable[[Kind], None], page_size: int = PAGE_SIZE) -> None:
        self._gateway = gateway
        self._changed = changed
        self._pages = {kind: Pages(kind, page_size) for kind in KINDS}
        self._lists: dict[tuple[Kind, Rights], tuple[VisibleResources, Entries]] = {}
        gateway.upstreams.offers.on_change(lambda _: self.compare())

    async def page(
        self, kind: Kind, member: str, own: Entries, params: types.PaginatedRequestParams | None, rights: Rights
    ) -> dict[str, Any]:
        """One page as an answer. Raises `MCPError` for a cursor of another list."""
        await self._gateway.upstreams.first_offers(shows=self._gateway.visibility.shown(rights))
        catalog = self._gateway.on_demand.resource_catalogs().of(rights)
        known = self._lists.get((kind, rights))
        if known is None or known[0] is not catalog.items():
            alone = self._gateway.own_lists.sessions
            for gone in [of for of in self._lists if of[1].own_lists and of[1].own_lists not in alone]:
                del self._lists[gone]
            visible = catalog.items()
            known = self._lists[kind, rights] = (visible, (*own, *visible.list(kind)))
        entries, cursor = self._pages[kind].page(known[1], params.cursor if params is not None else None)
        answer: dict[str, Any] = {
            member: list(entries),
            "ttlMs": catalog.ttl_ms(kind),
            "cacheScope": "private",
            "resultType": "complete",
        }
        return sanitized_answer(answer if cursor is None else {**answer, "nextCursor": cursor})

    def compare(self) -> None:
        """What there is, or who may see it, has changed."""
        # Whoever holds another list than what would be listed now is not known by profile: all are notified.
        changed = {
            kind
            for (kind, rights), (listed, _) in self._lists.items()
            if self._gateway.on_demand.resource_catalogs().of(rights).items().list(kind) != listed.list(kind)
        }
        for kind in KINDS:
            if kind in changed:
                self._changed(kind)
