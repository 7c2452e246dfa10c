"""`goat-mcp list`: the catalog, as a client with these flags would see it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from goat_mcp.cli import flags
from goat_mcp.cli.catalog_view import complete_catalog, print_problems

if TYPE_CHECKING:  # a command's machinery is loaded when it runs
    from goat_mcp.gateway import Gateway


@click.command("list")
@flags.selection
@click.option("--tokens", is_flag=True, help="Show what each definition costs a model, and all of them, in tokens.")
@flags.as_json
def list_tools(tokens: bool, as_json: bool, **selection: Any) -> None:
    """List all tools, built-in and upstream, with their side effect; upstream problems follow."""
    settings = flags.settings_from(**selection)
    gateway = complete_catalog(settings)
    if as_json:
        click.echo(json.dumps(_document(gateway, tokens)))
        return
    _print_table(gateway, tokens)
    print_problems(gateway)


def _document(gateway: Gateway, tokens: bool) -> dict[str, Any]:
    listing = gateway.catalog.listing()
    if not tokens:
        return {"tools": listing, "problems": gateway.problems()}
    tools = [{**wire, "tokens": token_cost(wire)} for wire in listing]
    return {"tools": tools, "tokens": sum(tool["tokens"] for tool in tools), "problems": gateway.problems()}


def token_cost(wire: dict[str, Any]) -> int:
    """Tokens a definition costs a model: characters of its compact JSON / 4 (tools contract, "Budget")."""
    return -(-len(json.dumps(wire, separators=(",", ":"), ensure_ascii=False)) // 4)


def _print_table(gateway: Gateway, tokens: bool) -> None:
    """A table on a terminal, tab-separated lines elsewhere."""
    from goat_mcp.cli.terminal import catalog_table, console, escaped

    headers = ["tool", "side effect", *(["tokens"] if tokens else []), "what it does"]
    rows: list[list[str]] = []
    total = 0
    for tool in gateway.catalog.tools():
        cost = token_cost(tool.spec.wire())
        total += cost
        summary = (tool.spec.description.strip().splitlines() or [""])[0]
        rows.append([tool.spec.name, tool.spec.side_effect.value, *([str(cost)] if tokens else []), summary])
    out = console()
    if out.is_terminal:
        out.print(catalog_table(out, headers, rows))
    else:
        click.echo("\n".join("\t".join(escaped(cell) for cell in row) for row in rows))
    if tokens:
        click.echo(f"{len(rows)} tools, {total:,} tokens")
