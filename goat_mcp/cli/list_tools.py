"""`goat-mcp list`: the catalog, as a client with these flags would see it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from goat_mcp.cli import flags

if TYPE_CHECKING:  # a command's machinery is loaded when it runs
    from goat_mcp.gateway import Gateway


@click.command("list")
@flags.selection
@click.option("--tokens", is_flag=True, help="Show what each definition costs, in tokens.")
@flags.as_json
def list_tools(tokens: bool, as_json: bool, **selection: Any) -> None:
    """List all tools, built-in and upstream, with their side effect; upstream problems follow."""
    settings = flags.settings_from(**selection)
    import anyio

    from goat_mcp.gateway import Gateway
    from goat_mcp.permissions.mode import Approval

    gateway = Gateway(settings, approval=Approval.DENY)
    anyio.run(_complete, gateway)
    problems = gateway.problems()
    if as_json:
        click.echo(
            json.dumps({"tools": [_entry(wire, tokens) for wire in gateway.catalog.listing()], "problems": problems})
        )
        return
    _print_table(gateway, tokens)
    for problem in problems:
        click.echo(f"{problem['name']}: {problem['reason_code']}: {problem['detail']}", err=True)


async def _complete(gateway: Gateway) -> None:
    async with gateway.running():
        await gateway.upstreams.first_list()


def _entry(wire: dict[str, Any], tokens: bool) -> dict[str, Any]:
    return {**wire, "tokens": token_cost(wire)} if tokens else wire


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
