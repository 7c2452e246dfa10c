"""Todo lists, one for each principal and workspace, kept over restarts (design D6). Their form is TodoWrite's."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from goat_mcp.core.context import ToolContext
from goat_mcp.core.resources import Announcements
from goat_mcp.state.database import Database

if TYPE_CHECKING:
    from sqlite3 import Connection

TODOS_URI = "goat://todos"
KEEP_S = 90 * 24 * 3600.0
"""A list nobody has changed for so long is dropped."""

Todo = Mapping[str, str]
"""`content`, `status` and `activeForm`, as they travel."""


class TodoStore(Protocol):
    """Keeps a list for each owner."""

    async def read(self, owner: str) -> list[Todo]: ...

    async def replace(self, owner: str, todos: Sequence[Todo]) -> list[Todo]:
        """Returns the list that was there."""
        ...


class MemoryTodoStore:
    """Lists that end with the process."""

    def __init__(self) -> None:
        self._lists: dict[str, list[Todo]] = {}

    async def read(self, owner: str) -> list[Todo]:
        return self._lists.get(owner, [])

    async def replace(self, owner: str, todos: Sequence[Todo]) -> list[Todo]:
        before = self._lists.get(owner, [])
        self._lists[owner] = list(todos)
        return before


class DatabaseTodoStore:
    """Lists in the state directory's database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, owner: str) -> list[Todo]:
        return await self._database.read(lambda connection: _select(connection, owner))

    async def replace(self, owner: str, todos: Sequence[Todo]) -> list[Todo]:
        items = json.dumps([dict(todo) for todo in todos])

        def work(connection: Connection) -> list[Todo]:
            before = _select(connection, owner)
            connection.execute("DELETE FROM todos WHERE changed_at_s < ?", (time.time() - KEEP_S,))
            connection.execute("INSERT OR REPLACE INTO todos VALUES (?, ?, ?)", (owner, items, time.time()))
            return before

        return await self._database.write(work)


def _select(connection: Connection, owner: str) -> list[Todo]:
    row = connection.execute("SELECT items FROM todos WHERE owner = ?", (owner,)).fetchone()
    try:
        return json.loads(row[0]) if row is not None else []
    except ValueError:
        return []  # a list that is damaged is made again with the next change


class Todos:
    """The list that belongs to a call. An agent has one of its own: its steps are not its starter's plan."""

    def __init__(self, store: TodoStore, workspace: Callable[[], str], announcements: Announcements) -> None:
        """`workspace` names the directory the lists are about; it may be known only after the first client came."""
        self._store = store
        self._workspace = workspace
        self._announcements = announcements
        self._known: dict[str, list[Todo]] = {}
        """Lists that are looked at for changes of other processes, as they were last."""

    async def read(self, ctx: ToolContext) -> list[Todo]:
        return await self._store.read(self._owner(ctx))

    async def replace(self, ctx: ToolContext, todos: Sequence[Todo]) -> list[Todo]:
        """Returns the list that was there."""
        owner = self._owner(ctx)
        before = await self._store.replace(owner, todos)
        if owner in self._known:
            self._known[owner] = list(todos)
        if not ctx.rights.is_agents:
            self._announcements.changed(TODOS_URI, ctx.principal)
        return before

    async def look(self, principals: Collection[str]) -> None:
        """Announce the lists that another process has changed since the last look. The first only remembers."""
        for principal in principals:
            owner = self._name(principal)
            before = self._known.get(owner)
            todos = await self._store.read(owner)
            if self._known.get(owner) is not before:
                continue  # changed here meanwhile, and announced
            self._known[owner] = todos
            if before is not None and todos != before:
                self._announcements.changed(TODOS_URI, principal)

    def _owner(self, ctx: ToolContext) -> str:
        return self._name(ctx.principal, *((ctx.session_key,) if ctx.rights.is_agents else ()))

    def _name(self, *of: str) -> str:
        return json.dumps([self._workspace(), *of])
