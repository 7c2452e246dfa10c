"""The words that Tab offers for hosts, servers, tools, modes, presets, profiles, toolsets and files.

They come from files: nothing is started, and what cannot be read offers nothing. Loading the settings takes longer
than a person waits for Tab, so this reads what is needed of them itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

import click
from click.shell_completion import CompletionItem

Words = Callable[[click.Context], Iterable[str]]

_SAFE = re.compile(r"[\w@%+:./-]+")
"""A shell puts a word into the line as it is: it would run the `$(...)` in the name of a server."""


def offer_words(command: click.Command, path: str) -> None:
    """Make the parameters of `command`, which one types as `path`, complete what they stand for."""
    for one in command.params:
        name = one.name or ""
        if kind := _FILES.get(name):
            one.shell_complete = partial(_place, kind)
        elif words := _OF_COMMANDS.get(f"{path} {name}") or _EVERYWHERE.get(name):
            one.shell_complete = partial(_complete, words)


def _complete(words: Words, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    try:
        found = sorted(set(words(ctx)))
    except Exception:  # whatever is wrong with a file: Tab must not print it
        return []
    low = incomplete.casefold()
    return [CompletionItem(word) for word in found if word.casefold().startswith(low) and _SAFE.fullmatch(word)]


def _place(kind: str, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type=kind)]


def hosts(ctx: click.Context) -> Iterable[str]:
    from goat_mcp.cli.hosts.table import HOSTS

    return HOSTS


def servers(ctx: click.Context) -> Iterable[str]:
    """Those of the user's own file, of the files that the settings name, and of `--upstreams`."""
    from goat_mcp.state.directory import own_upstreams_file

    given = ctx.params.get("upstreams") or _listed(_settings(ctx).get("upstreams")) or [own_upstreams_file()]
    for file in given:
        yield from _servers_in(Path(file).expanduser())


def _servers_in(file: Path) -> Iterable[str]:
    try:
        document = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return
    yield from document.get("mcpServers", {})


def tools(ctx: click.Context) -> Iterable[str]:
    """The built-in ones, and what the servers listed last."""
    import goat_mcp
    from goat_mcp.core.names import clean_server_name, exposed_name
    from goat_mcp.state.directory import StateDirectory

    contracts = Path(goat_mcp.__file__).parent / "catalog" / "builtin_contracts.json"
    yield from (contract["name"] for contract in json.loads(contracts.read_text("utf-8")))
    known = {clean_server_name(name) for name in servers(ctx)}
    for file in (StateDirectory.default().path / "catalog").glob("*.json"):
        server = file.stem.rpartition("-")[0]
        if server in known and not file.stem.endswith(".items"):
            stored = json.loads(file.read_bytes().partition(b"\n")[2])
            yield from (exposed_name(f"mcp__{server}__", tool["name"], server=server) for tool in stored["tools"])


def servers_and_tools(ctx: click.Context) -> Iterable[str]:
    return (*servers(ctx), *tools(ctx))


def switchable(ctx: click.Context) -> Iterable[str]:
    """What `enable` and `disable` take."""
    sets = (*(f"toolset:{name}" for name in toolsets(ctx)), *(f"preset:{name}" for name in presets(ctx)))
    return (*servers_and_tools(ctx), *sets)


def waiting_approvals(ctx: click.Context) -> Iterable[str]:
    from goat_mcp.calls.approvals.store import ApprovalStore
    from goat_mcp.state.directory import StateDirectory

    return [one.short_id for one in ApprovalStore(StateDirectory.default()).waiting()]


def settings_keys(ctx: click.Context) -> Iterable[str]:
    from goat_mcp.settings.settings import setting_keys

    return setting_keys()


def modes(ctx: click.Context) -> Iterable[str]:
    from goat_mcp.calls.permissions.mode import Mode

    return [mode.value for mode in Mode]


def presets(ctx: click.Context) -> Iterable[str]:
    return ("claude_code", "core", "read_only", *_table(_table(_settings(ctx).get("catalog")).get("presets")))


def profiles(ctx: click.Context) -> Iterable[str]:
    return _table(_settings(ctx).get("profiles"))


def toolsets(ctx: click.Context) -> Iterable[str]:
    from goat_mcp.core.spec import DEFAULT_TOOLSETS

    return (*DEFAULT_TOOLSETS, "base", "code", "goa", "teams")


def commands(ctx: click.Context) -> Iterable[str]:
    """Those that can follow the words typed after `help`."""
    at = ctx.find_root()
    for word in ctx.params.get("words") or ():
        group = at.command
        found = group.get_command(at, word) if isinstance(group, click.Group) else None
        if found is None:
            return ()
        at = found.context_class(found, info_name=word, parent=at)
    return at.command.list_commands(at) if isinstance(at.command, click.Group) else ()


def _settings(ctx: click.Context) -> Mapping[str, Any]:
    """The user's settings file, or that of `--config`, as it is written."""
    from goat_mcp.state.directory import config_folder
    from goat_mcp.state.trust import FILE_NAME

    file = Path(ctx.params.get("config") or config_folder() / FILE_NAME)
    if not file.is_file():
        return {}
    import yaml  # most have no such file

    return _table(yaml.safe_load(file.read_text("utf-8")))


def _table(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else cast("list[str]", value) if isinstance(value, list) else []


_FILES = {
    "workspace": "dir",
    "manifests": "dir",
    "config": "file",
    "cwd": "dir",
    "from_file": "file",
    "into": "file",
    "upstreams": "file",
    "claude_settings": "file",
}
_EVERYWHERE: Mapping[str, Words] = {
    "host": hosts,
    "hosts": hosts,
    "server": servers,
    "servers": servers,
    "tool": tools,
    "only": tools,
    "allowed_tool": tools,
    "disallowed_tool": tools,
    "mode": modes,
    "preset": presets,
    "profile": profiles,
    "toolset": toolsets,
}
"""By the name of a parameter, in all commands."""
_OF_COMMANDS: Mapping[str, Words] = {
    "approvals ids": waiting_approvals,
    "approve ids": waiting_approvals,
    "config get key": settings_keys,
    "config preset names": presets,
    "config set key": settings_keys,
    "config unset key": settings_keys,
    "deny ids": waiting_approvals,
    "disable names": switchable,
    "enable names": switchable,
    "help words": commands,
    "inspect name": servers_and_tools,
    "rules allow texts": tools,
    "rules ask texts": tools,
    "rules deny texts": tools,
    "lock show name": servers,
    "lock approve names": servers,
    "remove names": servers,
    "restart name": servers,
}
