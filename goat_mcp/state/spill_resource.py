"""`goat://output/NAME`: a spill file of the reader's own, for clients that follow a result's link."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import anyio.to_thread

from goat_mcp.core.context import ToolContext
from goat_mcp.core.resources import OUTPUT_URI, Entry, Reading, last_part, template
from goat_mcp.state.spill import SpillFiles

_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}\.(txt|json)\Z")
MAX_BYTES = 16 * 1024 * 1024


class SpillResource:
    entries: Sequence[Entry] = ()
    templates = (template(f"{OUTPUT_URI}/{{name}}", "output", "A result that was too long to show", "text/plain"),)

    def __init__(self, spill: SpillFiles) -> None:
        self._spill = spill

    async def read(self, uri: str, ctx: ToolContext) -> Reading | None:
        name = last_part(uri, f"{OUTPUT_URI}/")
        if name is None or not _NAME.match(name):
            return None
        with self._spill.used_by(ctx.principal):
            path = self._spill.folder / name
        return await anyio.to_thread.run_sync(_read, path, abandon_on_cancel=True)


def _read(path: Path) -> Reading | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        text = file.read(MAX_BYTES).decode("utf-8", "replace")
        more = os.fstat(file.fileno()).st_size - MAX_BYTES
    if more > 0:
        text += f"\n[... {more} bytes more; Read and Grep can open the file ...]"
    return Reading(text, "application/json" if path.suffix == ".json" and more <= 0 else "text/plain")
