"""The commands and their help, gathered. Each command's module is imported when it runs."""

from __future__ import annotations

import importlib

import typer

HELP = """Claude-Code-grade tools and all your other MCP servers behind one MCP server.

Plug `goat-mcp serve` into an MCP host, or try it here: `goat-mcp demo`.
"""


_COMMANDS = {"serve": "serve", "list": "list_tools", "call": "call", "demo": "demo", "version": "version"}
"""Each command and the module and function it is; modules are named here so that `serve` loads its own only."""


def build_app(arguments: list[str]) -> typer.Typer:
    """The program for these arguments: one command where they name one, all of them for help."""
    app = typer.Typer(
        name="goat-mcp",
        help=HELP,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    named = arguments[0] if arguments and arguments[0] in _COMMANDS else None
    for command, place in _COMMANDS.items():
        if named in (command, None):
            # Arguments of a tool may look like flags: `goat-mcp call Grep pattern=TODO -i=true`.
            context = {"ignore_unknown_options": True} if command == "call" else None
            app.command(command, context_settings=context)(
                getattr(importlib.import_module(f"goat_mcp.cli.{place}"), place)
            )
    # A program with a single command would take that command's name for an argument.
    app.callback()(_no_options)
    return app


def _no_options() -> None:
    """Nothing but commands at this level."""
