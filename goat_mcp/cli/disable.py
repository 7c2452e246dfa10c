"""`goat-mcp disable`: servers, tools, toolsets and presets switched off."""

from __future__ import annotations

from collections.abc import Sequence

import click

from goat_mcp.cli import flags
from goat_mcp.cli.host_changes import dry_run as dry_run_flag
from goat_mcp.cli.settings_file import in_project as project_flag


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--server", "kind", flag_value="server", help="NAME is a server.")
@click.option("--tool", "kind", flag_value="tool", help="NAME is a tool.")
@project_flag
@dry_run_flag
@flags.as_json
def disable(names: Sequence[str], kind: str | None, in_project: bool, dry_run: bool, as_json: bool) -> int:
    """Switch servers, tools, toolsets or presets off; their entries stay.

    NAME is a server, a tool (Bash, mcp__github__search_code), toolset:NAME or preset:NAME. Running servers follow
    within 2 seconds.
    """
    from goat_mcp.cli.switching import switch

    meant = "server" if kind == "server" else "tool" if kind == "tool" else None
    return switch(names, on=False, kind=meant, project=in_project, dry_run=dry_run, as_json=as_json)
