"""A settings file of Claude Code that the user names: its permission rules and hooks, in force here as well.

Hooks mean what they mean there: exit code 2 refuses, any other failure is logged and the call goes on (R-HOOK-2). A
command line is run by `sh -c`, `command` with `args` without a shell (R-HOOK-1). What Claude Code knows and this
program does not is a note, never an error; a broken file stops the start. Rules are parsed by `permissions`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goat_mcp.calls.hooks.command import BrokenMatcher, HookCommand, Matcher
from goat_mcp.calls.hooks.settings import EVENTS, MAX_TIMEOUT_S, TOOL_EVENTS, HookEvent
from goat_mcp.catalog.builtin_contracts import builtin_names
from goat_mcp.core.names import TOOL_ALIASES, UPSTREAM_PREFIX
from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.settings.json_spans import array_at, object_at, skip_blanks

_READ = frozenset({"permissions", "hooks", "disableAllHooks", "$schema"})
_RULES = ("allow", "ask", "deny")
_DIRECTORIES = "additionalDirectories"


@dataclass(frozen=True, slots=True)
class RuleText:
    """A permission rule as it stands in a file. `origin` is `PATH:LINE`."""

    text: str
    origin: str


@dataclass(frozen=True, slots=True)
class ClaudeSettings:
    """One file. `notes` say what of it has no effect here. `default_mode` is what it names; nobody takes it over."""

    path: Path
    allow: tuple[RuleText, ...] = ()
    ask: tuple[RuleText, ...] = ()
    deny: tuple[RuleText, ...] = ()
    hooks: tuple[HookCommand, ...] = ()
    default_mode: str = ""
    notes: tuple[str, ...] = ()


def read_claude_settings(path: Path, data: bytes | None = None) -> ClaudeSettings:
    """`data` is the file as the user trusted it, where what is on disk does not count.

    Raises `BrokenClaudeSettings`, naming file and line (R-PERM-7, R-CONF-2).
    """
    file = JsonFile(path.expanduser().absolute(), data)
    members = file.members(file.root, "the file")
    notes: list[str] = []
    rules: dict[str, tuple[RuleText, ...]] = {}
    default_mode = ""
    if "permissions" in members:
        permissions = file.members(members["permissions"], "permissions")
        for name in _RULES:
            if name in permissions:
                rules[name] = _rules(file, permissions.pop(name), f"permissions.{name}", notes)
        if "defaultMode" in permissions:
            default_mode = file.text(at := permissions.pop("defaultMode"), "permissions.defaultMode")
            notes.append(f"{file.place(at)}: permissions.defaultMode {default_mode!r} is not taken over; use --mode")
        if _DIRECTORIES in permissions:
            at = permissions.pop(_DIRECTORIES)
            notes.append(f"{file.place(at)}: permissions.{_DIRECTORIES} are not taken over; use --workspace")
        notes += [f"{file.place(at)}: permissions.{name} has no effect here" for name, at in permissions.items()]
    hooks: tuple[HookCommand, ...] = ()
    if "disableAllHooks" in members and file.value(members["disableAllHooks"]) is True:
        notes.append(f"{file.place(members['disableAllHooks'])}: disableAllHooks: none of this file's hooks run")
    elif "hooks" in members:
        hooks = tuple(imported_hooks(file, members["hooks"], notes))
    if others := [name[:40] for name in members if name not in _READ]:
        notes.append(f"{file.path}: without effect here: {', '.join(others)}")
    return ClaudeSettings(file.path, **rules, hooks=hooks, default_mode=default_mode, notes=tuple(notes))


def _rules(file: JsonFile, at: int, name: str, notes: list[str]) -> tuple[RuleText, ...]:
    found: list[RuleText] = []
    for item in file.items(at, name):
        text = file.text(item, f"each rule of {name}")
        if (tool := unknown_tool(text)) is None:
            found.append(RuleText(text, file.place(item)))
        else:
            notes.append(
                f"{file.place(item)}: rule {text[:80]!r} has no effect: there is no tool {tool} here{_near(tool)}"
            )
    return tuple(found)


def _near(tool: str) -> str:
    from goat_mcp.catalog.builtin_contracts import builtin_names

    near = did_you_mean(tool, builtin_names(), most=1, cutoff=0.7)
    return f"; {near}" if near else ""


MAX_BYTES = 1024 * 1024


class BrokenClaudeSettings(ValueError):
    """A file that cannot be used; the text names file, line and what is wanted."""


class JsonFile:
    """A JSON file whose parts know the line they stand on, so that a rule or an error can name it.

    Parts are named by where they begin in it; `root` is the whole. Reading it raises `BrokenClaudeSettings`.
    """

    def __init__(self, path: Path, data: bytes | None = None) -> None:
        self.path = path
        data = _content_of(path) if data is None else data
        if len(data) > MAX_BYTES:
            raise BrokenClaudeSettings(f"{path}: is longer than {MAX_BYTES} bytes")
        try:
            self._text = data.decode("utf-8-sig")
            json.loads(self._text)
        except UnicodeDecodeError:
            raise BrokenClaudeSettings(f"{path}: is not UTF-8 text") from None
        except json.JSONDecodeError as broken:
            raise BrokenClaudeSettings(f"{path}:{broken.lineno}: not valid JSON: {broken.msg}") from None
        except (ValueError, RecursionError):
            raise BrokenClaudeSettings(f"{path}: not valid JSON: nested too deep, or a number too long") from None
        self.root = skip_blanks(self._text, 0)

    def place(self, at: int) -> str:
        """`PATH:LINE`."""
        return f"{self.path}:{self._text.count(chr(10), 0, at) + 1}"

    def broken(self, at: int, message: str) -> BrokenClaudeSettings:
        return BrokenClaudeSettings(f"{self.place(at)}: {message}")

    def value(self, at: int) -> Any:
        return json.JSONDecoder().raw_decode(self._text, at)[0]

    def members(self, at: int, name: str) -> dict[str, int]:
        """Where the values of the object `name` begin. A key that is there twice is an error: one would not count."""
        if self._text[at] != "{":
            raise self.broken(at, f"{name} has to be an object")
        found: dict[str, int] = {}
        for member in object_at(self._text, at).members:
            if member.key in found:
                raise self.broken(member.start, f"{name} has {member.key!r} twice")
            found[member.key] = member.value_start
        return found

    def items(self, at: int, name: str) -> list[int]:
        """Where the items of the list `name` begin."""
        if self._text[at] != "[":
            raise self.broken(at, f"{name} has to be a list")
        return [item.start for item in array_at(self._text, at).items]

    def text(self, at: int, name: str) -> str:
        value = self.value(at)
        if not isinstance(value, str) or not value.strip():
            raise self.broken(at, f"{name} has to be a text that is not empty")
        return value


def _content_of(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise BrokenClaudeSettings(f"{path}: there is no such file")
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as problem:
        raise BrokenClaudeSettings(f"{path}: cannot be read: {problem.strerror}") from None


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
