"""The permission mode of each session: the settings' one, until the user ends a session's plan mode."""

from __future__ import annotations

from collections import OrderedDict

from goat_mcp.permissions.mode import Mode

MAX_SESSIONS = 1000


class SessionModes:
    """`default` holds wherever nothing else was decided; the oldest decisions are dropped past `MAX_SESSIONS`."""

    def __init__(self, default: Mode = Mode.DEFAULT) -> None:
        self.default = default
        self._decided: OrderedDict[str, Mode] = OrderedDict()

    def of(self, session_key: str) -> Mode:
        return self._decided.get(session_key, self.default)

    def put(self, session_key: str, mode: Mode) -> None:
        self._decided[session_key] = mode
        self._decided.move_to_end(session_key)
        if len(self._decided) > MAX_SESSIONS:
            self._decided.popitem(last=False)
