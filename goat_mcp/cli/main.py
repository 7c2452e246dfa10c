"""The `goat-mcp` program: its commands, each imported when it runs, and what becomes of what goes wrong."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import Any

import click

USAGE_ERROR = 1
INTERRUPTED = 130
_COMMANDS = {
    "serve": "Serve the tools to an MCP host, over stdio or HTTP.",
    "list": "List all tools with their side effect.",
    "inspect": "Show tools as clients see them, and every rewrite.",
    "call": "Call one tool and print its result.",
    "status": "Show what runs, and the state of each upstream.",
    "auth": "Log in to upstreams, and see the logins.",
    "doctor": "Find what is wrong with the settings and upstreams.",
    "logs": "Show the last log lines of servers and upstreams.",
    "why": "Explain whether a call is allowed, and by which rule.",
    "rules": "List the permission rules in force.",
    "add": "Add an MCP server, and check that it works.",
    "remove": "Take MCP servers out.",
    "restart": "Start a server again in every running goat-mcp.",
    "import": "Take over the MCP servers of other hosts.",
    "eject": "Put back a host's file as it was before goat-mcp.",
    "install": "Add goat-mcp to the servers of a host.",
    "uninstall": "Take goat-mcp out of the servers of a host.",
    "manifest": "Declare tools and upstreams of your own in YAML.",
    "export": "Print the catalog in the format of another system.",
    "docs": "Show the documentation of tools.",
    "plan": "Show the plans that wait for you, and decide.",
    "audit": "Show, verify and export the record of calls.",
    "trust": "Show what a project's settings change, and trust them.",
    "lock": "Show what is pinned of upstreams, and approve changes.",
    "undo": "Undo changes that tools made to files.",
    "review": "Show the changes that wait for you, and decide.",
    "demo": "Show the main job in a throw-away workspace.",
    "version": "Print what is installed.",
}
"""Each command, and what the help of the program says of it: so that help imports none of them."""
_FUNCTIONS = {"list": "list_tools", "import": "import_servers"}
"""The module, and the function in it, of a command whose name Python has for something else."""


class _Commands(click.Group):
    """Loads a command with its name, so that `serve` loads no other."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        name = _FUNCTIONS.get(cmd_name, cmd_name)
        return getattr(importlib.import_module(f"goat_mcp.cli.{name}"), name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.command(cls=_Commands, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
def app() -> None:
    """Claude-Code-grade tools and all your other MCP servers behind one MCP server.

    Plug `goat-mcp serve` into an MCP host, or try it here: `goat-mcp demo`.
    """


def main() -> None:
    """Run the command line and exit: 0 ok, 1 usage or configuration, 3 auth, 4 unreachable, 5 tool error."""
    # Importing the SDK builds thousands of models; collecting garbage meanwhile takes a fifth of that time.
    gc.disable()
    if not os.environ.get("HOME", "home"):
        # As if it were not set: an empty one would put what is the user's own at the top of the file system.
        del os.environ["HOME"]
    sys.exit(_run(sys.argv[1:]))


def _run(arguments: list[str]) -> int:
    if not arguments and not sys.stdin.isatty():
        arguments = ["serve"]
    from goat_mcp.core.errors import ToolError

    try:
        code: Any = app.main(args=arguments, prog_name="goat-mcp", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.ClickException as wrong:
        if not arguments:
            print(wrong.format_message(), file=sys.stderr)  # noqa: T201  # the help: somebody asked for nothing yet
            return USAGE_ERROR
        return _fail(wrong.format_message(), "See goat-mcp --help.", arguments)
    except ToolError as error:
        return _fail(error.message, error.suggestion, arguments, code=str(error.code))
    except OSError as problem:
        if isinstance(problem, BrokenPipeError):
            return INTERRUPTED
        from goat_mcp.gateway.build.working_directories import refused_by_state
        from goat_mcp.state.directory import StateDirectory

        # A state directory that cannot be used is a setting to fix, whichever command meets it first.
        refused = refused_by_state(problem, StateDirectory.default())
        if refused is None:
            raise
        return _fail(refused.message, refused.suggestion, arguments, code=str(refused.code))
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED


def _fail(message: str, suggestion: str, arguments: list[str], *, code: str = "E_USAGE") -> int:
    """Say what is wrong on stderr: in words, or with `--json` as one JSON line."""
    from goat_mcp.core.redaction import Redactor

    redactor = Redactor()
    message, suggestion = redactor.text(message), redactor.text(suggestion)
    text = "\n".join(part for part in (f"goat-mcp: {message}", suggestion) if part)
    if "--json" in arguments:
        import json

        text = json.dumps({"error": {"code": code, "message": message, "suggestion": suggestion}})
    print(text, file=sys.stderr)  # noqa: T201  # the manners of a command line
    return USAGE_ERROR
