"""The view Servers: how each server behind goat-mcp is, in every process that has it; and what it has changed."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

import anyio
import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.json_values import items, mapping
from goat_mcp.gateway.catalog_tools import CatalogTool
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.gateway.status.last_runs import LastRun, LastRuns, record_key
from goat_mcp.gateway.status.process_files import ProcessFiles
from goat_mcp.gateway.status.requests import UNKNOWN, RequestKind
from goat_mcp.gateway.status.running_servers import who
from goat_mcp.gateway.switching import switched
from goat_mcp.server.ui.catalog import path_of as path_of_tool
from goat_mcp.server.ui.known_tools import KnownTools
from goat_mcp.server.ui.login import session_of
from goat_mcp.server.ui.pages import back_to
from goat_mcp.server.ui.parts import UiParts
from goat_mcp.server.ui.pins import PinsView
from goat_mcp.server.ui.process_requests import answers_to
from goat_mcp.server.ui.security import form_of
from goat_mcp.server.ui.server_logins import ServerLogins
from goat_mcp.upstreams.reason_pages import REASON_PAGES
from goat_mcp.upstreams.status import ReasonCode

PATH = "/ui/servers"
ANSWERS_WITHIN_S = 6.0
MAX_TOOLS = 1000
_STDERR_LINES = 40
_BADGES = {"ready": "good", "failed": "bad", "refused": "bad", "waiting": "bad", "starting": "wait"}
_KINDS = {"restart": RequestKind.RESTART, "stop": RequestKind.STOP}


class ServersView:
    """What is kept between requests: nothing that the files do not say."""

    def __init__(self, parts: UiParts) -> None:
        self.parts = parts
        self.tools = KnownTools()
        self.pins = PinsView(parts.state)
        self.logins = ServerLogins()


def routes(parts: UiParts) -> list[Route]:
    view = ServersView(parts)

    async def show(request: Request) -> Response:
        data = await servers_data(view)
        notes = _notes(request)
        return parts.pages.answer(request, "servers.html", {"title": "Servers", **data, "notes": notes})

    async def show_one(request: Request) -> Response:
        name = request.path_params["name"]
        data = await server_data(view, name)
        notes = _notes(request, name)
        return parts.pages.answer(request, "server.html", {"title": name, **data, "notes": notes})

    async def act(request: Request) -> Response:
        form = form_of(request)
        name, step = form.get("server", ""), form.get("do", "")
        if step == "login":
            note = await view.logins.begin(await parts.gateway(), name)
        else:
            note = await done(parts, name, step)
        session_of(request.scope).note(f"server {name}", note)
        return back_to(path_of(name))

    return [
        Route(PATH, show, methods=["GET"]),
        Route(PATH, act, methods=["POST"]),
        Route(f"{PATH}/{{name:path}}", show_one, methods=["GET"]),
    ]


def path_of(name: str) -> str:
    return f"{PATH}/{quote(name)}"


def _notes(request: Request, name: str | None = None) -> list[str]:
    notes = session_of(request.scope).notes
    wanted = None if name is None else f"server {name}"
    return [text for about, text in notes.items() if about == wanted or (name is None and about.startswith("server "))]


async def servers_data(view: ServersView) -> dict[str, Any]:
    """Every server that a running goat-mcp has or that is configured here, in the order of the configuration."""
    gateway = await view.parts.gateway()
    known = await anyio.to_thread.run_sync(_known, view, gateway)
    counts: dict[str, int] = {}
    for tool in view.tools.of(gateway):
        if tool.is_on:
            counts[tool.server] = counts.get(tool.server, 0) + 1
    return {
        "servers": [{**one, "tools": counts.get(one["name"], one["tool_count"])} for one in known],
    }


async def server_data(view: ServersView, name: str) -> dict[str, Any]:
    """All that is known of one. Raises `HTTPException(404)`."""
    gateway = await view.parts.gateway()
    known = await anyio.to_thread.run_sync(_known, view, gateway)
    one = next((one for one in known if one["name"] == name), None)
    if one is None:
        raise HTTPException(404)
    tools = [tool for tool in view.tools.of(gateway) if tool.server == name]
    approvals = await view.parts.queue.waiting()
    pins = await anyio.to_thread.run_sync(view.pins.of, one["server"], approvals)
    return {
        "server": one,
        "login_page": view.logins.address_of(name),
        "login_outcome": gateway.redactor.text(view.logins.outcome_of(name)),
        "tools": [_tool(tool) for tool in tools[:MAX_TOOLS]],
        "tokens": sum(tool.tokens for tool in tools if tool.is_on),
        "pins": pins,
    }


def _tool(tool: CatalogTool) -> dict[str, Any]:
    spec = tool.spec
    return {
        "name": spec.name,
        "path": path_of_tool(spec.name),
        "risk": tool.risk,
        "effects": tool.effects,
        "tokens": tool.tokens,
        "is_on": tool.is_on,
    }


async def done(parts: UiParts, name: str, step: str) -> str:
    """Carry out a button of the page. Returns what to tell the owner. Raises `ToolError`."""
    if step in ("enable", "disable"):
        result = await anyio.to_thread.run_sync(partial(switched, [name], on=step == "enable", kind="server"))
        changed = [str(change.path) for change in result.changes if change.is_one]
        if not changed:
            return f"{name}: its file says so already."
        return f"{name}: {step}d in {', '.join(changed)}. Running servers follow within 2 seconds."
    if step not in _KINDS:
        raise ToolError(
            ErrorCode.INPUT, f"{step!r:.40} is nothing that can be done to a server", "Load the view again."
        )
    found = await answers_to(parts, _KINDS[step], name, within_s=ANSWERS_WITHIN_S)
    answers = [one for one in found if one.get("state") != UNKNOWN]
    results = [f"process {answer['pid']}: {_words(answer)}" for answer in answers]
    gateway = await parts.gateway()
    if os.getpid() not in [answer["pid"] for answer in answers] and not await _is_published(parts):
        results += await _done_here(gateway, name, step)
    return f"{name}: {'; '.join(results)}." if results else f"{name}: no running goat-mcp has it."


async def _is_published(parts: UiParts) -> bool:
    """Whether this process serves clients, too, and does what requests ask for."""
    documents = await anyio.to_thread.run_sync(ProcessFiles(parts.state).running)
    return any(one["pid"] == os.getpid() for one in documents)


async def _done_here(gateway: Gateway, name: str, step: str) -> list[str]:
    status = await gateway.upstreams.restarted(name, None if step == "stop" else ANSWERS_WITHIN_S)
    if status is None:
        return []
    facts = {"reason_code": str(status.reason_code), "detail": gateway.redactor.text(status.detail)}
    answer = {"state": str(status.state), **facts, "tool_count": status.tool_count}
    return [f"for this page: {_words(answer)}"]


def _words(answer: Mapping[str, Any]) -> str:
    state = str(answer.get("state", ""))
    if state == "ready":
        return f"started, {answer.get('tool_count', 0)} tools"
    if state == "idle":
        return "stopped; its next use starts it again"
    why = f": {answer['reason_code']}: {answer['detail']}" if answer.get("reason_code") else ""
    return f"{state}{why}"


def _known(view: ServersView, gateway: Gateway) -> list[dict[str, Any]]:
    """Each server once, with how it stands in each process. Blocking."""
    state, redactor = view.parts.state, gateway.redactor
    documents = ProcessFiles(state).running()
    runs = LastRuns(state, redactor).all()
    waiting = view.pins.waiting_counts()
    here = mapping(gateway.status.without_secrets(gateway.status.raw()))
    configured = {str(mapping(one)["name"]): mapping(one) for one in items(here.get("upstreams"))}
    keys = {config.name: record_key(config) for config in gateway.upstreams.configs}
    found: dict[str, dict[str, Any]] = {}
    published = [(who(document), document) for document in documents]
    is_alone = all(document["pid"] != os.getpid() for document in documents)
    for place, document in [*published, *([("this page", here)] if is_alone else [])]:
        for entry in map(mapping, items(document.get("upstreams"))):
            name = str(entry["name"])
            one = found.setdefault(name, {"name": name, "places": []})
            if place == "this page" and one["places"]:
                continue  # a running server says more
            one["places"].append(_place(place, entry))
            one.setdefault("entry", configured.get(name, entry))
    order = [*configured, *(name for name in found if name not in configured)]
    return [_summary(found[name], runs.get(keys.get(name, "")), waiting) for name in order if name in found]


def _place(place: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    code = str(entry.get("reason_code", ""))
    page = REASON_PAGES.get(ReasonCode(code)) if code in list(ReasonCode) else None
    return {
        "place": place,
        "state": str(entry.get("state", "")),
        "badge": _BADGES.get(str(entry.get("state")), ""),
        "reason_code": code,
        "meaning": page.meaning if page is not None else "",
        "remedy": page.remedy if page is not None else "",
        "detail": str(entry.get("detail", "")),
        "next_try": str(entry.get("next_try") or ""),
        "version": str(entry.get("version", "")),
        "calls": entry.get("calls_in_flight", 0),
        "rejected": [
            f"{one.get('kind', 'tool')} {one.get('name') or '(no name)'}: {one.get('reason', '')}"
            for one in map(mapping, items(entry.get("rejected")))
        ],
        "stderr": str(entry.get("stderr_tail") or ""),
    }


def _summary(one: Mapping[str, Any], run: LastRun | None, waiting: Mapping[str, int]) -> dict[str, Any]:
    entry: Mapping[str, Any] = one["entry"]
    places: Sequence[Mapping[str, Any]] = one["places"]
    stderr = next((place["stderr"] for place in places if place["stderr"]), "")
    lines = stderr.splitlines() or (run.stderr_lines if run is not None else [])
    worst = next((place for place in places if place["badge"] == "bad"), places[0])
    return {
        "name": one["name"],
        "path": path_of(one["name"]),
        "server": str(entry.get("server", "")),
        "state": worst["state"],
        "badge": worst["badge"],
        "reason_code": worst["reason_code"],
        "detail": worst["detail"],
        "places": places,
        "is_off": all(place["reason_code"] == ReasonCode.DISABLED for place in places),
        "is_running": any(place["state"] in ("ready", "starting") for place in places),
        "wants_login": any(place["reason_code"] == ReasonCode.AUTH_REQUIRED for place in places),
        "tool_count": entry.get("tool_count", 0),
        "transport": str(entry.get("transport", "")),
        "target": str(entry.get("target", "")),
        "file": str(entry.get("file", "")),
        "waiting": waiting.get(str(entry.get("server", "")), 0),
        "stderr": "\n".join(lines[-_STDERR_LINES:]),
        "failure": _failure(run),
    }


def _failure(run: LastRun | None) -> dict[str, Any] | None:
    if run is None or not run.failed_at_s:
        return None
    return {
        "at_s": run.failed_at_s,
        "reason_code": run.reason_code,
        "cause": run.cause,
        "worked_at_s": run.worked_at_s if run.worked_at_s > run.failed_at_s else 0,
        "age_s": time.time() - run.failed_at_s,
    }
