"""`goat-mcp inspect`: what clients are shown of tools, and what of it is not as an upstream wrote it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from goat_mcp.catalog.catalog import ListedTool
from goat_mcp.catalog.schemas.dialects import host_findings
from goat_mcp.cli import flags
from goat_mcp.cli.exit_codes import AUTH, NOT_PORTABLE, UNREACHABLE
from goat_mcp.cli.listing import QUIET, complete_catalog
from goat_mcp.cli.terminal import escaped, print_table
from goat_mcp.core.errors import ToolError
from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.upstreams.status import UpstreamStatus

if TYPE_CHECKING:  # a command's machinery is loaded when it runs
    from goat_mcp.gateway.gateway import Gateway


@click.command()
@click.argument("name", required=False, metavar="[SERVER|TOOL]")
@click.option("--strict", is_flag=True, help="Fail if a schema had to change for hosts.")
@click.option("--dialect", metavar="NAME", help="What other hosts would see: plain, mcp, openai or gemini.")
@flags.selection
@flags.as_json
def inspect(name: str | None, strict: bool, dialect: str | None, as_json: bool, **selection: Any) -> int:
    """Show what clients see of all tools, of a server's, or of one: names, risk, and every rewrite of a schema.

    Exit status: 0 done, 1 wrong usage, 3 the server wants a login, 4 it could not be reached, 6 (only with --strict) a
    tool is rewritten or rejected, or the catalog is more than a host takes.
    """
    if dialect is not None:
        selection["overrides"] = [*selection["overrides"], f"catalog.schema_dialect={dialect}"]
    listing = complete_catalog(flags.settings_from(**selection, defaults=QUIET), about=name)
    gateway, known = listing.gateway, [server.status for server in listing.servers]
    statuses = [status for status in known if name is None or name in (status.name, status.server)]
    listed = _chosen(gateway, name, {status.server for status in statuses if status.server})
    if name is not None and not listed and not statuses:
        # Says whether it is hidden, down, or like the name of another one.
        try:
            gateway.catalog.resolve(name)
        except ToolError as unknown:
            near = did_you_mean(name, [*gateway.catalog.shown(), *(one.name for one in known)])
            raise ToolError(unknown.code, unknown.message, f"D{near[1:]}" if near else unknown.suggestion) from None
    document = _document(gateway, listed, statuses, with_schemas=name in listed) | {"problems": listing.problems}
    if as_json:
        click.echo(json.dumps(document))
    else:
        _print(document)
        listing.print_problems()
    if (code := _unreached(statuses if name is not None else [])) != 0:
        return code
    is_portable = not (document["rejected"] or document["findings"])
    is_portable = is_portable and not any(tool["rewrites"] for tool in document["tools"])
    return NOT_PORTABLE if strict and not is_portable else 0


def _chosen(gateway: Gateway, name: str | None, servers: set[str]) -> Mapping[str, ListedTool]:
    """The tools that are meant: all, a server's, or one by its listed or canonical name."""
    listed = gateway.catalog.shown()
    if name is None:
        return listed
    if servers:
        sources = {f"upstream:{server}" for server in servers}
        source_of = gateway.registry.snapshot.source_of
        return {tool: shown for tool, shown in listed.items() if source_of.get(tool) in sources}
    return {tool: shown for tool, shown in listed.items() if name in (tool, shown.spec.rule_name)}


def _document(
    gateway: Gateway, listed: Mapping[str, ListedTool], statuses: Sequence[UpstreamStatus], *, with_schemas: bool
) -> dict[str, Any]:
    return {
        "dialect": gateway.catalog.dialect.name,
        "tools": [_tool(shown, with_schemas=with_schemas) for shown in listed.values()],
        "rejected": [
            {"server": status.name, "name": rejected.name, "reason": rejected.reason}
            for status in statuses
            for rejected in status.rejected
        ],
        "findings": [] if with_schemas else host_findings(listed),
    }


def _tool(shown: ListedTool, *, with_schemas: bool) -> dict[str, Any]:
    spec = shown.spec
    claimed = getattr(spec, "claimed_risk", None)
    native = getattr(spec, "native_name", None)
    tool: dict[str, Any] = {
        "name": spec.name,
        "canonical_name": spec.rule_name,
        "native_name": native if native is not None else spec.name,
        "risk": spec.risk.name.lower(),
        "effects": list(spec.effects),
        "claimed_risk": claimed.name.lower() if claimed is not None else None,
        "rewrites": [{"path": rewrite.path, "what": rewrite.what} for rewrite in shown.rewrites],
    }
    if with_schemas:
        tool |= {"listed": dict(shown.entry), "original": spec.wire()}
    return tool


def _unreached(statuses: Sequence[UpstreamStatus]) -> int:
    """The exit status of a server that was asked for and did not list its tools; 0 if there is none."""
    for status in statuses:
        if status.tool_count == 0 and status.reason_code:
            return AUTH if status.reason_code == "auth_required" else UNREACHABLE
    return 0


def _row(tool: Mapping[str, Any]) -> list[str]:
    claimed = tool["claimed_risk"]
    risk = tool["risk"] + (f" (claims {claimed})" if claimed not in (None, tool["risk"]) else "")
    return [tool["name"], ", ".join(tool["effects"]), risk, str(len(tool["rewrites"]))]


def _print(document: Mapping[str, Any]) -> None:
    tools: list[dict[str, Any]] = document["tools"]
    print_table(("tool", "effects", "risk", "rewrites"), [_row(tool) for tool in tools])
    for tool in tools:
        if tool["rewrites"]:
            click.echo(escaped(f"{tool['name']}:"))
        for rewrite in tool["rewrites"]:
            click.echo(escaped(f"  {rewrite['path']}: {rewrite['what']}"))
        for which in ("listed", "original"):
            if which in tool and (which == "listed" or tool["rewrites"]):
                click.echo(f"{which}:\n{json.dumps(tool[which], indent=2)}")
    for rejected in document["rejected"]:
        click.echo(
            escaped(f"{rejected['server']}: {rejected['name'] or '(no name)'} is rejected: {rejected['reason']}")
        )
    for finding in document["findings"]:
        click.echo(escaped(finding))
    rewritten = sum(bool(tool["rewrites"]) for tool in tools)
    count = "1 tool" if len(tools) == 1 else f"{len(tools)} tools"
    click.echo(f"{count} in dialect {document['dialect']}, {rewritten} of them rewritten")
