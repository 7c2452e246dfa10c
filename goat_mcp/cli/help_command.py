"""`goat-mcp help`: the same as `--help`, for whoever types a word."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from goat_mcp.cli import flags
from goat_mcp.core.suggestions import did_you_mean


@click.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@flags.as_json
@click.pass_context
def help_command(context: click.Context, words: Sequence[str], as_json: bool) -> None:
    """Show the help of COMMAND: goat-mcp help rules forget. Without one, all commands are listed."""
    at = context.find_root()
    for word in words:
        at = _member(at, word)
    if as_json:
        click.echo(json.dumps({"command": at.command_path, "help": at.get_help()}))
    else:
        click.echo(at.get_help())


def _member(at: click.Context, word: str) -> click.Context:
    """Raises `click.UsageError` for a word that is no command there."""
    group = at.command
    if not isinstance(group, click.Group):
        raise click.UsageError(f"{at.command_path} has no commands of its own, so no {word!r:.100}")
    found = group.get_command(at, word)
    if found is None:
        names = group.list_commands(at)
        near = did_you_mean(word, names) or f"there are {', '.join(names)}"
        raise click.UsageError(f"{at.command_path} has no command {word!r:.100}; {near}")
    return found.context_class(found, info_name=word, parent=at)
