"""The commands and their help, gathered. Each command's module is imported when it runs."""

from __future__ import annotations

import importlib

import click

_COMMANDS = {
    "serve": "serve",
    "list": "list_tools",
    "inspect": "inspect",
    "call": "call",
    "status": "status",
    "auth": "auth",
    "doctor": "doctor",
    "logs": "logs",
    "why": "why",
    "rules": "rules",
    "import": "import_servers",
    "eject": "eject",
    "install": "install",
    "uninstall": "uninstall",
    "manifest": "manifest",
    "export": "export",
    "docs": "docs",
    "plan": "plan",
    "audit": "audit",
    "trust": "trust",
    "lock": "lock",
    "undo": "undo",
    "review": "review",
    "demo": "demo",
    "version": "version",
}
"""Each command, and the module and the function in it that it is."""


class _Commands(click.Group):
    """Loads a command with its name, so that `serve` loads no other."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = _COMMANDS.get(cmd_name)
        if place is None:
            return None
        return getattr(importlib.import_module(f"goat_mcp.cli.{place}"), place)


@click.command(cls=_Commands, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
def app() -> None:
    """Claude-Code-grade tools and all your other MCP servers behind one MCP server.

    Plug `goat-mcp serve` into an MCP host, or try it here: `goat-mcp demo`.
    """
