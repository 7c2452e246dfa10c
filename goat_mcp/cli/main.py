"""The `goat-mcp` program: its commands, each imported when it runs, and what becomes of what goes wrong."""

from __future__ import annotations

import errno
import gc
import importlib
import os
import sys
from contextlib import redirect_stderr, suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

import click

from goat_mcp.cli.command_help import COMPLETES, NO_COLOR, dressed, write_commands
from goat_mcp.cli.exit_codes import AUTH, INTERRUPTED, OK, UNREACHABLE, USAGE
from goat_mcp.core import platform
from goat_mcp.core.version import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_COMMANDS = {
    "demo": "Watch the main job.",
    "install": "Add goat-mcp to a host.",
    "uninstall": "Take it out of a host.",
    "import": "Take over their servers.",
    "eject": "Restore a host's file.",
    "add": "Add an MCP server.",
    "remove": "Take a server out.",
    "enable": "Use a server or a tool.",
    "disable": "Switch one off.",
    "restart": "Start a server again.",
    "config": "Read or change settings.",
    "serve": "Serve MCP to a host.",
    "list": "List all tools.",
    "inspect": "See tools as clients do.",
    "docs": "Read about a tool.",
    "ui": "Open the page.",
    "status": "See what runs, and how.",
    "logs": "See what servers logged.",
    "doctor": "Find what is wrong.",
    "audit": "See the record of calls.",
    "call": "Call one tool.",
    "undo": "Undo changes of files.",
    "approvals": "See what waits for you.",
    "approve": "Say yes to what waits.",
    "deny": "Say no to what waits.",
    "why": "Explain a permission.",
    "rules": "See the permission rules.",
    "plan": "Decide about plans.",
    "review": "Decide about changes.",
    "trust": "Trust project settings.",
    "lock": "Approve changed servers.",
    "auth": "Log in to servers.",
    "secret": "Store secrets by name.",
    "manifest": "Declare your own tools.",
    "export": "Print tools for OpenAI.",
    "completion": "Complete with Tab.",
    "help": "Explain a command.",
    "version": "See what is installed.",
}
"""Each command, and what the help of the program says of it (25 characters at most): so that help imports none.

Its section, examples and exit codes are in `command_table`.
"""
_FUNCTIONS = {"list": "list_tools", "import": "import_servers", "help": "help_command"}
"""The module, and the function in it, of a command whose name Python has for something else."""


class _Commands(click.Group):
    """Loads a command with its name, so that `serve` loads no other."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        name = _FUNCTIONS.get(cmd_name, cmd_name)
        return dressed(getattr(importlib.import_module(f"goat_mcp.cli.{name}"), name), cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if word not in _COMMANDS and not word.startswith("-") and not ctx.resilient_parsing:
            from goat_mcp.core.suggestions import did_you_mean

            near = did_you_mean(word, _COMMANDS)
            raise click.UsageError(f"no command {word!r:.100}" + (f"; {near}" if near else ""), ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return [CompletionItem(name, help=text) for name, text in _COMMANDS.items() if name.startswith(incomplete)]

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(f"Usage: {ctx.command_path} COMMAND ...   More on one: {ctx.command_path} help COMMAND\n")

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(f"{self.help}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_commands(formatter, _COMMANDS)
        formatter.write("Options: -h, --help  -V, --version  --no-color\n")


@click.command(
    cls=_Commands,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    params=[NO_COLOR],
    help="Claude-Code-grade tools and all your other MCP servers behind one MCP server.",
)
@click.version_option(__version__, "-V", "--version", prog_name="goat-mcp", message="%(prog)s %(version)s")
def app() -> None:
    """The program."""


def main() -> None:
    """Run the command line and exit with one of `exit_codes`."""
    # Importing the SDK builds thousands of models; collecting garbage meanwhile takes a fifth of that time.
    gc.disable()
    if not os.environ.get("HOME", "home"):
        # As if it were not set: an empty one would put what is the user's own at the top of the file system.
        del os.environ["HOME"]
    if platform.SYSTEM == "windows":
        write_utf8()
    if COMPLETES in os.environ:
        _complete()
    try:
        sys.exit(_run(sys.argv[1:]))
    except KeyboardInterrupt:  # while something was imported
        sys.exit(INTERRUPTED)


def write_utf8() -> None:
    """Into pipes and files as well: Windows would take its own code page there, which has few characters."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", newline="\n")


def _complete() -> None:
    """Print what Tab offers and exit. Nothing goes to stderr: it would end up in the line that somebody types."""
    with suppress(Exception), redirect_stderr(None):
        app.main(prog_name="goat-mcp")
    sys.exit(0)


def _run(arguments: list[str]) -> int:
    if not arguments and not sys.stdin.isatty():
        arguments = ["serve"]
    from goat_mcp.core.errors import ToolError

    try:
        if not arguments:
            from goat_mcp.cli.overview import show_overview

            show_overview()
            return OK
        code: Any = app.main(args=arguments, prog_name="goat-mcp", standalone_mode=False, color=_wants_styles())
        return code if isinstance(code, int) else 0
    except click.ClickException as wrong:
        return _fail(*_usage_words(wrong, arguments), arguments)
    except ToolError as error:
        return _fail(error.message, error.suggestion, arguments, code=str(error.code))
    except OSError as problem:
        if isinstance(problem, BrokenPipeError):
            return INTERRUPTED
        if problem.errno == errno.ENOSPC:
            where = f" for {problem.filename}" if problem.filename else " for the output"
            return _fail(f"no space left on the disk{where}", "Free some, or write to another disk.", arguments)
        from goat_mcp.gateway.build.working_directories import refused_by_state
        from goat_mcp.state.directory import StateDirectory

        # A state directory that cannot be used is a setting to fix, whichever command meets it first.
        refused = refused_by_state(problem, StateDirectory.default())
        if refused is None:
            raise
        return _fail(refused.message, refused.suggestion, arguments, code=str(refused.code))
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED


def _wants_styles() -> bool | None:
    """What click does with styles; None: as the stream is a terminal or not."""
    if os.environ.get("TERM") in ("dumb", "unknown"):
        return False
    return True if os.environ.get("FORCE_COLOR") else None


def _usage_words(wrong: click.ClickException, arguments: list[str]) -> tuple[str, str]:
    """What is wrong, and what to do."""
    context = wrong.ctx if isinstance(wrong, click.UsageError) else None
    named = f" {arguments[0]}" if arguments[0] in _COMMANDS else ""  # click's parser does not say which command it read
    path = context.command_path if context is not None else f"goat-mcp{named}"
    if isinstance(wrong, click.NoSuchOption) and context is not None:
        from goat_mcp.core.suggestions import did_you_mean

        options = [word for one in context.command.get_params(context) for word in one.opts]
        near = did_you_mean(wrong.option_name, [word for word in options if word.startswith("--")])
        return f"{path} has no option {wrong.option_name}" + (f"; {near}" if near else ""), f"See {path} --help."
    return wrong.format_message(), f"See {path} --help."


def _fail(message: str, suggestion: str, arguments: list[str], *, code: str = "E_USAGE") -> int:
    """Say what is wrong on stderr: in words, or with `--json` as one JSON line."""
    from goat_mcp.core.redaction import Redactor

    redactor = Redactor()
    message, suggestion = redactor.text(message), redactor.text(suggestion)
    if "--json" in arguments:
        import json

        click.echo(json.dumps({"error": {"code": code, "message": message, "suggestion": suggestion}}), err=True)
    else:
        from goat_mcp.cli.terminal import say

        say("\n".join(part for part in (f"goat-mcp: {message}", suggestion) if part), err=True)
    return _EXIT_CODES.get(code, USAGE)


_EXIT_CODES = {"E_AUTH": AUTH, "E_UPSTREAM_DOWN": UNREACHABLE}
"""All other errors of a command are wrong usage, or settings and files that cannot be used."""
