"""Adding servers to those that our file has: the same launch once, no name twice, and nothing of the user's changed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain, count
from typing import Any

from goat_mcp.cli.hosts.translate import Translated
from goat_mcp.core.json_values import items, mapping
from goat_mcp.core.names import InvalidName, clean_server_name

TOOL_LIMITS = ("enabled_tools", "disabled_tools")
_LAUNCH = frozenset({"command", "args", "cwd", "url", "env", "headers"})


def lost_options(kept: Mapping[str, Any], dropped: Mapping[str, Any]) -> list[str]:
    """The keys of `dropped` that would not count any more if only `kept` were there.

    A stricter list of tools is no loss.
    """
    return [
        key
        for key, value in dropped.items()
        if key not in _LAUNCH and kept.get(key) != value and not _is_kept(key, kept, dropped)
    ]


def _is_kept(key: str, kept: Mapping[str, Any], dropped: Mapping[str, Any]) -> bool:
    shown, hidden = _tool_names(kept, "enabled_tools"), _tool_names(kept, "disabled_tools") or set[str]()
    named = _tool_names(dropped, key)
    if key == "disabled":
        return dropped[key] is False and "disabled" not in kept
    if key not in TOOL_LIMITS or named is None:
        return False
    if key == "disabled_tools":
        return all(tool in hidden or (shown is not None and tool not in shown) for tool in named)
    return shown is not None and shown - hidden <= named


def _tool_names(entry: Mapping[str, Any], key: str) -> set[str] | None:
    return {str(item) for item in items(entry[key])} if isinstance(entry.get(key), list) else None


_NAMED = ("env", "headers")


class ImportOutcome(StrEnum):
    IMPORTED = "imported"
    PRESENT = "present"
    """Our file has this launch already, under this or another name."""
    KEPT = "kept"
    """It stays with the host."""
    ITSELF = "itself"
    """It is goat-mcp."""


@dataclass(frozen=True)
class MergedServer:
    """The result for one server. `to` is its name in our file; empty if it is not there."""

    name: str
    outcome: ImportOutcome
    to: str = ""
    notes: Sequence[str] = ()


@dataclass
class Merging:
    """Our file's entries, and those that come."""

    there: Mapping[str, Any]
    new: dict[str, Any] = field(default_factory=dict[str, Any])
    _alike: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Names of entries by what they start or call: hosts may have thousands."""
    _used: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        for name, entry in self.there.items():
            self._note(name, entry)

    def add(self, found: Translated, host: str) -> MergedServer:
        """Find a place for one server of `host`."""
        if found.entry is None:
            return MergedServer(
                found.name, ImportOutcome.ITSELF if found.is_goat else ImportOutcome.KEPT, notes=(found.why_not,)
            )
        twins = [
            (name, entry)
            for name in self._alike.get(_launch(found.entry), ())
            if _same_values(
                entry := (self.new[name] if name in self.new else self.there[name]),
                found.entry,
                same_name=name == found.name,
            )
        ]
        if twins:
            fitting = (
                twin
                for twin in twins
                if not _is_only_off(twin[1], found.entry) and not lost_options(twin[1], found.entry)
            )
            return self._present(*next(fitting, twins[0]), found)
        name = self._free_name(found.name, host)
        self.new[name] = dict(found.entry)
        self._note(name, found.entry)
        notes = [] if name == found.name else [f"there is another {found.name} already; this one is {name}"]
        return MergedServer(found.name, ImportOutcome.IMPORTED, name, (*notes, *found.notes))

    def _present(self, name: str, entry: Mapping[str, Any], found: Translated) -> MergedServer:
        theirs = found.entry or {}
        if _is_only_off(entry, theirs):
            why = f"{name} in your file is the same launch, with disabled: true; take that out there to use it"
            return MergedServer(found.name, ImportOutcome.KEPT, notes=(why,))
        if lost := lost_options(entry, theirs):
            return MergedServer(found.name, ImportOutcome.KEPT, notes=_lost_notes(name, entry, theirs, lost))
        notes = () if name == found.name else (f"the same launch as {name}",)
        if stricter := [key for key in TOOL_LIMITS if key in lost_options(theirs, entry)]:
            notes = (*notes, f"{name} in your file has {_written(entry, stricter)}, which this one has not")
        # What has to be said of an entry was said when it came.
        news = () if name in self.there else found.notes
        return MergedServer(found.name, ImportOutcome.PRESENT, name, (*notes, *news))

    def _note(self, name: str, entry: Any) -> None:
        self._used.add(_cleaned(name))
        fields = mapping(entry)
        if fields and all(isinstance(fields.get(key) or {}, dict) for key in _NAMED):
            self._alike.setdefault(_launch(fields), []).append(name)

    def _free_name(self, name: str, host: str) -> str:
        """The name itself, else with the host's, else with a number. Names that tools cannot tell apart are one."""
        numbered = (f"{name}-{host}-{number}" for number in count(2))
        return next(one for one in chain((name, f"{name}-{host}"), numbered) if _cleaned(one) not in self._used)


def _launch(entry: Mapping[str, Any]) -> str:
    """What two entries that start or call the same have in common, but for values that may be secrets."""
    names = [sorted(map(str, mapping(entry.get(key)))) for key in _NAMED]
    return json.dumps([*(entry.get(key) or None for key in ("command", "args", "url", "cwd")), *names])


def _is_only_off(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    return ours.get("disabled") is True and theirs.get("disabled") is not True


def _lost_notes(name: str, ours: Mapping[str, Any], theirs: Mapping[str, Any], lost: Sequence[str]) -> tuple[str, ...]:
    """What would be lost, key by key, and how to bring it."""
    differs = [
        f"{key}: {json.dumps(theirs[key])} would be lost; there it is {json.dumps(ours[key])}"
        if key in ours
        else f"{key}: {json.dumps(theirs[key])} would be lost"
        for key in lost
    ]
    return (
        f"the same launch as {name} in your file, with other options",
        *differs,
        f"to bring it, write {_written(theirs, lost)} into {name} there, where it counts for every host, "
        "or into a copy of it under another name",
    )


def _written(entry: Mapping[str, Any], keys: Sequence[str]) -> str:
    return ", ".join(f"{json.dumps(key)}: {json.dumps(entry[key])}" for key in keys)


def _same_values(ours: Mapping[str, Any], theirs: Mapping[str, Any], *, same_name: bool) -> bool:
    """A secret that the user has since moved to the keyring is still the same one. Options are `lost_options`'s."""
    for key in _NAMED:
        mine, other = mapping(ours.get(key)), mapping(theirs.get(key))
        if any(mine[name] != other[name] and not (same_name and "${" in str(mine[name])) for name in other):
            return False
    return True


def _cleaned(name: str) -> str:
    try:
        return clean_server_name(name)
    except InvalidName:
        return name
