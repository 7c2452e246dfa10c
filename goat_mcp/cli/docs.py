"""`goat-mcp docs`: what there is to read about a tool."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import click

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.cli import flags
from goat_mcp.cli.flags import complete_catalog, print_problems
from goat_mcp.cli.terminal import console, escaped, print_table
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.names import NAME_ALIASES
from goat_mcp.core.spec import ToolSpec
from goat_mcp.settings.settings import Settings
from goat_mcp.tools.docs import document, short_doc

if TYPE_CHECKING:  # a command's machinery is loaded when it runs
    from goat_mcp.gateway.gateway import Gateway

START_TIMEOUT_S = 30.0
"""For an upstream to start and list the tool that is asked about."""


@click.command
@click.argument("tool", required=False)
@flags.selection
@flags.as_json
def docs(tool: str | None, as_json: bool, **selection: Any) -> None:
    """Show the documentation of TOOL; without it, one line on each tool.

    Markdown where the output is piped. A tool that is off or denied is documented as well.
    """
    settings = flags.settings_from(**selection)
    if tool is None:
        _list(complete_catalog(settings), as_json)
    else:
        _page(_spec(settings, tool), as_json)


def _spec(settings: Settings, name: str) -> ToolSpec:
    """Raises `ToolError` for a name nobody knows."""
    from goat_mcp.gateway.gateway import Gateway

    gateway = Gateway(settings, approval=Approval.DENY)
    found = gateway.registry.get(name) or gateway.registry.get(NAME_ALIASES.get(name, ""))
    if found is None:  # a tool of an upstream that was never seen
        anyio.run(_wait_for_tool, gateway, name)
        found = gateway.registry.get(name)
    if found is not None:
        return found.spec
    try:
        return gateway.catalog.resolve(name).spec
    except ToolError as unknown:
        raise ToolError(ErrorCode.TOOL_NOT_FOUND, unknown.message, unknown.suggestion) from None


async def _wait_for_tool(gateway: Gateway, name: str) -> None:
    async with gateway.running():
        await gateway.upstreams.first_outcome(name, START_TIMEOUT_S)


def _list(gateway: Gateway, as_json: bool) -> None:
    lines = [(tool.spec.name, short_doc(tool.spec)) for tool in gateway.registry.snapshot.tools.values()]
    if as_json:
        click.echo(json.dumps({"tools": [{"name": name, "short": short} for name, short in lines]}))
        return
    print_table(("tool", "what it does"), lines)
    print_problems(gateway)


def _page(spec: ToolSpec, as_json: bool) -> None:
    page = document(spec)
    if as_json:
        click.echo(json.dumps(page.data()))
        return
    out, text = console(), escaped(page.markdown())
    if out.is_terminal:
        from rich.markdown import Markdown

        out.print(Markdown(text))
    else:
        click.echo(text, nl=False)
