"""A long list in pages (AGG-4). A cursor names the list it is about, so that no entry is skipped or comes twice.

One of a list that has changed since is refused: a page of the new list would repeat or leave out what lies between, and
the client that starts anew has the list whole.
"""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

PAGE_SIZE = 1_000
_DIGEST_CHARS = 16
Entry = Mapping[str, Any]


class Pages:
    """Of one kind of list."""

    def __init__(self, what: str, page_size: int = PAGE_SIZE) -> None:
        self._what = what
        self._page_size = page_size
        self._known: tuple[Sequence[Entry], str] = ((), "")

    def page(self, entries: Sequence[Entry], cursor: str | None) -> tuple[Sequence[Entry], str | None]:
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

    def _digest(self, entries: Sequence[Entry]) -> str:
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
