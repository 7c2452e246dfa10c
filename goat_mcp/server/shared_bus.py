"""The SDK's `SubscriptionBus` over all replicas: what one publishes, the clients of the others hear of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcp.server.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

if TYPE_CHECKING:  # loaded if the state is shared
    from goat_mcp.state.redis.events import SharedEvents

_KIND = "clients"
_LISTS: dict[str, ServerEvent] = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}
_EVERYBODY, _ONE = "everybody", "one"


@dataclass(frozen=True)
class OwnResourceUpdated(ResourceUpdated):
    """One of a principal's resources, or of everybody's, has changed."""

    principal: str | None = None


class SharedBus:
    """Events of this process go to the other replicas, and theirs come to the listeners here."""

    def __init__(self, events: SharedEvents) -> None:
        self._events = events
        self._listeners: dict[object, Callable[[ServerEvent], None]] = {}
        events.listen(_KIND, self._received)
        events.on_gap(self._missed)

    async def publish(self, event: ServerEvent) -> None:
        if isinstance(event, OwnResourceUpdated):
            principal = (_EVERYBODY, "") if event.principal is None else (_ONE, event.principal)
            self._events.announce(_KIND, "updated", event.uri, *principal)
        elif isinstance(event, ResourceUpdated):
            self._events.announce(_KIND, "updated", event.uri, _EVERYBODY, "")
        else:
            self._events.announce(_KIND, next(name for name, one in _LISTS.items() if one == event))

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        token = object()
        self._listeners[token] = listener

        def unsubscribe() -> None:
            self._listeners.pop(token, None)

        return unsubscribe

    def _received(self, facts: Sequence[str]) -> None:
        match facts:
            case ["updated", uri, to, principal]:
                self._tell(OwnResourceUpdated(uri, principal if to == _ONE else None))
            case [name] if name in _LISTS:
                self._tell(_LISTS[name])
            case _:
                pass  # of a newer version

    def _missed(self) -> None:
        """Clients list again."""
        for event in _LISTS.values():
            self._tell(event)

    def _tell(self, event: ServerEvent) -> None:
        for listener in list(self._listeners.values()):
            listener(event)
