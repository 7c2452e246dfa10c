"""What commands share: flags of the catalog, their settings, and arguments of tools."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from goat_mcp.cli.terminal import say

if TYPE_CHECKING:
    from goat_mcp.settings.settings import Settings

Command = TypeVar("Command", bound=Callable[..., Any])

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")

workspace = click.option(
    "--workspace",
    "-w",
    multiple=True,
    metavar="DIR",
    help="A directory that file tools may touch. May be repeated.",
)

_SELECTION = (
    workspace,
    click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Settings in YAML; flags and GOAT_MCP_* win over them.",
    ),
    click.option(
        "--upstreams",
        multiple=True,
        metavar="FILE",
        help="Your other MCP servers: a JSON file with `mcpServers`, as in Claude Desktop.",
    ),
    click.option(
        "--manifests",
        multiple=True,
        metavar="DIR",
        help="Tools, upstreams, toolsets and profiles declared in YAML.",
    ),
    click.option(
        "--claude-settings",
        multiple=True,
        metavar="FILE",
        help="A settings.json of Claude Code: its permission rules and hooks hold here too.",
    ),
    click.option("--mode", metavar="MODE", help="default, acceptEdits, plan, dontAsk or bypassPermissions."),
    click.option("--toolset", multiple=True, metavar="NAME", help="Add an optional toolset."),
    click.option(
        "--preset",
        multiple=True,
        metavar="NAME",
        help="Only the tools of this set: claude_code, core, read_only or one of catalog.presets.",
    ),
    click.option("--profile", metavar="NAME", help="Only the tools of this profile of your settings."),
    click.option("--tool", "only", multiple=True, metavar="NAME", help="Only this tool (with --preset: this one too)."),
    click.option("--disallowed-tool", multiple=True, metavar="NAME", help="Leave this tool out."),
    click.option("--allowed-tool", multiple=True, metavar="NAME", help="Run this tool without asking."),
    click.option(
        "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Any setting, e.g. --set output.max_chars=20000."
    ),
)

SELECTION_NAMES = frozenset(
    {
        "workspace",
        "config",
        "upstreams",
        "manifests",
        "claude_settings",
        "mode",
        "toolset",
        "preset",
        "profile",
        "only",
        "disallowed_tool",
        "allowed_tool",
        "overrides",
    }
)
"""What `selection` gives a command."""


def selection(command: Command) -> Command:
    """Give a command the shared flags. It hands what it gets of them to `settings_from`."""
    for option in reversed(_SELECTION):
        command = option(command)
    return command


def settings_from(
    *,
    workspace: Sequence[str],
    config: Path | None,
    upstreams: Sequence[str],
    manifests: Sequence[str] = (),
    claude_settings: Sequence[str],
    mode: str | None,
    toolset: Sequence[str],
    preset: Sequence[str],
    profile: str | None = None,
    only: Sequence[str],
    disallowed_tool: Sequence[str],
    allowed_tool: Sequence[str],
    overrides: Sequence[str],
    defaults: dict[str, Any] | None = None,
    serves: bool = False,
) -> Settings:
    """The settings these flags stand for; `serves`: for a server, which logs. Raises `BrokenSettings`."""
    from goat_mcp.settings.loading import load_settings

    flags: dict[str, Any] = {
        # What would be logged, a command says itself.
        **({"log_level": "error"} if sys.stderr.isatty() and not serves else {}),
        **(defaults or {}),
        "workspace": workspace,
        "upstreams": upstreams,
        "manifests": manifests,
        "claude_settings": claude_settings,
        "mode": mode,
        "profile": profile,
    }
    if preset or only:
        # Whoever adds a toolset beside a selection wants both.
        allow = [*(f"preset:{name}" for name in preset), *only, *(f"toolset:{name}" for name in toolset)]
        flags["catalog"] = {"allow": allow}
    added = {"catalog.toolsets": toolset, "catalog.deny": disallowed_tool, "permissions.allow": allowed_tool}
    return load_settings(
        flags, config_file=config, overrides=overrides, added={key: names for key, names in added.items() if names}
    )


def say_notices(settings: Settings) -> None:
    """Show the person at the terminal what of their files is not in force. A server logs it."""
    for notice in settings.notices:
        say(f"goat-mcp: {notice}", err=True)


def json_object(text: str) -> dict[str, Any]:
    """What `--input-json` holds."""
    try:
        parsed: Any = json.loads(text)
    except ValueError as problem:
        raise click.UsageError(f"--input-json is not JSON: {problem}") from None
    if not isinstance(parsed, dict):
        raise click.UsageError('--input-json wants an object, e.g. {"pattern": "TODO"}')
    return cast("dict[str, Any]", parsed)


def check_is_name(tool: str) -> None:
    """Arguments of a tool may look like options, so click takes an unknown option for the tool."""
    if tool.startswith("-"):
        raise click.NoSuchOption(tool, ctx=click.get_current_context())


def key_value_pairs(words: Sequence[str]) -> dict[str, str]:
    """Words of the form KEY=VALUE."""
    for pair in words:
        if "=" not in pair:
            raise click.UsageError(f"{pair!r} is neither a flag nor KEY=VALUE")
    return dict(pair.split("=", 1) for pair in words)


def typed_arguments(texts: Mapping[str, str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Texts as arguments; where the schema wants no text, a value is read as JSON."""
    fields = schema.get("properties", {})
    return {
        key: text if fields.get(key, {}).get("type") in ("string", None) else _as_json(text)
        for key, text in texts.items()
    }


def _as_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
