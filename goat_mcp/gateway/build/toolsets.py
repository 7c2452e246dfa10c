"""Names of toolsets as a user writes them: ours, and those that a manifest declares."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import cast, get_args

from goat_mcp.core.names import NAME_ALIASES, RESOURCE_PREFIX, SEPARATOR, TOOLSET_PREFIX
from goat_mcp.core.spec import Toolset
from goat_mcp.settings.settings import BrokenSettings

Declared = Mapping[str, Sequence[str]]
"""What each declared toolset holds: names of tools and of resources, and `toolset:NAME`."""


def split(chosen: Sequence[str], declared: Declared, key: str) -> tuple[tuple[Toolset, ...], frozenset[str]]:
    """Ours among them, and the labels of what the declared ones hold. Raises `BrokenSettings` naming `key`."""
    ours = get_args(Toolset)
    labels: set[str] = set()
    for name in chosen:
        if name in ours:
            continue
        if name not in declared:
            known = [*ours, *declared]
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise BrokenSettings(f"{key}: {name!r} is no toolset; {hint}", "Mend the name, or declare it.")
        labels |= labels_in(declared)[name]
    return tuple(cast("Toolset", name) for name in chosen if name in ours), frozenset(labels)


def labels_in(declared: Declared) -> Mapping[str, frozenset[str]]:
    """Of each declared toolset, the labels of what it holds."""
    return {
        name: frozenset(label for entry in entries for label in _labels(entry)) for name, entries in declared.items()
    }


def _labels(entry: str) -> Sequence[str]:
    if entry.startswith(TOOLSET_PREFIX) or SEPARATOR in entry:
        return (entry,)
    return (NAME_ALIASES.get(entry, entry), f"{RESOURCE_PREFIX}{entry}")
