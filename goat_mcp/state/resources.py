"""The resources `goat://calls`, `goat://plans`, `goat://output` and `goat://todos`: each reader sees only its own."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio.to_thread

from goat_mcp.core.context import ToolContext
from goat_mcp.core.resources import (
    OUTPUT_URI,
    Announcements,
    Entry,
    Reading,
    json_entry,
    json_reading,
    last_part,
    template,
)
from goat_mcp.state.call_log import CALLS_URI, KEPT_CALLS, CallLog
from goat_mcp.state.own_file import open_own
from goat_mcp.state.plans import Plan, PlanMark, PlanStore
from goat_mcp.state.spill import SpillFiles
from goat_mcp.state.todos import TODOS_URI, Todos


class CallLogResource:
    templates: Sequence[Entry] = ()
    entries = (json_entry(CALLS_URI, "calls", f"Your last {KEPT_CALLS} calls: tool, time, outcome, duration"),)

    def __init__(self, calls: CallLog) -> None:
        self._calls = calls

    async def read(self, uri: str, ctx: ToolContext) -> Reading | None:
        return json_reading({"calls": self._calls.newest_first(ctx.principal)}) if uri == CALLS_URI else None


class TodoResource:
    templates: Sequence[Entry] = ()
    entries = (json_entry(TODOS_URI, "todos", "The todo list of this workspace: what is to do, in work and done"),)

    def __init__(self, todos: Todos) -> None:
        self._todos = todos

    async def read(self, uri: str, ctx: ToolContext) -> Reading | None:
        return json_reading({"todos": await self._todos.read(ctx)}) if uri == TODOS_URI else None


PLANS_URI = "goat://plans"


class PlanResources:
    entries = (json_entry(PLANS_URI, "plans", "Your plans in this workspace, newest first, and their status"),)
    templates = (template(f"{PLANS_URI}/{{name}}", "plan", "The text of one plan", "text/markdown"),)

    def __init__(self, plans: PlanStore) -> None:
        self._plans = plans

    async def read(self, uri: str, ctx: ToolContext) -> Reading | None:
        if uri == PLANS_URI:
            plans = await anyio.to_thread.run_sync(self._plans.newest_first, ctx.principal)
            return json_reading({"plans": [_plan_fields(plan) for plan in plans]})
        name = last_part(uri, f"{PLANS_URI}/")
        return None if name is None else await anyio.to_thread.run_sync(self._text, name, ctx.principal)

    def _text(self, name: str, principal: str) -> Reading | None:
        plan = self._plans.find(name, principal)
        return None if plan is None else Reading(self._plans.text(plan), "text/markdown")


def _plan_fields(plan: Plan) -> dict[str, Any]:
    return {
        "name": plan.name,
        "uri": f"{PLANS_URI}/{plan.name}",
        "status": str(plan.status),
        "created_at": datetime.fromtimestamp(plan.presented_at_s, UTC).isoformat(timespec="seconds"),
        "file_path": plan.file_path,
        "feedback": plan.feedback,
    }


class PlanChanges:
    """Remembers how the plans were when it looked last, or when this process announced one."""

    def __init__(self, plans: PlanStore, announcements: Announcements) -> None:
        self._plans = plans
        self._announcements = announcements
        self._seen: dict[str, Mapping[str, PlanMark]] = {}
        """By principal."""
        announcements.listen(self._announced, lambda uri, principal: False)

    async def look(self, principals: Collection[str]) -> None:
        """Each of them hears of its own plans. The first look only remembers."""
        for principal in principals:
            before = self._seen.get(principal)
            marks = await anyio.to_thread.run_sync(self._plans.marks, principal)
            if self._seen.get(principal) is not before:
                continue  # one of our own came meanwhile; the next look sees both
            self._seen[principal] = marks
            changed = {name for name, _ in before.items() ^ marks.items()} if before is not None else ()
            for name in sorted(changed):
                self._announcements.changed(f"{PLANS_URI}/{name}", principal)
            if changed:
                self._announcements.changed(PLANS_URI, principal)

    def _announced(self, uri: str, principal: str | None) -> None:
        name = uri.removeprefix(f"{PLANS_URI}/")
        if principal in self._seen and name != uri:
            self._seen[principal] = {**self._seen[principal], name: self._plans.mark(name)}


_OUTPUT_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}\.(txt|json)\Z")
MAX_OUTPUT_BYTES = 16 * 1024 * 1024


class SpillResource:
    entries: Sequence[Entry] = ()
    templates = (template(f"{OUTPUT_URI}/{{name}}", "output", "A result that was too long to show", "text/plain"),)

    def __init__(self, spill: SpillFiles) -> None:
        self._spill = spill

    async def read(self, uri: str, ctx: ToolContext) -> Reading | None:
        name = last_part(uri, f"{OUTPUT_URI}/")
        if name is None or not _OUTPUT_NAME.match(name):
            return None
        with self._spill.used_by(ctx.principal):
            path = self._spill.folder / name
        return await anyio.to_thread.run_sync(_read_output, path, abandon_on_cancel=True)


def _read_output(path: Path) -> Reading | None:
    try:
        descriptor = open_own(path, os.O_RDONLY)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        text = file.read(MAX_OUTPUT_BYTES).decode("utf-8", "replace")
        more = os.fstat(file.fileno()).st_size - MAX_OUTPUT_BYTES
    if more > 0:
        text += f"\n[... {more} bytes more; Read and Grep can open the file ...]"
    return Reading(text, "application/json" if path.suffix == ".json" and more <= 0 else "text/plain")
