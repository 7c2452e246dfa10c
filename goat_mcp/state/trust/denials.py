"""What a project's file may say before anybody trusts it: what models may not do (R-CONF-1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from goat_mcp.state.trust.settings_file import BrokenFile, SettingsFile

DENIALS = (("permissions", "deny"), ("catalog", "deny"))


def denials_of(file: SettingsFile) -> dict[str, list[str]]:
    """The lists in it that deny, by key. Raises `BrokenFile` for one that cannot be understood: it may deny much."""
    found: dict[str, list[str]] = {}
    for part, name in DENIALS:
        below = file.tree.get(part)
        if below is None:
            continue
        if not isinstance(below, dict):
            raise BrokenFile(f"{file.path}: {part}: wants keys of its own, got {type(below).__name__}")
        value: Any = cast("dict[str, Any]", below).get(name)
        entries = cast("list[Any]", value) if isinstance(value, list) else [] if value is None else [value]
        for entry in entries:
            if not isinstance(entry, str) or not entry.strip():
                raise BrokenFile(f"{file.path}: {part}.{name}: wants texts, got {_shown(entry)}")
        if entries:
            found[f"{part}.{name}"] = cast("list[str]", entries)
    return found


def says_more(file: SettingsFile) -> bool:
    """Whether there is anything in it but denials."""
    rest = dict(file.tree)
    for part, name in DENIALS:
        below = rest.get(part)
        if isinstance(below, Mapping):
            rest[part] = {key: value for key, value in cast("Mapping[str, Any]", below).items() if key != name}
    return any(value not in (None, {}) for value in rest.values())


def _shown(entry: Any) -> str:
    return "an empty text" if isinstance(entry, str) else type(entry).__name__
