"""What a Claude Code settings file says: its rules as text with their line, and its hooks (see `imported_hooks`).

Rules are not parsed here: that is `permissions`' business.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from goat_mcp.calls.hooks.command import HookCommand
from goat_mcp.settings.claude.imported_hooks import imported_hooks, unknown_tool
from goat_mcp.settings.claude.locations import BrokenClaudeSettings, JsonFile

__all__ = ["BrokenClaudeSettings", "ClaudeSettings", "RuleText", "read_claude_settings"]

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

    near = difflib.get_close_matches(tool, builtin_names(), n=1, cutoff=0.7)
    return f"; did you mean {near[0]}?" if near else ""
