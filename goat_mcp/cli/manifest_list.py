"""`goat-mcp manifest list`: what manifests declare, where, and whether it is in the catalog."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:  # a command's machinery is loaded when it runs
    from goat_mcp.gateway.gateway import Gateway
    from goat_mcp.manifests.folder import ManifestSet
    from goat_mcp.manifests.tool_document import ToolDocument
    from goat_mcp.settings.settings import Settings

LOADED, HIDDEN, BROKEN = "loaded", "hidden", "broken"


def print_list(settings: Settings, as_json: bool) -> None:
    """Nothing that is declared is started. Problems follow on stderr, or are in the document."""
    from goat_mcp.calls.permissions.mode import Approval
    from goat_mcp.cli.flags import say_notices
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
        "upstreams": [_named(one.name, one.document.file) for one in declared.upstreams],
        "toolsets": [{**_named(one.name, one.document.file), "tools": one.tools} for one in declared.toolsets],
        "profiles": [_named(one.name, one.document.file) for one in declared.profiles],
        "problems": [
            {"file": str(one.file), "line": one.line, "what": one.what, "remedy": one.remedy, "is_fatal": one.is_fatal}
            for one in problems
        ],
    }


def _off(declared: ManifestSet) -> Iterable[ToolDocument]:
    """Of the set that comes with us what was not read, since its toolsets are off."""
    from goat_mcp.gateway.build.manifests import shipped

    names = {tool.name for tool in declared.tools}
    return (tool for tool in shipped().tools if tool.name not in names)


def _rows(gateway: Gateway, tool: ToolDocument) -> Iterable[dict[str, Any]]:
    for export in tool.exports:
        state, reason = _state(gateway, export.spec.name)
        yield {
            **_named(export.spec.name, tool.document.file),
            "entry": _kind(tool),
            "side_effect": export.spec.side_effect.value,
            "toolset": export.spec.toolset,
            "state": state,
            "reason": reason,
        }


def _state(gateway: Gateway, name: str) -> tuple[str, str]:
    from goat_mcp.core.errors import ToolError

    try:
        gateway.catalog.resolve(name)
    except ToolError as hidden:
        return HIDDEN, " ".join((hidden.message, hidden.suggestion)).strip()
    return LOADED, ""


def _kind(tool: ToolDocument) -> str:
    from goat_mcp.manifests.entry import CommandEntry, PythonEntry

    if isinstance(tool.entry, PythonEntry):
        return "python"
    return "command" if isinstance(tool.entry, CommandEntry) else "http"


def _named(name: str, file: Path) -> dict[str, Any]:
    return {"name": name, "file": str(file)}


def _broken(file: Path) -> dict[str, Any]:
    unknown = {"entry": "", "side_effect": "", "toolset": ""}
    return {**_named("", file), **unknown, "state": BROKEN, "reason": "something in this file cannot be used"}


def _print(document: dict[str, Any]) -> None:
    """Tables on a terminal, tab-separated lines elsewhere."""
    headers = ["tool", "state", "entry", "side effect", "file"]
    rows = [
        [row["name"] or "?", row["state"], row["entry"] or "?", row["side_effect"] or "?", row["file"]]
        for row in document["tools"]
    ]
    _table(headers, rows)
    for kind in ("upstreams", "toolsets", "profiles"):
        _table([kind[:-1], "file"], [[row["name"], row["file"]] for row in document[kind]])
    if not any(document[kind] for kind in ("tools", "upstreams", "toolsets", "profiles")):
        click.echo("Nothing is declared. Begin with: goat-mcp manifest new weather")


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from goat_mcp.cli.terminal import catalog_table, console, escaped

    if not rows:
        return
    out = console()
    if out.is_terminal:
        out.print(catalog_table(out, headers, rows))
    else:
        lines = (row if headers[0] == "tool" else [headers[0], *row] for row in rows)
        click.echo("\n".join("\t".join(escaped(cell) for cell in row) for row in lines))
