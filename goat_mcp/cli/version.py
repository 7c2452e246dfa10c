"""`goat-mcp version`: what is installed."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version as installed

import click

from goat_mcp.cli import flags
from goat_mcp.core.version import __version__


@click.command
@flags.as_json
def version(as_json: bool) -> None:
    """Print the versions of goat-mcp, the MCP SDK and Python."""
    facts = {"goat-mcp": __version__, "mcp": installed("mcp"), "python": platform.python_version()}
    if as_json:
        click.echo(json.dumps(facts))
    else:
        click.echo("\n".join(f"{name} {number}" for name, number in facts.items()))
