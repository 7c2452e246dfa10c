"""`goat-mcp list`: the catalog, as a client with these flags would see it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from goat_mcp.catalog.filter import token_cost
from goat_mcp.cli import flags
from goat_mcp.cli.flags import complete_catalog, print_problems
from goat_mcp.cli.terminal import print_table

if TYPE_CHECKING:  # a command's machinery is loaded when it runs
    from goat_mcp.gateway.gateway import Gateway


@click.command("list")
@flags.selection
@click.option("--tokens", is_flag=True, help="Show what each definition costs a model, and all of them, in tokens.")
@flags.as_json
def list_tools(tokens: bool, as_json: bool, **selection: Any) -> None:
    """List all tools, built-in and upstream, with their side effect; upstream problems follow.

    Where the catalog is too large to be listed to a client whole, `deferred` are those it finds by search.
    """
    settings = flags.settings_from(**selection)
    gateway = complete_catalog(settings)
    if as_json:
        click.echo(json.dumps(_document(gateway, tokens)))
        return
    _print_table(gateway, tokens)
    print_problems(gateway)


def _document(gateway: Gateway, tokens: bool) -> dict[str, Any]:
    listing, deferred = gateway.catalog.listing(), [tool.spec.wire() for tool in gateway.catalog.deferred()]
    if not tokens:
        return {"tools": listing, "deferred": deferred, "problems": gateway.problems()}
    tools, found = ([{**wire, "tokens": token_cost(wire)} for wire in wires] for wires in (listing, deferred))
    spent = sum(tool["tokens"] for tool in tools)
    return {"tools": tools, "tokens": spent, "deferred": found, "problems": gateway.problems()}


def _print_table(gateway: Gateway, tokens: bool) -> None:
    headers = ["tool", "side effect", *(["tokens"] if tokens else []), "what it does"]
    rows: list[list[str]] = []
    listed = {wire["name"]: token_cost(wire) for wire in gateway.catalog.listing()}
    deferred = 0
    for tool in gateway.catalog.tools():
        wire = tool.spec.wire()
        cost = token_cost(wire) if tool.spec.name not in listed else listed[tool.spec.name]
        deferred += cost if tool.spec.name not in listed else 0
        summary = (tool.spec.description.strip().splitlines() or [""])[0]
        rows.append([tool.spec.name, tool.spec.side_effect.value, *([str(cost)] if tokens else []), summary])
    print_table(headers, rows)
    if tokens:
        click.echo(f"{len(listed)} tools, {sum(listed.values()):,} tokens")
    if found := len(rows) - len(listed):
        click.echo(f"{found} more are found by search_tools and not listed to clients: {deferred:,} tokens saved")
