"""`goat-mcp version`: what is installed."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version as installed

import typer

from goat_mcp import __version__
from goat_mcp.cli import flags


def version(as_json: flags.Json = False) -> None:
    """Print the versions of goat-mcp, the MCP SDK and Python."""
    facts = {"goat-mcp": __version__, "mcp": installed("mcp"), "python": platform.python_version()}
    if as_json:
        typer.echo(json.dumps(facts))
    else:
        typer.echo("\n".join(f"{name} {number}" for name, number in facts.items()))
