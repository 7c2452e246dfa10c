"""`goat-mcp export`: the catalog in the formats of other systems."""

from __future__ import annotations

import json
from typing import Any

import click

from goat_mcp.catalog.openai_format import definitions
from goat_mcp.cli import flags
from goat_mcp.cli.listing import QUIET, complete_catalog


@click.group
def export() -> None:
    """Print the catalog in the format of another system."""


@export.command
@flags.selection
@flags.as_json
def openai(as_json: bool, **selection: Any) -> None:
    """Print tool definitions for the `tools` parameter of an OpenAI chat completion (LiteLLM and others take it too).

    The output is JSON with and without --json; with it, so is what goes wrong.
    """
    listing = complete_catalog(flags.settings_from(**selection, defaults=QUIET))
    made = definitions(tool.spec for tool in listing.gateway.catalog.for_models())
    click.echo(json.dumps(made, indent=None if as_json else 2))
    listing.print_problems()
