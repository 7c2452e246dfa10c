"""Who wants to know that something readable under a `goat://` URI has changed."""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[[str, str | None], None]
"""Gets the URI and the principal it changed for, None for everybody."""
IsWatched = Callable[[str, str | None], bool]


class Announcements:
    """State announces the URI of what changed; a server passes it on to its subscribers. Listeners must not block."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._watches: list[IsWatched] = []

    def listen(self, listener: Listener, is_watched: IsWatched = lambda uri, principal: True) -> None:
        """`is_watched` tells whether anybody would hear of a change; it spares the work of noticing one."""
        self._listeners.append(listener)
        self._watches.append(is_watched)

    def changed(self, uri: str, principal: str | None = None) -> None:
        """What is under `uri` changed, as `principal` reads it; only that one is told. None stands for everybody."""
        for listener in self._listeners:
            listener(uri, principal)

    def is_watched(self, uri: str, principal: str | None = None) -> bool:
        return any(is_watched(uri, principal) for is_watched in self._watches)
