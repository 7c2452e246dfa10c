"""`goat-mcp docs`: what there is to read about a tool."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anyio
import click

from goat_mcp.cli import flags
from goat_mcp.cli.listing import QUIET, complete_catalog, opened
from goat_mcp.cli.terminal import console, escaped, print_table
from goat_mcp.cli.waiting import waiting_for
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.names import TOOL_ALIASES
from goat_mcp.core.spec import ToolSpec
from goat_mcp.settings.settings import Settings
from goat_mcp.tools.docs import document, short_doc

if TYPE_CHECKING:  # a command's machinery is loaded when it runs
    from goat_mcp.gateway.gateway import Gateway


@click.command
@click.argument("tool", required=False)
@flags.selection
@flags.as_json
def docs(tool: str | None, as_json: bool, **selection: Any) -> None:
    """Show the documentation of TOOL; without it, one line on each tool.

    It is Markdown in a pipe. The page of a tool that is off says how to turn it on.
    """
    settings = flags.settings_from(**selection, defaults=QUIET)
    if tool is None:
        _list(settings, as_json)
    else:
        _page(*_spec(settings, tool), as_json)


def _spec(settings: Settings, name: str) -> tuple[ToolSpec, str]:
    """The tool, and why it is off, if it is. Raises `ToolError` for a name nobody knows."""
    gateway = opened(settings)
    found = gateway.registry.get(name) or gateway.registry.get(TOOL_ALIASES.get(name, ""))
    if found is None:  # a tool of an upstream that was never seen
        anyio.run(_wait_for_tool, gateway, name)
        found = gateway.registry.get(name)
    spec = found.spec if found is not None else _optional_tools().get(TOOL_ALIASES.get(name, name))
    try:
        shown = gateway.catalog.resolve(name if spec is None else spec.name).spec
    except ToolError as off:
        if spec is None:
            raise ToolError(ErrorCode.TOOL_NOT_FOUND, off.message, off.suggestion) from None
        return spec, _how_to_turn_on(spec, gateway.settings, off)
    return spec or shown, ""


def _optional_tools() -> Mapping[str, ToolSpec]:
    """Those that come with us and are read only if their toolset is on."""
    from goat_mcp.gateway.build.manifests import shipped

    return {export.spec.name: export.spec for resource in shipped().tools for export in resource.exports}


def _how_to_turn_on(spec: ToolSpec, settings: Settings, off: ToolError) -> str:
    if spec.toolset in ("goa", "base") and spec.toolset not in settings.catalog.toolsets:
        toolset = spec.toolset
        return f"Turn it on with `--toolset {toolset}`, or with `catalog.toolsets: [{toolset}]` in a settings file."
    return f"{off.message[:1].upper()}{off.message[1:]}. {off.suggestion}"


async def _wait_for_tool(gateway: Gateway, name: str) -> None:
    async with gateway.running():
        with waiting_for(f"waiting for the server of {name} to start"):
            await gateway.upstreams.until_started(name)


def _list(settings: Settings, as_json: bool) -> None:
    listing = complete_catalog(settings)
    tools = listing.gateway.registry.snapshot.tools.values()
    lines = [(tool.spec.name, short_doc(tool.spec)) for tool in tools]
    if as_json:
        click.echo(json.dumps({"tools": [{"name": name, "short": short} for name, short in lines]}))
        return
    print_table(("tool", "what it does"), lines)
    listing.print_problems()


def _page(spec: ToolSpec, off: str, as_json: bool) -> None:
    page = document(spec, off)
    if as_json:
        click.echo(json.dumps(page.data()))
        return
    out, text = console(), escaped(page.markdown())
    if out.is_terminal:
        from rich.markdown import Markdown

        out.print(Markdown(text))
    else:
        click.echo(text, nl=False)
