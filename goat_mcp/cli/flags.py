"""Flags that `serve`, `list` and `call` share: what the catalog holds and what it may do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:  # the settings tree is only needed once a command runs
    from goat_mcp.settings import Settings

Workspace = Annotated[
    list[str] | None,
    typer.Option("--workspace", "-w", metavar="DIR", help="A directory that file tools may touch. May be repeated."),
]
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings in YAML; flags and GOAT_MCP_* beat them.")
]
UpstreamFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--upstreams",
        metavar="FILE",
        help="Other MCP servers to stand in front of: a JSON file with `mcpServers`, as in Claude Desktop.",
    ),
]
Mode = Annotated[
    str | None,
    typer.Option("--mode", metavar="MODE", help="default, acceptEdits, plan, dontAsk or bypassPermissions."),
]
Toolset = Annotated[
    list[str] | None, typer.Option("--toolset", metavar="NAME", help="Add an optional toolset. May be repeated.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any setting, e.g. --set output.max_chars=20000."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


def settings_from(
    *,
    workspace: list[str] | None,
    config: Path | None,
    upstreams: list[Path] | None,
    mode: str | None,
    toolset: list[str] | None,
    overrides: list[str] | None,
    defaults: dict[str, Any] | None = None,
) -> Settings:
    """The settings these flags stand for. Raises `BrokenSettings`."""
    from goat_mcp.catalog import DEFAULT_TOOLSETS
    from goat_mcp.settings import load_settings

    flags: dict[str, Any] = dict(defaults or {})
    flags["workspace"] = list(workspace or ())
    flags["upstreams"] = [str(file) for file in upstreams or ()]
    flags["mode"] = mode
    if toolset:
        flags["catalog"] = {"toolsets": [*DEFAULT_TOOLSETS, *toolset]}
    return load_settings(flags, config_file=config, overrides=overrides or ())
