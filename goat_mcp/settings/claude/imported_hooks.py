"""The hooks of a Claude Code settings file, with the meaning they have there.

Exit code 2 refuses, any other failure is logged and the call goes on (R-HOOK-2). A command line is run by `sh -c`,
`command` with `args` without a shell (R-HOOK-1). Kinds of hooks other than programs, events that this program does not
have, and tools that do not exist here are notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from goat_mcp.calls.hooks.command import BrokenMatcher, HookCommand, Matcher
from goat_mcp.calls.hooks.options import EVENTS, MAX_TIMEOUT_S, TOOL_EVENTS, HookEvent
from goat_mcp.catalog.builtin_contracts import builtin_names
from goat_mcp.core.names import TOOL_ALIASES, UPSTREAM_PREFIX
from goat_mcp.settings.claude.locations import JsonFile

DEFAULT_TIMEOUT_S = 600.0
"""Claude Code's own for programs."""
_SERVER = re.compile(r"mcp__(?!.*__)[A-Za-z0-9_-]+\Z")
_EVENTS: Mapping[str, HookEvent] = {event: event for event in EVENTS}

_TOOL = re.compile(r"\s*([A-Za-z][A-Za-z0-9_]*)\s*(?:\(|\Z)")


def imported_hooks(file: JsonFile, at: int, notes: list[str]) -> Iterator[HookCommand]:
    """The hooks of the object at `at`, in order. Raises `BrokenClaudeSettings`."""
    for name, groups_at in file.members(at, "hooks").items():
        groups = file.items(groups_at, f"hooks.{name}")
        event = _EVENTS.get(name)
        if event is None:
            if groups:
                notes.append(f"{file.place(groups_at)}: hooks of {name[:40]} do not run: there is no such event here")
            continue
        for group_at in groups:
            yield from _group(file, group_at, event, notes)


def _group(file: JsonFile, at: int, event: HookEvent, notes: list[str]) -> Iterator[HookCommand]:
    group = file.members(at, f"each group of hooks.{event}")
    if "hooks" not in group:
        raise file.broken(at, f"a group of hooks.{event} needs its `hooks`")
    matcher = _matcher(file, group, event, notes)
    for item in file.items(group["hooks"], "hooks"):
        hook = _hook(file, item, event, matcher, notes)
        if hook is not None:
            yield hook


def _matcher(file: JsonFile, group: dict[str, int], event: HookEvent, notes: list[str]) -> Matcher:
    if "matcher" not in group:
        return Matcher()
    at = group["matcher"]
    text = file.value(at)
    if not isinstance(text, str):
        raise file.broken(at, "matcher has to be a text")
    servers = (name.strip() for name in text.replace(",", "|").split("|")) if event in TOOL_EVENTS else ()
    notes += [
        f"{file.place(at)}: matcher {name} names no tool; write {name}__.*" for name in servers if _SERVER.match(name)
    ]
    try:
        return Matcher.parse(text, whole_servers=False)
    except BrokenMatcher as broken:
        raise file.broken(at, str(broken)) from None


def _hook(file: JsonFile, at: int, event: HookEvent, matcher: Matcher, notes: list[str]) -> HookCommand | None:
    place = file.place(at)
    members = file.members(at, "each hook")
    if "type" not in members:
        raise file.broken(at, 'a hook needs its `type`, e.g. "command"')
    kind = file.text(members["type"], "type")
    if kind != "command":
        notes.append(f"{place}: a hook of type {kind[:40]} does not run here; only programs (type command) do")
        return None
    if "command" not in members:
        raise file.broken(at, "a hook of type command needs its `command`")
    command = file.text(members["command"], "command")
    said: dict[str, Any] = {name: file.value(start) for name, start in members.items()}
    if said.get("shell") == "powershell" and "args" not in said:
        notes.append(f"{place}: a hook for PowerShell does not run here")
        return None
    condition = file.text(members["if"], "if") if "if" in members else ""
    if condition and event not in TOOL_EVENTS:
        notes.append(f"{place}: a hook of {event} with an `if` never runs, there as here")
        return None
    if (tool := unknown_tool(condition)) is not None:
        notes.append(f"{place}: the hook for {condition[:80]!r} never runs: there is no tool {tool} here")
        return None
    in_background = said.get("async") is True or said.get("asyncRewake") is True
    if in_background:
        notes.append(f"{place}: a hook that runs in the background there is waited for here; its answer is only logged")
    return HookCommand(
        event=event,
        location=place,
        argv=(command, *_args(file, members["args"])) if "args" in members else ("/bin/sh", "-c", command),
        matcher=matcher,
        condition=condition,
        timeout_s=_timeout_s(file, members),
        refuses_on_failure=said.get("onFailure") == "block",
        strict=False,
        observes=in_background,
        is_imported=True,
        in_shell="args" not in members,
    )


def _args(file: JsonFile, at: int) -> list[str]:
    values = [(item, file.value(item)) for item in file.items(at, "args")]
    for item, value in values:
        if not isinstance(value, str):
            raise file.broken(item, "each of args has to be a text")
    return [str(value) for _, value in values]


def _timeout_s(file: JsonFile, members: dict[str, int]) -> float:
    if "timeout" not in members:
        return DEFAULT_TIMEOUT_S
    value = file.value(members["timeout"])
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise file.broken(members["timeout"], f"timeout has to be a number of seconds over 0, not {value!r:.40}")
    return min(float(value), MAX_TIMEOUT_S)


def unknown_tool(rule: str) -> str | None:
    """The tool a rule names, where it is none of ours. None for any other rule, a broken one too."""
    match = _TOOL.match(rule)
    if match is None:
        return None
    tool = match[1]
    if tool.startswith(UPSTREAM_PREFIX) or tool in builtin_names() or tool in TOOL_ALIASES:
        return None
    return tool
