"""The URIs that an upstream gave a client in results: the client may read them there (NAM-6)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, cast

MAX_SESSIONS = 200
MAX_URIS = 1_000
"""Of one session; the oldest are forgotten first, in both."""
MAX_URI_CHARS = 8_000


class UriOwnership:
    """By session: URI -> the sources whose results held it. Which of them is asked does not depend on who was first."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, OrderedDict[str, frozenset[str]]] = OrderedDict()

    def note(self, session_key: str, source: str, blocks: Iterable[Mapping[str, Any]]) -> None:
        """Remember what links and embedded resources among content blocks point to."""
        uris = [uri for block in blocks if (uri := _uri(block))]
        if not uris:
            return
        known = self._sessions.setdefault(session_key, OrderedDict())
        self._sessions.move_to_end(session_key)
        for uri in uris:
            known[uri] = known.get(uri, frozenset()) | {source}
            known.move_to_end(uri)
        while len(known) > MAX_URIS:
            known.popitem(last=False)
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)

    def forget(self, source: str) -> None:
        """It is not there any more; what takes its name may be something else."""
        for known in self._sessions.values():
            for uri, givers in list(known.items()):
                if left := givers - {source}:
                    known[uri] = left
                else:
                    del known[uri]

    def of(self, session_key: str, uri: str) -> frozenset[str]:
        """Who gave this URI to this session."""
        known = self._sessions.get(session_key)
        return frozenset() if known is None else known.get(uri, frozenset())


def _uri(block: Mapping[str, Any]) -> str:
    holder: object = {"resource": block.get("resource"), "resource_link": block}.get(str(block.get("type")))
    uri = cast("Mapping[str, Any]", holder).get("uri") if isinstance(holder, Mapping) else None
    return uri if isinstance(uri, str) and len(uri) <= MAX_URI_CHARS else ""
