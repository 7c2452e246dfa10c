"""View Start: the hosts on this machine, connected or not; where goat-mcp works; and what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.json_values import items
from goat_mcp.gateway.status.process_files import ProcessFiles
from goat_mcp.server.ui.hosts import HostChange, HostHere, Hosts, Step
from goat_mcp.server.ui.login import session_of
from goat_mcp.server.ui.pages import back_to
from goat_mcp.server.ui.parts import UiParts
from goat_mcp.server.ui.security import form_of
from goat_mcp.settings.upstream_files import configured_servers
from goat_mcp.state.directory import config_folder

PATH = "/ui/start"


@dataclass(frozen=True)
class NextStep:
    """`commands` is what to type, `path` the view that does the same."""

    title: str
    text: str
    commands: str = ""
    path: str = ""


def routes(parts: UiParts) -> list[Route]:
    async def show(request: Request) -> Response:
        notes = {about: note for about, note in session_of(request.scope).notes.items() if about.startswith("host ")}
        return parts.pages.answer(request, "start.html", {**await start_data(parts), "notes": notes})

    async def plan(request: Request) -> Response:
        """What a step would change; nothing is written."""
        step, host = _step(request), request.query_params.get("host", "")
        workspace = request.query_params.get("workspace", "")
        change = await anyio.to_thread.run_sync(_hosts(parts).plan, step, host, workspace)
        data = {"change": change, "step": step, "host": host, "workspace": workspace}
        return parts.pages.answer(request, "start_change.html", data)

    async def carry_out(request: Request) -> Response:
        step, form = _step(request), form_of(request)
        host, workspace, digest = (form.get(name, "") for name in ("host", "workspace", "digest"))
        done = await anyio.to_thread.run_sync(_hosts(parts).carry_out, step, host, workspace, digest)
        session_of(request.scope).note(f"host {host}", _done(done, step))
        return back_to(PATH)

    return [
        Route(PATH, show),
        Route(f"{PATH}/{{step}}", plan, methods=["GET"]),
        Route(f"{PATH}/{{step}}", carry_out, methods=["POST"]),
    ]


async def start_data(parts: UiParts) -> Mapping[str, Any]:
    hosts: Sequence[HostHere] = () if parts.hosts is None else await anyio.to_thread.run_sync(parts.hosts.here)
    running = await anyio.to_thread.run_sync(ProcessFiles(parts.state).running)
    servers = await anyio.to_thread.run_sync(configured_servers)
    return {
        "hosts": hosts,
        "may_connect": parts.hosts is not None,
        "running": [
            {
                "pid": one.get("pid"),
                "transport": one.get("transport"),
                "workspace": [str(folder) for folder in items(one.get("workspace"))],
            }
            for one in running
        ],
        "settings_file": str(config_folder() / "goat-mcp.yaml"),
        "steps": next_steps(hosts, len(servers), is_running=bool(running)),
    }


def next_steps(hosts: Sequence[HostHere], servers: int, *, is_running: bool) -> list[NextStep]:
    """What a person can do now, the first thing first."""
    connected = [host for host in hosts if host.connected and not host.problem]
    theirs = sum(host.other_servers for host in hosts)
    steps: list[NextStep] = []
    if not connected:
        steps.append(
            NextStep(
                "Connect a host",
                "A host is the program in which you talk to a model. It starts goat-mcp, and the model gets its tools.",
                "goat-mcp install HOST",
            )
        )
    elif not is_running:
        titles = ", ".join(host.title for host in connected)
        steps.append(NextStep(f"Start {titles}", "It starts goat-mcp; what the model does is then shown here."))
    if theirs and not servers:
        steps.append(
            NextStep(
                f"Import the {theirs} MCP server{'' if theirs == 1 else 's'} of your hosts",
                "They stay where they are, and goat-mcp starts them, too, under one set of rules. Look first:",
                "goat-mcp import --dry-run\ngoat-mcp import",
            )
        )
    if servers:
        behind = "1 server is" if servers == 1 else f"{servers} servers are"
        steps.append(NextStep("See your tools", f"{behind} behind goat-mcp.", path="/ui/catalog"))
    else:
        steps.append(
            NextStep(
                "Add a server",
                "An MCP server behind goat-mcp: a program that it starts, or an address.",
                "goat-mcp add NAME -- COMMAND\ngoat-mcp add NAME https://example.org/mcp",
            )
        )
    steps.append(
        NextStep(
            "Be notified when something waits",
            "On the desktop, as here, on your phone by Telegram or Slack, or by a program of yours. Put this into your "
            "settings file, then send a test message: goat-mcp approvals --test-notify",
            "approval:\n  notify:\n    - desktop: true",
        )
    )
    return steps


def _done(change: HostChange, step: Step) -> str:
    if not change.diff:
        return f"Nothing was to be changed in {change.file}."
    done = "starts goat-mcp now" if step == "connect" else "does not start goat-mcp any more"
    return "\n".join(part for part in (f"{change.title} {done}.", change.workspace, change.after) if part)


def _step(request: Request) -> Step:
    match request.path_params["step"]:
        case "connect":
            return "connect"
        case "disconnect":
            return "disconnect"
        case _:
            raise HTTPException(404)


def _hosts(parts: UiParts) -> Hosts:
    if parts.hosts is None:
        raise ToolError(
            ErrorCode.NOT_CONFIGURED, "this page cannot change which hosts start goat-mcp", "Run: goat-mcp ui"
        )
    return parts.hosts
