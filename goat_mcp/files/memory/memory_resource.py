"""`goat://memory`: what models have written down for later, of this project and of the user."""

from __future__ import annotations

from collections.abc import Sequence

import anyio.to_thread

from goat_mcp.core.context import ToolContext
from goat_mcp.core.resources import Entry, Reading, json_entry, json_reading
from goat_mcp.files.memory.memories import MEMORY_URI, Memories

MAX_LISTED = 500
"""`memento__note` lists the rest, from an offset on."""


class MemoryResource:
    templates: Sequence[Entry] = ()
    entries = (json_entry(MEMORY_URI, "memory", "Notes for later sessions: heading, size and date, newest first"),)

    def __init__(self, memories: Memories) -> None:
        self._memories = memories

    async def read(self, uri: str, ctx: ToolContext) -> Reading | None:
        if uri != MEMORY_URI:
            return None
        found = await anyio.to_thread.run_sync(self._memories.newest_first, ctx.principal, ctx.session_key)
        shown = {"memories": [memory.described() for memory in found[:MAX_LISTED]]}
        if len(found) <= MAX_LISTED:
            return json_reading(shown)
        return json_reading({**shown, "left": len(found) - MAX_LISTED, "nextOffset": MAX_LISTED})
