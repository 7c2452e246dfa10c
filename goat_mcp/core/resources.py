"""Resources: our own under `goat://...`, who wants to know when one changes, and those of other MCP servers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
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
    meta: Mapping[str, Any] = MappingProxyType({})


class ResourceProvider(Protocol):
    """Some of our resources, for a server to read. Their changes are announced under the same URIs."""

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


@dataclass(frozen=True, slots=True)
class UpstreamUpdate:
    """An upstream's notice that a resource has changed. `meta` is the `_meta` that passes with it (REL-5); `sessions`
    are those whose process says so, None for everybody who watches."""

    uri: str
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sessions: frozenset[str] | None = None


class UpstreamUpdates:
    """Upstreams announce what was updated; a server passes it on to those who watch. Listeners must not block."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[UpstreamUpdate], None]] = []

    def listen(self, listener: Callable[[UpstreamUpdate], None]) -> None:
        self._listeners.append(listener)

    def tell(self, update: UpstreamUpdate) -> None:
        for listener in self._listeners:
            listener(update)


@dataclass(frozen=True, slots=True)
class ServerResources:
    """What one server lists: wire entries as they came, each with a `uri` or `uriTemplate` that is text.

    `problem` says in words why that is not all of it, or nothing; empty if nothing is wrong.
    """

    server: str
    resources: tuple[Mapping[str, Any], ...] = ()
    templates: tuple[Mapping[str, Any], ...] = ()
    problem: str = ""


class McpResources(Protocol):
    """The resources of other MCP servers, as tools see them; the client of those servers implements it.

    Servers are named as the user configured them; `server` may also be the part that tool names have of it."""

    def servers(self) -> Sequence[str]:
        """In the order of the configuration."""
        ...

    async def list_all(self, max_wait_s: float) -> Sequence[ServerResources]:
        """Every server's resources, in that order. A server that fails or is slow costs the others nothing."""
        ...

    async def list(self, server: str, max_wait_s: float, *, caller: ToolContext | None = None) -> ServerResources:
        """One server's resources. If it wants a login first, the client behind `caller` may be asked for one.

        Raises `ToolError`: NOT_FOUND for a server nobody knows, else why nothing came.
        """
        ...

    async def read(
        self,
        server: str,
        uri: str,
        max_wait_s: float,
        *,
        meta: Mapping[str, Any] | None = None,
        caller: ToolContext | None = None,
    ) -> Mapping[str, Any]:
        """The wire result, whose `contents` is a list of objects. `meta` passes to the server; `caller` as in `list`.

        Raises `ToolError`, and `UpstreamError` for the server's own refusal.
        """
        ...
