"""`goat-mcp manifest`: declare tools of your own. `new` and `check` have a module each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.cli import flags
from goat_mcp.cli.flags import say_notices
from goat_mcp.cli.manifest_check import check_places
from goat_mcp.cli.manifest_new import make
from goat_mcp.cli.terminal import console, print_table
from goat_mcp.core.errors import ToolError
from goat_mcp.settings.settings import Settings

if TYPE_CHECKING:
    from goat_mcp.gateway.gateway import Gateway
    from goat_mcp.manifests.folder import ManifestSet
    from goat_mcp.manifests.tool_document import ToolDocument

LOADED, HIDDEN, BROKEN = "loaded", "hidden", "broken"


def print_list(settings: Settings, as_json: bool) -> None:
    """Nothing that is declared is started. Problems follow on stderr, or are in the document."""
    from goat_mcp.gateway.gateway import Gateway

    say_notices(settings)
    gateway = Gateway(settings, approval=Approval.DENY)
    document = _document(gateway)
    if as_json:
        click.echo(json.dumps(document))
        return
    _print(document)
    for problem in gateway.declared.manifest_problems():
        click.echo(str(problem), err=True)


def _document(gateway: Gateway) -> dict[str, Any]:
    from goat_mcp.manifests.folder import ManifestSet

    declared = gateway.declared.documents or ManifestSet()
    tools = (*declared.tools, *_off(declared))
    problems = gateway.declared.manifest_problems()
    broken = dict.fromkeys(problem.file for problem in problems if problem.is_fatal)
    return {
        "tools": [
            *(row for tool in tools for row in _rows(gateway, tool)),
            *(_broken(file) for file in broken),
        ],
        "upstreams": [_name_and_file(one.name, one.document.file) for one in declared.upstreams],
        "toolsets": [{**_name_and_file(one.name, one.document.file), "tools": one.tools} for one in declared.toolsets],
        "profiles": [_name_and_file(one.name, one.document.file) for one in declared.profiles],
        "agents": [{**_name_and_file(one.name, one.document.file), "tools": one.tools} for one in declared.agents],
        "problems": [one.as_json() for one in problems],
    }


def _off(declared: ManifestSet) -> Iterable[ToolDocument]:
    """Of the set that comes with us what was not read, since its toolsets are off."""
    from goat_mcp.gateway.build.manifests import shipped

    names = {tool.name for tool in declared.tools}
    return (tool for tool in shipped().tools if tool.name not in names)


def _rows(gateway: Gateway, tool: ToolDocument) -> Iterable[dict[str, Any]]:
    for export in tool.exports:
        state, reason = _catalog_state(gateway, export.spec.name)
        yield {
            **_name_and_file(export.spec.name, tool.document.file),
            "entry": _kind(tool),
            "side_effect": export.spec.side_effect.value,
            "toolset": export.spec.toolset,
            "state": state,
            "reason": reason,
        }


def _catalog_state(gateway: Gateway, name: str) -> tuple[str, str]:
    try:
        gateway.catalog.resolve(name)
    except ToolError as hidden:
        return HIDDEN, " ".join((hidden.message, hidden.suggestion)).strip()
    return LOADED, ""


def _kind(tool: ToolDocument) -> str:
    from goat_mcp.manifests.entry import CommandEntry, HandlersEntry

    if isinstance(tool.entry, HandlersEntry):
        return tool.entry.language
    return "command" if isinstance(tool.entry, CommandEntry) else "http"


def _name_and_file(name: str, file: Path) -> dict[str, Any]:
    return {"name": name, "file": str(file)}


def _broken(file: Path) -> dict[str, Any]:
    unknown = {"entry": "", "side_effect": "", "toolset": ""}
    return {**_name_and_file("", file), **unknown, "state": BROKEN, "reason": "something in this file cannot be used"}


def _print(document: dict[str, Any]) -> None:
    """Tables on a terminal, tab-separated lines elsewhere."""
    headers = ["tool", "state", "entry", "side effect", "file"]
    rows = [
        [row["name"] or "?", row["state"], row["entry"] or "?", row["side_effect"] or "?", row["file"]]
        for row in document["tools"]
    ]
    _table(headers, rows)
    for kind in ("upstreams", "toolsets", "profiles", "agents"):
        _table([kind[:-1], "file"], [[row["name"], row["file"]] for row in document[kind]])
    if not any(document[kind] for kind in ("tools", "upstreams", "toolsets", "profiles", "agents")):
        click.echo("Nothing is declared. Begin with: goat-mcp manifest new weather")


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    is_named = headers[0] == "tool" or console().is_terminal
    print_table(headers, rows if is_named else [[headers[0], *row] for row in rows])


@click.group()
def manifest() -> None:
    """Declare tools, upstreams, toolsets, profiles and agents of your own in YAML."""


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
    help="Another directory than your own one, which every start reads.",
)
@flags.as_json
def new(name: str, language: str, url: str, folder: Path | None, as_json: bool) -> None:
    """Make a tool NAME__today that works at once, to be changed into what you want."""
    make(name, language, url, folder, as_json)


@manifest.command()
@click.argument("places", nargs=-1, type=click.Path(path_type=Path), metavar="[DIR|FILE]...")
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Settings that name directories.")
@flags.as_json
def check(places: Sequence[Path], config: Path | None, as_json: bool) -> int:
    """Say what is wrong with manifests, line by line, and what to write instead.

    Without a directory or file: those that a start would read. Files of handlers (Python, JavaScript, TypeScript) are
    loaded, in a process of their own, to see that they have what the manifest names; nothing else is run.
    Each line is FILE:LINE: LEVEL: WHAT; REMEDY. Exit status 1 if there is an error: something declared there is left
    out.
    """
    return check_places(places, config, as_json)


@manifest.command("list")
@flags.selection
@flags.as_json
def list_(as_json: bool, **selection: Any) -> None:
    """List what manifests declare.

    Of each tool its file, entry, side effect and state; then upstreams, toolsets, profiles and agents.
    """
    print_list(flags.settings_from(**selection), as_json)


@manifest.command()
def schema() -> None:
    """Print the JSON Schema of manifests, for editors."""
    from goat_mcp.gateway.manifest_schema import manifest_schema

    click.echo(json.dumps(manifest_schema(), indent=2))
