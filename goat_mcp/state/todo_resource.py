"""`goat://todos`: the list as its owner has it in this workspace."""

from __future__ import annotations

from collections.abc import Sequence

from goat_mcp.core.context import ToolContext
from goat_mcp.core.resources import Entry, Reading, json_entry, json_reading
from goat_mcp.state.todos import TODOS_URI, Todos


class TodoResource:
    templates: Sequence[Entry] = ()
    entries = (json_entry(TODOS_URI, "todos", "The todo list of this workspace: what is to do, in work and done"),)

    def __init__(self, todos: Todos) -> None:
        self._todos = todos

    async def read(self, uri: str, ctx: ToolContext) -> Reading | None:
        return json_reading({"todos": await self._todos.read(ctx)}) if uri == TODOS_URI else None
