"""What sessions have changed of the settings (tool Config): it holds for their later calls and for nobody else's."""

from __future__ import annotations

import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError
from goat_mcp.state.database import Database, Warn

KEEP_S = 24 * 3600.0
"""A change nobody has renewed for so long is not found again by a later process."""
MAX_SESSIONS = 1000
_LASTING = "principal:"
"""Keys of sessions that a later process may meet again (design D6). The others end with the process."""

Check = Callable[[str, Any], Any]


class ConfigStore(Protocol):
    """Keeps values by session and key. Source: Goat `ConfigStore`."""

    async def read(self, session: str) -> dict[str, Any]: ...

    async def write(self, session: str, key: str, value: Any) -> None: ...

    async def remove(self, session: str, key: str) -> None: ...


class MemoryConfigStore:
    """Values that end with the process."""

    def __init__(self) -> None:
        self._sessions: dict[str, dict[str, Any]] = {}

    async def read(self, session: str) -> dict[str, Any]:
        return dict(self._sessions.get(session, {}))

    async def write(self, session: str, key: str, value: Any) -> None:
        self._sessions.setdefault(session, {})[key] = value

    async def remove(self, session: str, key: str) -> None:
        self._sessions.get(session, {}).pop(key, None)


class DatabaseConfigStore:
    """Values in the state directory's database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, session: str) -> dict[str, Any]:
        select = "SELECT key, value FROM session_settings WHERE session = ? AND changed_at_s > ?"
        oldest_s = time.time() - KEEP_S
        rows = await self._database.read(
            lambda connection: connection.execute(select, (_ascii(session), oldest_s)).fetchall()
        )
        return {key: _value(value) for key, value in rows}

    async def write(self, session: str, key: str, value: Any) -> None:
        row = (_ascii(session), key, json.dumps(value), time.time())
        await self._database.write(
            lambda connection: (
                connection.execute("DELETE FROM session_settings WHERE changed_at_s < ?", (time.time() - KEEP_S,)),
                connection.execute("INSERT OR REPLACE INTO session_settings VALUES (?, ?, ?, ?)", row),
            )
        )

    async def remove(self, session: str, key: str) -> None:
        delete = "DELETE FROM session_settings WHERE session = ? AND key = ?"
        await self._database.write(lambda connection: connection.execute(delete, (_ascii(session), key)))


class SessionSettings:
    """The changed settings of each session, read from the store once and then at hand for every call."""

    def __init__(self, store: ConfigStore, check: Check, warn: Warn) -> None:
        """`check` is `SettingsView.check`: what another version stored and this one does not take is left out."""
        self._store = store
        self._check = check
        self._warn = warn
        self._process = secrets.token_hex(8)
        self._known: OrderedDict[str, Mapping[str, Any]] = OrderedDict()
        self._dropped = False
        self._announce_to: list[Callable[[str], None]] = []

    async def of(self, ctx: ToolContext) -> Mapping[str, Any]:
        """By key. An agent has those of the client's session, but where it changed one itself."""
        own = await self._of(ctx.session_key)
        above = ctx.rights.client_session
        return own if above in ("", ctx.session_key) else {**await self._of(above), **own}

    async def put(self, ctx: ToolContext, key: str, value: Any) -> None:
        """`value` as JSON, checked before."""
        await self._of(ctx.session_key)
        await self._store.write(self._name(ctx.session_key), key, value)
        self._announce(ctx.session_key)
        self._keep(ctx.session_key, {**self._known.get(ctx.session_key, {}), key: value})

    async def reset(self, ctx: ToolContext, key: str) -> None:
        before = await self._of(ctx.session_key)
        if key in before:
            await self._store.remove(self._name(ctx.session_key), key)
            self._announce(ctx.session_key)
        kept = self._known.get(ctx.session_key, {})
        self._keep(ctx.session_key, {name: value for name, value in kept.items() if name != key})

    def on_change(self, announce: Callable[[str], None]) -> None:
        """Have `announce` called with each session that other processes may know, and that changes its settings."""
        self._announce_to.append(announce)

    def changed_elsewhere(self, *session_keys: str) -> None:
        """Read those of these sessions again, when they are asked for; without a session, those of all."""
        for key in session_keys or list(self._known):
            if key.startswith(_LASTING):
                self._known.pop(key, None)

    def _announce(self, session_key: str) -> None:
        if session_key.startswith(_LASTING):
            for announce in self._announce_to:
                announce(session_key)

    async def _of(self, session_key: str) -> Mapping[str, Any]:
        if (known := self._known.get(session_key)) is not None:
            self._known.move_to_end(session_key)
            return known
        # Of a session that is this process's own nothing can be stored yet, unless it was dropped from memory.
        stored = await self._load(session_key) if self._dropped or session_key.startswith(_LASTING) else {}
        if session_key not in self._known:
            self._keep(session_key, stored)
        return self._known[session_key]

    async def _load(self, session_key: str) -> dict[str, Any]:
        try:
            stored = await self._store.read(self._name(session_key))
        except ToolError as problem:
            # No reason to refuse every call of the session; the settings the server was started with hold.
            self._warn("settings of a session could not be read", problem=problem.message)
            return {}
        usable: dict[str, Any] = {}
        for key, value in stored.items():
            try:
                usable[key] = self._check(key, value)
            except ToolError as refused:
                self._warn("a stored setting of a session is left out", problem=refused.message)
        return usable

    def _keep(self, session_key: str, settings: Mapping[str, Any]) -> None:
        self._known[session_key] = settings
        self._known.move_to_end(session_key)
        if len(self._known) > MAX_SESSIONS:
            self._known.popitem(last=False)
            self._dropped = True

    def _name(self, session_key: str) -> str:
        return session_key if session_key.startswith(_LASTING) else f"{session_key}@{self._process}"


def _value(stored: str) -> Any:
    """What was stored; text that is no JSON any more stays text, which no setting takes."""
    try:
        return json.loads(stored)
    except ValueError:
        return stored


def _ascii(text: str) -> str:
    # SQLite takes no half of a surrogate pair, which a client may have in its name.
    return text.encode("ascii", "backslashreplace").decode()
