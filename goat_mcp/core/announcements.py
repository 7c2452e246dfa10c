"""Who wants to know that something readable under a `goat://` URI has changed."""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[[str], None]


class Announcements:
    """State announces the URI of what changed; a server passes it on to its subscribers. Listeners must not block."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def changed(self, uri: str) -> None:
        for listener in self._listeners:
            listener(uri)
