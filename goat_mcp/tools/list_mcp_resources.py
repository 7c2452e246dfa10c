"""ListMcpResources: what the user's other MCP servers offer to be read. Who asks them is behind `McpResources`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio

from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.context import ToolContext
from goat_mcp.core.heartbeat import with_heartbeat
from goat_mcp.core.resources import McpResources, ServerResources
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.rights import Rights
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import BuiltinTool
from goat_mcp.files.documents.visible_text import one_line
from goat_mcp.state.spill import SpillFiles

ALL_WAIT_S = 10.0
"""For all servers together: one that is slow to start can be asked by name, with more time."""
ANSWER_S = 3.0
"""Left at the end of a call's time to put an answer together."""
MAX_CHARS = 30_000
MAX_URI_CHARS = 2_000
_NAME_CHARS = 200
_PROBLEM_CHARS = 300
_PROBLEMS_SHOWN = 10
NOTHING = "No resources found"

Row = dict[str, str]


class ListMcpResourcesInput(ToolInput):
    server: str | None = None


@dataclass(frozen=True)
class ListMcpResources(
    BuiltinTool[ListMcpResourcesInput],
    side_effect=SideEffect.READ_ONLY,
    toolset="mcp",
    title="List MCP resources",
):
    """List what MCP servers offer to read: `server<TAB>uri<TAB>name<TAB>mime`.

    `template` at a line's end: fill in the {parts} of its URI.
    """

    examples = (
        ToolExample("Of all servers", {}),
        ToolExample("Of one server", {"server": "docs"}),
    )

    resources: Callable[[Rights], McpResources]
    spill: SpillFiles
    max_chars: int = MAX_CHARS

    async def execute(self, input: ListMcpResourcesInput, ctx: ToolContext) -> ToolResult:
        answers = await with_heartbeat(partial(self._ask, input.server, ctx), ctx, "listing MCP resources")
        # Thousands of entries take a while; other calls go on meanwhile.
        return await anyio.to_thread.run_sync(self._shown, answers, abandon_on_cancel=True)

    def _shown(self, answers: Sequence[ServerResources]) -> ToolResult:
        rows = {answer.server: _rows(answer) for answer in answers}
        notices = _problems(answers)
        shown = _fair_share(rows, self.max_chars - sum(len(notice) + 4 for notice in notices))
        cut = [
            f"{one_line(server, _NAME_CHARS)}: {len(shown[server]):,} of {len(all_rows):,} shown"
            for server, all_rows in rows.items()
            if len(shown[server]) < len(all_rows)
        ]
        if cut:
            whole = "\n".join(_line(row) for all_rows in rows.values() for row in all_rows)
            path = self.spill.write("mcp-resources", whole)
            notices = [*cut[:_PROBLEMS_SHOWN], f"the whole list is in {path}, which Read and Grep can open", *notices]
        listed = [row for server in shown.values() for row in server]
        facts: dict[str, Any] = {"resources": listed}
        if notices:
            facts["notices"] = notices
        text = "\n".join(_line(row) for row in listed) or NOTHING
        return text_result(text, facts=facts, notices=notices, replace_text=True)

    async def _ask(self, server: str | None, ctx: ToolContext) -> Sequence[ServerResources]:
        left_s = max(0.0, ctx.wait_left_s() - ANSWER_S)
        if not server:
            return await self.resources(ctx.rights).list_all(min(ALL_WAIT_S, left_s))
        return [await self.resources(ctx.rights).list(server, left_s, caller=ctx)]


def _rows(answer: ServerResources) -> list[Row]:
    server = one_line(answer.server, _NAME_CHARS)
    return [
        {
            "server": server,
            key: one_line(entry[key], MAX_URI_CHARS),
            "name": _text(entry, "name"),
            "mimeType": _text(entry, "mimeType"),
        }
        for key, entries in (("uri", answer.resources), ("uriTemplate", answer.templates))
        for entry in entries
    ]


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    return one_line(value, _NAME_CHARS) if isinstance(value, str) else ""


def _line(row: Row) -> str:
    return "\t".join(row.values()) + ("\ttemplate" if "uriTemplate" in row else "")


def _problems(answers: Sequence[ServerResources]) -> list[str]:
    problems = [
        f"{one_line(answer.server, _NAME_CHARS)}: {one_line(answer.problem, _PROBLEM_CHARS)}"
        for answer in answers
        if answer.problem
    ]
    more = len(problems) - _PROBLEMS_SHOWN
    return [*problems[:_PROBLEMS_SHOWN], *([f"and {more} more servers with problems"] if more > 0 else [])]


def _fair_share(rows: Mapping[str, Sequence[Row]], max_chars: int) -> dict[str, Sequence[Row]]:
    """As many rows as fit, of each server in order: a long list leaves the short ones whole."""
    costs = {server: [len(json.dumps(row)) + 2 for row in of_server] for server, of_server in rows.items()}
    counts: dict[str, int] = {}
    for server in sorted(rows, key=lambda server: sum(costs[server])):
        share = max_chars // (len(rows) - len(counts))
        count = used = 0
        for cost in costs[server]:
            if used + cost > share:
                break
            count, used = count + 1, used + cost
        counts[server] = count
        max_chars -= used
    return {server: of_server[: counts[server]] for server, of_server in rows.items()}
