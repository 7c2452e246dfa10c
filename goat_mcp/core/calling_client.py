"""The client behind a call, for upstreams that send requests to it. Our own tools use `ToolContext.ask`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

URL_REQUIRED = -32042
"""A server's error: the user has to open an address first (2025-11-25)."""
CAPABILITY_MISSING = -32021
"""A server's error: the client has not declared what the request needs (2026-07-28)."""

RootsOf = Callable[[bool], Sequence[Path]]
"""The workspace's roots, for a client that has roots of its own (True) or not. Empty where the client's count."""


def no_roots(client_has_some: bool) -> Sequence[Path]:
    """The roots where there is no workspace."""
    return ()


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """`elicitation/create`, `sampling/createMessage` or `roots/list`, as it travels."""

    method: str
    params: Mapping[str, Any]


class ClientRefused(Exception):
    """The client answered with a JSON-RPC error, or cannot be asked."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class RequestNotSent(ClientRefused):
    """Nobody was asked; the client has refused nothing."""


class NotificationTarget(Protocol):
    """A receiver of notifications."""

    @property
    def log_level(self) -> str:
        """The least level of log messages it wants to see; empty if it wants none."""
        ...

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification. Lost if the client cannot be reached any more."""
        ...


class CallingClient(NotificationTarget, Protocol):
    """One client, for as long as one call of it lasts."""

    @property
    def notices(self) -> NotificationTarget | None:
        """The way to the same client beside its calls, as long as it is there; None if its era has none."""
        ...

    @property
    def protocol_version(self) -> str: ...

    @property
    def is_stateless(self) -> bool:
        """Whether it speaks the era without a way back: it is asked by the answer to its own request."""
        ...

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What it declared, as it travels."""
        ...

    @property
    def given(self) -> Mapping[str, Any]:
        """Answers that came with the call before anybody asked; the upstream may use them."""
        ...

    @property
    def cancellation(self) -> Mapping[str, Any]:
        """The params of its `notifications/cancelled` for this call: `reason` and `_meta`; empty if it sent none."""
        ...

    @property
    def known_roots(self) -> Sequence[Path] | None:
        """What `roots` returns without asking; None if it has to."""
        ...

    async def roots(self) -> Sequence[Path]:
        """Its local folders, requested once a session; empty if it has none or does not say."""
        ...

    async def ask(self, requests: Mapping[str, ClientRequest]) -> Mapping[str, dict[str, Any]]:
        """Send several requests at once. Returns the raw results under the same keys. Raises `ClientRefused`."""
        ...
