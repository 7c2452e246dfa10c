"""Servers put among those that our file has: the same launch once, no name twice, and nothing of yours changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast

from goat_mcp.core.names import InvalidName, clean_server_name
from goat_mcp.hosts.translate import Translated


class Outcome(StrEnum):
    IMPORTED = "imported"
    PRESENT = "present"
    """Our file has this launch already, under this or another name."""
    KEPT = "kept"
    """It stays with the host."""
    ITSELF = "itself"
    """It is goat-mcp."""


@dataclass(frozen=True)
class Merged:
    """What became of one server. `to` is its name in our file; empty where it is not there."""

    name: str
    outcome: Outcome
    to: str = ""
    told: Sequence[str] = ()


@dataclass
class Merging:
    """Our file's entries, and those that come."""

    there: Mapping[str, Any]
    new: dict[str, Any] = field(default_factory=dict[str, Any])

    def add(self, found: Translated, host: str) -> Merged:
        """Find a place for one server of `host`."""
        if found.entry is None:
            return Merged(found.name, Outcome.ITSELF if found.is_goat else Outcome.KEPT, told=(found.why_not,))
        every = {**self.there, **self.new}
        for name, entry in every.items():
            if _same_launch(entry, found.entry, same_name=name == found.name):
                told = () if name == found.name else (f"the same launch as {name}",)
                # What has to be said of an entry was said when it came.
                news = () if name in self.there else found.told
                return Merged(found.name, Outcome.PRESENT, name, (*told, *news))
        name = _free_name(found.name, host, every)
        self.new[name] = dict(found.entry)
        told = [] if name == found.name else [f"there is another {found.name} already; this one is {name}"]
        return Merged(found.name, Outcome.IMPORTED, name, (*told, *found.told))


def _same_launch(entry: Any, theirs: Mapping[str, Any], *, same_name: bool) -> bool:
    """Whether two entries start or call the same. Wait, naming and the like are not asked."""
    if not isinstance(entry, dict):
        return False
    ours = cast("dict[str, Any]", entry)
    if any((ours.get(key) or None) != (theirs.get(key) or None) for key in ("command", "args", "url", "cwd")):
        return False
    return all(_same_values(ours.get(key) or {}, theirs.get(key) or {}, same_name) for key in ("env", "headers"))


def _same_values(ours: Mapping[str, Any], theirs: Mapping[str, Any], same_name: bool) -> bool:
    """A secret that the user has since moved to the keyring is still the same one."""
    if ours.keys() != theirs.keys():
        return False
    return all(ours[key] == theirs[key] or (same_name and "${" in str(ours[key])) for key in ours)


def _free_name(name: str, host: str, taken: Mapping[str, Any]) -> str:
    """The name itself, else with the host's, else with a number. Names that tools cannot tell apart are one."""
    used = {_cleaned(other) for other in taken}
    wanted = [name, f"{name}-{host}", *(f"{name}-{host}-{number}" for number in range(2, len(used) + 3))]
    return next(candidate for candidate in wanted if _cleaned(candidate) not in used)


def _cleaned(name: str) -> str:
    try:
        return clean_server_name(name)
    except InvalidName:
        return name
