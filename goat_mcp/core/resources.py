"""Our own resources, under `goat://...`, and who wants to know when one changes. A server reads the providers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from goat_mcp.core.context import ToolContext

OUTPUT_URI = "goat://output"
"""Below it: results that were too long to show."""

Entry = dict[str, Any]
"""An entry of `resources/list` or `resources/templates/list`, as it travels."""


class Reading(NamedTuple):
    """What a resource holds now."""

    text: str
    mime_type: str


class ResourceProvider(Protocol):
    """Some of our resources. Changes of them are announced under the same URIs (`core.announcements`)."""

    @property
    def entries(self) -> Sequence[Entry]:
        """Those that are always there."""
        ...

    @property
    def templates(self) -> Sequence[Entry]:
        """The forms of the others' URIs, each with one `{variable}` as its last part."""
        ...

    async def read(self, uri: str, ctx: ToolContext) -> Reading | None:
        """What `ctx.principal` may see there; None if there is nothing, or nothing of that principal's."""
        ...


def json_reading(value: Any) -> Reading:
    return Reading(json.dumps(value, indent=2), "application/json")


def json_entry(uri: str, name: str, description: str) -> Entry:
    return {"uri": uri, "name": name, "description": description, "mimeType": "application/json"}


def template(uri: str, name: str, description: str, mime_type: str) -> Entry:
    return {"uriTemplate": uri, "name": name, "description": description, "mimeType": mime_type}


def last_part(uri: str, folder: str) -> str | None:
    """`goat://tasks/abc` below `goat://tasks/` -> `abc`. None for a URI that is not one part below the folder."""
    name = uri.removeprefix(folder) if uri.startswith(folder) else ""
    return name if name and "/" not in name else None


Listener = Callable[[str, str | None], None]
"""Gets the URI and the principal it changed for, None for everybody."""
IsWatched = Callable[[str, str | None], bool]


class Announcements:
    """State announces the URI of what changed; a server passes it on to its subscribers. Listeners must not block."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._watches: list[IsWatched] = []

    def listen(self, listener: Listener, is_watched: IsWatched = lambda uri, principal: True) -> None:
        """`is_watched` says whether a change interests anybody; if not, nobody need look for one."""
        self._listeners.append(listener)
        self._watches.append(is_watched)

    def changed(self, uri: str, principal: str | None = None) -> None:
        """What is under `uri` changed, as `principal` reads it; only that one is notified. None: everybody."""
        for listener in self._listeners:
            listener(uri, principal)

    def is_watched(self, uri: str, principal: str | None = None) -> bool:
        return any(is_watched(uri, principal) for is_watched in self._watches)
