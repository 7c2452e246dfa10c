"""`goat-mcp completion`: the script with which a shell completes commands, options, hosts, servers and tools."""

from __future__ import annotations

import json

import click

from goat_mcp.cli import flags
from goat_mcp.cli.command_help import COMPLETES

SHELLS = ("bash", "zsh", "fish")


@click.command
@click.argument("shell", type=click.Choice(SHELLS))
@flags.as_json
@click.pass_context
def completion(context: click.Context, shell: str, as_json: bool) -> None:
    """Print the script that makes Tab complete commands, options, hosts, servers, tools, modes, presets and profiles.

    \b
    bash, in ~/.bashrc:                  eval "$(goat-mcp completion bash)"
    zsh, in ~/.zshrc after compinit:     eval "$(goat-mcp completion zsh)"
    fish, in ~/.config/fish/config.fish: goat-mcp completion fish | source
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, shell
    made = kind(context.find_root().command, {}, "goat-mcp", COMPLETES)
    script = made.source_template % made.source_vars()  # `source()` of bash starts one to ask for its version
    click.echo(json.dumps({"shell": shell, "script": script}) if as_json else script)
