"""The view Catalog: the tools, what each costs, switched on and off; and a form to try one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goat_mcp.core.errors import ErrorCode
from goat_mcp.core.names import TOOLSET_PREFIX
from goat_mcp.core.spec import SHIPPED_TOOLSETS
from goat_mcp.gateway.catalog_tools import BUILT_IN, CatalogTool
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.gateway.switching import Kind, switched
from goat_mcp.server.ui.known_tools import KnownTools
from goat_mcp.server.ui.login import session_of
from goat_mcp.server.ui.pages import back_to
from goat_mcp.server.ui.parts import UiParts
from goat_mcp.server.ui.security import form_of
from goat_mcp.server.ui.tool_form import arguments_of, fields_of
from goat_mcp.server.ui.trials import Trial, Trials
from goat_mcp.upstreams.status import ReasonCode

PATH = "/ui/catalog"
TOOLS_ON_A_PAGE = 100
MAX_SCHEMA_CHARS = 30_000
_NOTE = "catalog"


@dataclass(frozen=True)
class Wanted:
    """What of the catalog is shown."""

    text: str = ""
    server: str = ""
    toolset: str = ""
    page: int = 1

    def fits(self, tool: CatalogTool) -> bool:
        if (self.server and tool.server != self.server) or (self.toolset and tool.spec.toolset != self.toolset):
            return False
        return not self.text or tool.matches(self.text)

    def path(self, page: int) -> str:
        fields = {"q": self.text, "server": self.server, "toolset": self.toolset, "page": str(page)}
        return f"{PATH}?{urlencode({name: value for name, value in fields.items() if value})}"


def routes(parts: UiParts) -> list[Route]:
    known, trials = KnownTools(), Trials()

    async def show(request: Request) -> Response:
        query = request.query_params
        page = query.get("page", "1")
        number = max(1, int(page)) if page.isdecimal() and len(page) < 6 else 1
        wanted = Wanted(query.get("q", "").strip(), query.get("server", ""), query.get("toolset", ""), number)
        data = await catalog_data(parts, known, wanted)
        note = session_of(request.scope).notes.get(_NOTE, "")
        return parts.pages.answer(request, "catalog.html", {"title": "Catalog", **data, "note": note})

    async def switch(request: Request) -> Response:
        form = form_of(request)
        name, is_on, back = form.get("name", ""), form.get("on") == "yes", form.get("back", "")
        kind: Kind | None = "server" if form.get("kind") == "server" else "tool"
        note = await switched_note(name, on=is_on, kind=kind)
        session_of(request.scope).note(_NOTE, note)
        return back_to(back if back.startswith(PATH) else PATH)

    async def show_tool(request: Request) -> Response:
        name = request.path_params["name"]
        trial = trials.find(request.query_params.get("call", ""))
        data = await tool_data(parts, known, name, trial if trial is not None and trial.tool == name else None)
        note = session_of(request.scope).notes.get(_NOTE, "")
        return parts.pages.answer(request, "tool.html", {"title": name, **data, "note": note})

    async def attempt(request: Request) -> Response:
        """Run the tool with what was filled in."""
        name = request.path_params["name"]
        form = {field: value for field, value in form_of(request).items() if field != "csrf"}
        gateway = await parts.gateway()
        tool = _tool(known, gateway, name)
        trial = await trials.start(gateway, name, arguments_of(tool.spec.input_schema, form), form)
        return back_to(f"{path_of(name)}?call={trial.call_id}#result")

    return [
        Route(PATH, show, methods=["GET"]),
        Route(f"{PATH}/switch", switch, methods=["POST"]),
        Route(f"{PATH}/tool/{{name:path}}", show_tool, methods=["GET"]),
        Route(f"{PATH}/tool/{{name:path}}", attempt, methods=["POST"]),
    ]


def path_of(name: str) -> str:
    return f"{PATH}/tool/{quote(name)}"


async def catalog_data(parts: UiParts, known: KnownTools, wanted: Wanted) -> dict[str, Any]:
    """Servers and toolsets with what their tools cost, and one page of the tools that fit."""
    gateway = await parts.gateway()
    tools = known.of(gateway)
    found = [tool for tool in tools if wanted.fits(tool)]
    pages = max(1, -(-len(found) // TOOLS_ON_A_PAGE))
    page = min(wanted.page, pages)
    some = found[(page - 1) * TOOLS_ON_A_PAGE : page * TOOLS_ON_A_PAGE]
    return {
        "wanted": wanted,
        "servers": _servers(gateway, tools),
        "toolsets": _toolsets(tools),
        "tools": [_row(tool) for tool in some],
        "found": len(found),
        "here": wanted.path(page),
        "page": page,
        "pages": pages,
        "before": wanted.path(page - 1) if page > 1 else "",
        "after": wanted.path(page + 1) if page < pages else "",
        "count": sum(tool.is_on for tool in tools),
        "tokens": _tokens(tools),
        "listed_tokens": sum(tool.tokens for tool in tools if tool.is_listed),
        "is_deferred": any(tool.is_on and not tool.is_listed for tool in tools),
    }


async def tool_data(parts: UiParts, known: KnownTools, name: str, trial: Trial | None) -> dict[str, Any]:
    """Raises `HTTPException(404)` for a tool that nobody has."""
    gateway = await parts.gateway()
    tool = _tool(known, gateway, name)
    spec = tool.spec
    waits_as = ""
    if trial is not None and trial.result is None:
        waiting = await parts.queue.waiting()
        waits_as = next((one.id for one in waiting if one.call_id == trial.call_id), "")
    schema = json.dumps(spec.input_schema, indent=2, ensure_ascii=False)
    return {
        "tool": {**_row(tool), "description": spec.description, "effects": tool.effects, "toolset": spec.toolset},
        "here": path_of(name),
        "schema": schema if len(schema) <= MAX_SCHEMA_CHARS else f"{schema[:MAX_SCHEMA_CHARS]}\n...",
        "fields": fields_of(spec.input_schema),
        "filled": {} if trial is None else trial.form,
        "trial": None if trial is None else _trial(trial, waits_as),
    }


async def switched_note(name: str, *, on: bool, kind: Kind | None) -> str:
    """Switch something on or off in the user's own files. Returns what to tell the owner. Raises `ToolError`."""
    done = await anyio.to_thread.run_sync(partial(switched, [name], on=on, kind=kind))
    paths = [change.path for change in (*done.changes, *([done.edit.change] if done.edit else ())) if change.is_one]
    where = f"in {', '.join(map(str, paths))}. Running servers follow within 2 seconds" if paths else "already"
    return ". ".join([f"{name} is switched {'on' if on else 'off'} {where}", *done.notes]) + "."


def _tool(known: KnownTools, gateway: Gateway, name: str) -> CatalogTool:
    found = next((tool for tool in known.of(gateway) if name == tool.spec.name), None)
    if found is None:
        raise HTTPException(404)
    return found


def _tokens(tools: Sequence[CatalogTool]) -> int:
    return sum(tool.tokens for tool in tools if tool.is_on)


def _row(tool: CatalogTool) -> dict[str, Any]:
    spec = tool.spec
    return {
        "name": spec.name,
        "path": path_of(spec.name),
        "server": tool.server,
        "summary": spec.description.strip().split("\n")[0][:200],
        "tokens": tool.tokens,
        "risk": tool.risk,
        "is_on": tool.is_on,
        "is_listed": tool.is_listed,
    }


def _servers(gateway: Gateway, tools: Sequence[CatalogTool]) -> list[dict[str, Any]]:
    groups: dict[str, list[CatalogTool]] = {}
    for tool in tools:
        groups.setdefault(tool.server, []).append(tool)
    off = {one.name for one in gateway.upstreams.problems if one.reason_code == ReasonCode.DISABLED}
    configured = [config.name for config in gateway.upstreams.configs]
    names = [*dict.fromkeys([*groups, *configured, *sorted(off)])]
    return [
        {
            "name": name,
            "path": Wanted(server=name).path(1),
            "tools": sum(tool.is_on for tool in groups.get(name, ())),
            "known": len(groups.get(name, ())),
            "tokens": _tokens(groups.get(name, ())),
            "is_on": name not in off,
            "may_switch": name != BUILT_IN,
        }
        for name in names
    ]


def _toolsets(tools: Sequence[CatalogTool]) -> list[dict[str, Any]]:
    groups: dict[str, list[CatalogTool]] = {}
    for tool in tools:
        if tool.spec.toolset not in ("upstream", "meta"):
            groups.setdefault(tool.spec.toolset, []).append(tool)
    for name in SHIPPED_TOOLSETS:  # while they are off, their tools are not even made
        groups.setdefault(name, [])
    return [
        {
            "name": name,
            "word": f"{TOOLSET_PREFIX}{name}",
            "path": Wanted(toolset=name).path(1),
            "tools": sum(tool.is_on for tool in group),
            "known": len(group),
            "tokens": _tokens(group),
            "is_on": any(tool.is_on for tool in group),
        }
        for name, group in groups.items()
    ]


def _trial(trial: Trial, waits_as: str) -> dict[str, Any]:
    result = trial.result
    is_pending = result is not None and result.error_code == ErrorCode.APPROVAL_PENDING
    return {
        "call_id": trial.call_id,
        "is_done": result is not None,
        "failed": result is not None and result.is_error,
        "text": trial.text,
        "took_s": trial.ended_s - trial.began_s if result is not None else 0.0,
        "began_s": trial.began_s,
        "waits": bool(waits_as) or is_pending,
        "waits_path": f"/ui#a-{waits_as}" if waits_as else "/ui",
    }
