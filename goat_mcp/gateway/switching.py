"""Servers, tools, toolsets and presets switched on and off: servers in their files, the others in the settings.

A server's entry says `disabled`; everything else is a matter of `catalog.deny`, and of `catalog.allow` and
`catalog.toolsets` where these leave it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.catalog.filter import CatalogFilter, labels_of
from goat_mcp.catalog.presets import PRESET_PREFIX, own_presets
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.json_values import items, mapping
from goat_mcp.core.names import SEPARATOR, TOOL_ALIASES, TOOLSET_PREFIX, UPSTREAM_PREFIX
from goat_mcp.core.spec import LISTED_ELSEWHERE, Toolset, ToolSpec
from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.gateway.build.manifests import why_off
from goat_mcp.gateway.build.tools import ToolSelection
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.gateway.settings_edit import SettingsEdit, edited_settings
from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.own_servers import OwnServer, servers_called, servers_in, users_files
from goat_mcp.settings.settings import Settings
from goat_mcp.settings.watched_settings import AT_START_ONLY
from goat_mcp.settings.yaml_text import edited_list, read_yaml
from goat_mcp.state.file_edit import Change, edit_alone, write_change

Kind = Literal["server", "tool"]


@dataclass
class Wanted:
    """What is to be switched. `selections` are words of `catalog.deny`, with the tool if it is one."""

    servers: list[OwnServer] = field(default_factory=list[OwnServer])
    selections: list[tuple[str, ToolSpec | None]] = field(default_factory=list[tuple[str, ToolSpec | None]])


@dataclass(frozen=True)
class Switched:
    """What was switched, or would be. `changes` are of files of servers, `edit` is that of the settings; `notes` say
    what the change does not decide."""

    wanted: Wanted
    changes: Sequence[Change]
    edit: SettingsEdit | None
    notes: Sequence[str]


def switched(
    names: Sequence[str], *, on: bool, kind: Kind | None, project: bool = False, dry_run: bool = False
) -> Switched:
    """Switch all of them on or off, or none. `dry_run` writes nothing. Blocks. Raises `ToolError`."""
    with edit_alone():
        gateway = _gateway()
        wanted = _meant(names, gateway, kind)
        edits = {one.file.path: one.file for one in wanted.servers}
        for one in wanted.servers:
            edits[one.file.path] = edits[one.file.path].switched(one.name, on=on)
        changes = [file.change for file in edits.values()]
        edit = _edit(wanted.selections, gateway, on=on, project=project) if wanted.selections else None
        for change in changes if not dry_run else ():
            write_change(change)
        if edit is not None and not dry_run:
            edit.write()
    return Switched(wanted, changes, edit, [] if dry_run else _still_otherwise(wanted, on=on))


def _gateway() -> Gateway:
    """All tools that are known, also from earlier runs. Nothing is started."""
    return Gateway(load_settings({"log_level": "error"}), approval=Approval.DENY)


def _meant(names: Sequence[str], gateway: Gateway, kind: Kind | None) -> Wanted:
    servers = servers_in(users_files(gateway.settings))
    wanted = Wanted()
    for name in names:
        as_server = servers_called(name, servers) if kind != "tool" else []
        selection = _selection(name, gateway) if kind != "server" else None
        if as_server and selection is not None:
            server = f"the server {as_server[0].name} (in {as_server[0].file.path})"
            raise ToolError(
                ErrorCode.INPUT,
                f"{name!r:.100} is {server} and the tool {selection[0]}",
                "Say which is meant: --server or --tool.",
            )
        if len(as_server) > 1:
            places = ", ".join(f"{one.name} in {one.file.path}" for one in as_server)
            raise ToolError(ErrorCode.INPUT, f"{name!r:.100} may be {places}", "Name it as it stands in its file.")
        if as_server:
            wanted.servers.append(as_server[0])
        elif selection is not None:
            wanted.selections.append(selection)
        else:
            raise _unknown(name, gateway, servers, kind)
    return wanted


def _selection(name: str, gateway: Gateway) -> tuple[str, ToolSpec | None] | None:
    """What `catalog.deny` calls it, and the tool; None if it is nothing that can be selected."""
    if name.startswith((TOOLSET_PREFIX, PRESET_PREFIX)):
        return (name, None) if name in _sets(gateway) else None
    tools = gateway.registry.snapshot.tools
    tool = tools.get(name) or tools.get(TOOL_ALIASES.get(name, ""))
    found = tool.spec if tool is not None else next((t.spec for t in tools.values() if t.spec.rule_name == name), None)
    if found is not None:
        return found.rule_name, found
    if name in gateway.settings.catalog.deny:
        return name, None
    server, separator, own = name.removeprefix(UPSTREAM_PREFIX).partition(SEPARATOR)
    is_listed = any(one.startswith(f"{UPSTREAM_PREFIX}{server}{SEPARATOR}") for one in tools)
    if name.startswith(UPSTREAM_PREFIX) and separator and own and not is_listed:
        # Nobody has listed this server yet.
        is_there = any(server in (config.server, config.name) for config in gateway.upstreams.configs)
        return (name, None) if is_there else None
    return None


def _sets(gateway: Gateway) -> list[str]:
    """Every toolset and preset, as selections name them."""
    toolsets = (*get_args(Toolset), *gateway.declared.toolsets)
    presets = (*own_presets(), *gateway.settings.catalog.presets)
    return [*(f"{TOOLSET_PREFIX}{name}" for name in toolsets), *(f"{PRESET_PREFIX}{name}" for name in presets)]


def _unknown(name: str, gateway: Gateway, servers: Sequence[OwnServer], kind: Kind | None) -> ToolError:
    declared = [config.name for config in gateway.upstreams.configs if name in (config.name, config.server)]
    if declared and kind != "tool":
        return ToolError(
            ErrorCode.INPUT,
            f"the server {declared[0]} stands in none of your files of upstreams, but in a manifest or a project",
            f"Switch it there, or its tools off: goat-mcp config set catalog.deny {UPSTREAM_PREFIX}{declared[0]}",
        )
    known_servers = [one.name for one in servers] if kind != "tool" else []
    known_tools = list(gateway.registry.snapshot.tools) if kind != "server" else []
    if name.startswith((PRESET_PREFIX, TOOLSET_PREFIX)):
        known_tools = _sets(gateway)
    what = kind or "server, tool, toolset or preset"
    hint = did_you_mean(name, [*known_servers, *known_tools])
    if kind != "server" and (off := why_off(name)) is not None:
        return ToolError(ErrorCode.NOT_FOUND, off.message, f"Switch them on: goat-mcp enable {TOOLSET_PREFIX}goa")
    message = f"no {what} is called {name!r:.100}" + (f"; {hint}" if hint else "")
    return ToolError(ErrorCode.NOT_FOUND, message, "See: goat-mcp list")


def _edit(
    selections: Sequence[tuple[str, ToolSpec | None]], gateway: Gateway, *, on: bool, project: bool
) -> SettingsEdit:
    if not on:
        words = [word for word, _ in selections]
        return edited_settings(project, lambda text: edited_list(text, ("catalog", "deny"), add=words))

    all_names = {name for word, spec in selections for name in _names(word, spec)}
    kept = [one for one in gateway.settings.catalog.deny if one not in all_names]

    def edit(text: str) -> str:
        for word, spec in selections:
            text = _switched_on(text, word, spec, gateway, kept)
        return text

    return edited_settings(project, edit)


def _names(word: str, spec: ToolSpec | None) -> set[str]:
    """What `catalog.deny` may call it."""
    if spec is None:
        return {word}
    aliases = (alias for alias, meant in TOOL_ALIASES.items() if meant == spec.name)
    return {spec.name, spec.rule_name, *aliases}


def _switched_on(text: str, word: str, spec: ToolSpec | None, gateway: Gateway, kept: Sequence[str]) -> str:
    names = _names(word, spec)
    denied = items(mapping(read_yaml(text).get("catalog")).get("deny"))
    if gone := [one for one in denied if one in names]:
        text = edited_list(text, ("catalog", "deny"), remove=gone)
    if spec is None and not word.startswith(TOOLSET_PREFIX):
        return text
    toolset = spec.toolset if spec is not None else word.removeprefix(TOOLSET_PREFIX)
    labels = labels_of(spec) if spec is not None else frozenset({word})
    chosen = _filter(gateway, {"deny": tuple(kept)})
    if by := [one for one in kept if _filter(gateway, {"deny": (one,)}).deny & labels]:
        raise ToolError(
            ErrorCode.CONFIG,
            f"{word} stays off: catalog.deny has {', '.join(by)}",
            f"Take that out first: goat-mcp enable {by[0]}",
        )
    if toolset not in chosen.toolsets and not labels & chosen.also_on and toolset not in LISTED_ELSEWHERE:
        text = edited_list(text, ("catalog", "toolsets"), add=[toolset])
    if chosen.allow is not None and not chosen.allow & labels:
        text = edited_list(text, ("catalog", "allow"), add=[word])
    return text


def _filter(gateway: Gateway, catalog: dict[str, Any]) -> CatalogFilter:
    settings = gateway.settings
    changed = settings.model_copy(update={"catalog": settings.catalog.model_copy(update=catalog)})
    return ToolSelection(changed, gateway.upstreams.configs, gateway.declared.toolsets, _resources(gateway)).filter()


def _resources(gateway: Gateway) -> list[str]:
    documents = gateway.declared.documents
    return [] if documents is None else [tool.name for tool in documents.tools]


def _still_otherwise(wanted: Wanted, *, on: bool) -> list[str]:
    """What the change does not decide, or not yet: another file, a variable, a toolset that is read at the start."""
    late = [word for word, _ in wanted.selections if word.removeprefix(TOOLSET_PREFIX) in AT_START_ONLY]
    if on and late:
        return [f"{', '.join(late)}: running servers that did not have it read it at their next start"]
    specs = [spec for _, spec in wanted.selections if spec is not None]
    if not specs:
        return []
    now = _gateway()
    notes: list[str] = []
    for spec in specs:
        if now.catalog.shows(spec) is not on:
            is_now = f"{spec.name} is still {'off' if on else 'on'} here"
            notes.append(f"{is_now}: {_deciding(now.settings)} decides. See: goat-mcp config list")
    return notes


def _deciding(settings: Settings) -> str:
    keys = ("catalog.deny", "catalog.allow", "catalog.toolsets")
    elsewhere = {key: settings.source_of(key) for key in keys if settings.source_of(key) not in ("file", "default")}
    return ", ".join(f"{key} of the {source}" for key, source in elsewhere.items()) or "another setting"
