"""The roots of clients: local folders they work in, asked for once a session and again when they say so (WSP-2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

MAX_SESSIONS = 1000


class ClientRoots:
    """By session key; the oldest are forgotten."""

    def __init__(self) -> None:
        self._known: dict[str, Sequence[Path]] = {}

    def of(self, session_key: str) -> Sequence[Path] | None:
        """None where they were not asked for."""
        return self._known.get(session_key)

    def keep(self, session_key: str, roots: Sequence[Path]) -> None:
        self._known[session_key] = roots
        if len(self._known) > MAX_SESSIONS:
            self._known.pop(next(iter(self._known)))

    def forget(self, session_key: str) -> None:
        """They have changed."""
        self._known.pop(session_key, None)


def local_folders(answer: Mapping[str, Any]) -> list[Path]:
    """The folders in an answer to `roots/list`. One bad root does not spoil the others."""
    listed: Any = answer.get("roots")
    uris = [
        str(cast("dict[str, Any]", root).get("uri", ""))
        for root in (cast("list[Any]", listed) if isinstance(listed, list) else [])
        if isinstance(root, dict)
    ]
    parts = [urlsplit(uri) for uri in uris]
    return [Path(unquote(part.path)) for part in parts if part.scheme == "file" and part.netloc in ("", "localhost")]
