"""`goat-mcp manifest`: declare tools of your own. Each subcommand's work is in a module of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from goat_mcp.cli import flags


@click.group()
def manifest() -> None:
    """Declare tools, upstreams, toolsets and profiles of your own in YAML."""


@manifest.command()
@click.argument("name")
@click.option(
    "--language",
    type=click.Choice(["python", "shell", "http"]),
    default="python",
    show_default=True,
    help="What the tool is written in; http: it runs elsewhere, at --url.",
)
@click.option("--url", default="", metavar="URL", help="With --language http: where calls are sent.")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A directory of manifests other than your own one, which every start reads.",
)
@flags.as_json
def new(name: str, language: str, url: str, folder: Path | None, as_json: bool) -> None:
    """Make a tool NAME__today that works at once, to be changed into what you want."""
    from goat_mcp.cli.manifest_new import make

    make(name, language, url, folder, as_json)


@manifest.command()
@click.argument("places", nargs=-1, type=click.Path(path_type=Path), metavar="[DIR|FILE]...")
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Settings that name directories.")
@flags.as_json
def check(places: Sequence[Path], config: Path | None, as_json: bool) -> int:
    """Say what is wrong with manifests, line by line, and what to write instead.

    Without a directory or file: those that a start would read. Python files are loaded, in a process of their own, to
    see that they have what the manifest names; nothing else is run. Exit status 1 where something is wrong.
    """
    from goat_mcp.cli.manifest_check import check_places

    return check_places(places, config, as_json)


@manifest.command("list")
@flags.selection
@flags.as_json
def list_(as_json: bool, **selection: Any) -> None:
    """List what manifests declare: each tool's file, entry, side effect and state; upstreams, toolsets and profiles."""
    from goat_mcp.cli.manifest_list import print_list

    print_list(flags.settings_from(**selection), as_json)


@manifest.command()
def schema() -> None:
    """Print the JSON Schema of manifests, for editors."""
    import json

    from goat_mcp.gateway.manifest_schema import manifest_schema

    click.echo(json.dumps(manifest_schema(), indent=2))
