"""`goat-mcp status`: what runs, and how each MCP server behind it is doing."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.cli import flags
from goat_mcp.cli.terminal import console, escaped, wrapped_table
from goat_mcp.state.directory import StateDirectory

_TROUBLE = frozenset({"failed", "refused", "waiting"})


@click.command
@flags.selection
@flags.as_json
def status(as_json: bool, **selection: Any) -> None:
    """Show every goat-mcp of yours that runs, and the state of each upstream: why it is down, what is withheld.

    Where none runs, the configured upstreams are shown with what is known of them from the last run. Nothing is
    started and nothing is called.
    """
    from goat_mcp.gateway.status.gateway_status import with_ages
    from goat_mcp.gateway.status.process_files import ProcessFiles

    now_s = time.time()
    running = [with_ages(document, now_s) for document in ProcessFiles(StateDirectory.default()).running()]
    configured = None if running else _configured(selection)
    if as_json:
        click.echo(json.dumps({"running": running, "configured": configured}))
        return
    for document in running:
        _print(document, _who(document))
    if configured is not None:
        _print(configured, "No goat-mcp is running. Configured, with what is known from the last run:")


def _configured(selection: Mapping[str, Any]) -> dict[str, Any]:
    """The status of a gateway that was built and not run."""
    from goat_mcp.gateway.gateway import Gateway

    settings = flags.settings_from(**selection)
    flags.say_notices(settings)
    gateway = Gateway(settings, approval=settings.approval or Approval.HOST)
    document = gateway.status.document()
    # It is no server: these would speak of this very command.
    told = {name: value for name, value in document.items() if name not in ("pid", "transport", "started")}
    return {**told, "upstreams": [{**entry, "since": None} for entry in told["upstreams"]]}


def _who(document: Mapping[str, Any]) -> str:
    where = ", ".join(document["workspace"]) or "no workspace yet"
    return (
        f"goat-mcp {document['version']}, process {document['pid']}, {document['transport']}, "
        f"since {document['started']}, in {where}"
    )


def _print(document: Mapping[str, Any], head: str) -> None:
    out = console()
    click.echo(escaped(head))
    sandbox, permissions = document["sandbox"], document["permissions"]
    click.echo(
        escaped(
            f"mode {permissions['mode']}, asks go to {permissions['asks_go_to']}; sandbox {sandbox['name']}"
            + (f" ({sandbox['reason']})" if sandbox["reason"] else "")
            + _hooks(document["hooks"])
        )
    )
    limit = document.get("process_limit", {})  # an older server says nothing of it
    if limit.get("kind") == "none":
        click.echo(escaped(f"the number of processes of a command is not limited: {limit['reason']}"))
    upstreams: Sequence[Mapping[str, Any]] = document["upstreams"]
    if not upstreams:
        click.echo("no upstreams")
    else:
        headers = ["upstream", "state", "reason", "tools", "era", "since", "detail"]
        rows = [_row(upstream) for upstream in upstreams]
        if out.is_terminal:
            table = wrapped_table(headers, rows)
            for at, upstream in enumerate(upstreams):
                table.rows[at].style = _style(upstream)
            out.print(table)
        else:
            click.echo(
                "\n".join("\t".join(escaped(cell).replace("\n", " ") for cell in row) for row in (headers, *rows))
            )
    for line in _details(document):
        click.echo(escaped(line).replace("\n", " "))


def _row(upstream: Mapping[str, Any]) -> list[str]:
    return [
        str(upstream["name"]),
        str(upstream["state"]),
        str(upstream["reason_code"]),
        str(upstream["tool_count"]),
        str(upstream["version"]),
        str(upstream["since"] or ""),
        _detail(upstream),
    ]


def _detail(upstream: Mapping[str, Any]) -> str:
    again = f"next try {upstream['next_try']}" if upstream["next_try"] else ""
    age = f"catalog {_age(upstream['catalog_age_s'])} old" if upstream["catalog_age_s"] is not None else ""
    return "; ".join(part for part in (str(upstream["detail"]), again, age) if part)


def _age(seconds: int) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _style(upstream: Mapping[str, Any]) -> str:
    if upstream["state"] in _TROUBLE:
        return "red"
    return "yellow" if upstream["reason_code"] else ("green" if upstream["state"] == "ready" else "")


def _hooks(hooks: Sequence[Mapping[str, Any]]) -> str:
    if not hooks:
        return ""
    passing = sum(not hook["failure_denies"] for hook in hooks)
    return f"; {len(hooks)} hooks" + (f", {passing} of which let the call go on where they fail" if passing else "")


def _kind(withheld: Mapping[str, Any]) -> str:
    """What it is, where that is no tool."""
    kind = withheld.get("kind", "tool")
    return "" if kind == "tool" else f"{kind} "


def _details(document: Mapping[str, Any]) -> list[str]:
    """What is not used, each with its reason: nothing vanishes without a line."""
    lines: list[str] = []
    for upstream in document["upstreams"]:
        name = upstream["name"]
        lines += [
            f"{name}: withheld: {_kind(each)}{each['name'] or '(no name)'}: {each['reason_code']}: {each['reason']}"
            for each in upstream["withheld"]
        ]
        lines += [f"{name}: name_collision: {collision}" for collision in upstream["collisions"]]
        if upstream["stderr_tail"] and upstream["reason_code"]:
            lines.append(f"{name}: stderr: {upstream['stderr_tail'].splitlines()[-1]}")
    told = {(upstream["name"], upstream["reason_code"]) for upstream in document["upstreams"]}
    lines += [
        f"{problem['name']}: {problem['reason_code']}: {problem['detail']}"
        for problem in document["problems"]
        if (problem["name"], problem["reason_code"]) not in told and problem["reason_code"] != "name_collision"
    ]
    return lines + [f"{each['name']}: {each['detail']}" for each in document["ignored_keys"]]
