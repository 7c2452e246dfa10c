"""What the supervisor and calls need of a connection.

The real one loads the SDK's client side, which a warm start does not need.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import anyio

from goat_mcp.core.client_side import ClientSide

if TYPE_CHECKING:  # loaded with the first connection
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from goat_mcp.commands.sandbox.options import SandboxOptions
    from goat_mcp.processes.launch import Confined
    from goat_mcp.upstreams.listing.paging import Listed
    from goat_mcp.upstreams.server_requests.callers import Callers
    from goat_mcp.upstreams.transports.notices import Notices

Confine: TypeAlias = "Callable[[SandboxOptions, Path], Awaitable[Confined | None]]"
"""Finds the sandbox for an entry that wants one, started in this directory; None: it runs without after all. Raises
`ToolError`."""


class OnProgress(Protocol):
    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


class LiveConnection(Protocol):
    """`goat_mcp.upstreams.transports.connection.Connection`, or a double of it."""

    closed: anyio.Event
    tools_changed: anyio.Event
    notices: Notices
    instructions: str

    @property
    def callers(self) -> Callers: ...

    @property
    def version(self) -> str: ...

    @property
    def era_is_proved(self) -> bool: ...

    @property
    def announces_changes(self) -> bool: ...

    def last_words(self) -> str: ...

    def junk(self) -> tuple[int, int]: ...

    @property
    def dropped_notices(self) -> int: ...

    def stderr_text(self) -> str: ...

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        meta: Mapping[str, Any],
        input_schema: Mapping[str, Any],
        more: Mapping[str, Any] = ...,
        client: ClientSide | None = None,
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]: ...

    def offers(self, capability: str) -> bool: ...

    async def list_tools(self) -> Listed: ...

    async def list_all(self, method: str, member: str, listed: Listed) -> None: ...

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        name: str = "",
        more: Mapping[str, Any] = ...,
        client: ClientSide | None = None,
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]: ...

    @property
    def subscribes(self) -> bool: ...

    @property
    def listened_lists(self) -> Mapping[str, bool]: ...

    @property
    def stateless(self) -> bool: ...

    async def listen(self, notifications: Mapping[str, Any]) -> None: ...

    async def ping(self) -> None: ...
