"""Between a request and a prompt or template that has changed: the request waits for the list, and is held against it.

What of `pin_gate` is for tools is here for `prompts/get`, reads of what a template stands for, and completions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from goat_mcp.catalog.offerings import Kind
from goat_mcp.upstreams.transports.live_connection import LiveConnection


class GatedCache(Protocol):
    """What is known of the upstream's lists."""

    @property
    def must_be_listed(self) -> bool: ...

    def load_warm(self) -> None: ...

    async def settled(self, connection: LiveConnection, max_wait_s: float) -> None: ...

    def admit(self, kind: Kind, key: str) -> None: ...

    def templates_of(self, uri: str) -> tuple[str, ...]: ...


class ResourceGate:
    """The gate of one upstream."""

    def __init__(self, shelf: GatedCache, is_listed: Callable[[LiveConnection], bool]) -> None:
        """`is_listed` says whether a connection is one whose lists are read."""
        self._shelf = shelf
        self._is_listed = is_listed

    async def admit(
        self, method: str, params: Mapping[str, Any], connection: LiveConnection, max_wait_s: float
    ) -> None:
        """Raises `ToolError(QUARANTINED)` for a request about what may not be used as it is now."""
        ref = params.get("ref") or params
        name, uri = ref.get("name"), ref.get("uri")
        is_prompt = method == "prompts/get" or ref.get("type") == "ref/prompt"
        self._shelf.load_warm()
        # A read of a plain resource waits for no list.
        if not is_prompt and not self._shelf.templates_of(str(uri)) and not self._shelf.must_be_listed:
            return
        if self._is_listed(connection):
            await self._shelf.settled(connection, max_wait_s)
        if is_prompt:
            self._shelf.admit("prompts", str(name))
            return
        for template in self._shelf.templates_of(str(uri)):
            self._shelf.admit("templates", template)
