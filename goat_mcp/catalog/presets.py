"""What a person may write to select tools (names, aliases, servers, toolsets, presets), as labels of tools.

Source: Goat Spec 04, `Tools option (string[] | preset)`, `DisallowedTools`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import get_args

from goat_mcp.catalog.builtin_contracts import builtin_contracts, builtin_names, names_of_ours
from goat_mcp.core.names import (
    RESOURCE_PREFIX,
    SEPARATOR,
    TOOL_ALIASES,
    TOOLSET_PREFIX,
    UPSTREAM_PREFIX,
    InvalidName,
    split_name,
)
from goat_mcp.core.spec import DEFAULT_TOOLSETS, Toolset
from goat_mcp.core.suggestions import nearest, one_of

PRESET_PREFIX = "preset:"

_PRESET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\Z")


@cache
def own_presets() -> Mapping[str, tuple[str, ...]]:
    """The presets that nobody has to define."""
    return {
        "claude_code": tuple(f"{TOOLSET_PREFIX}{name}" for name in (*DEFAULT_TOOLSETS, "teams")),
        "core": (f"{TOOLSET_PREFIX}core",),
        # The hints of the built-in tools count; an upstream's do not.
        "read_only": tuple(spec.name for spec in builtin_contracts() if spec.hints.read_only),
    }


class BrokenSelection(ValueError):
    """A selection that cannot be understood; the text names what was written, and what could have been meant."""


class Selections:
    """Reads selections, with a user's own `presets`.

    `flat_names`: an upstream's tools go by plain names, so that a name nobody knows may be one of theirs. `toolsets`
    are those that somebody declared: the labels of what each holds. `resources` are declared, too: such a name
    means all exports. `program_tools` are those of a program that embeds us.
    """

    def __init__(
        self,
        presets: Mapping[str, Sequence[str]],
        *,
        flat_names: bool = False,
        toolsets: Mapping[str, frozenset[str]] | None = None,
        resources: Collection[str] = (),
        program_tools: Collection[str] = (),
    ) -> None:
        """Raises `BrokenSelection` for a preset that cannot be understood, even if nothing names it."""
        self._flat_names = flat_names
        self._toolsets = toolsets or {}
        self._resources = resources
        self._program_tools = program_tools
        self._presets: dict[str, frozenset[str]] = {}
        for name, entries in {**own_presets(), **presets}.items():
            if name in presets:
                _check_preset_name(name)
            try:
                self._presets[name] = frozenset[str]().union(*(self._labels(entry) for entry in entries))
            except BrokenSelection as broken:
                raise BrokenSelection(f"preset {name}: {broken}") from None

    def labels(self, entries: Iterable[str]) -> frozenset[str]:
        """The labels of all tools that `entries` name. Raises `BrokenSelection`."""
        labels: set[str] = set()
        for entry in entries:
            name = entry.strip()
            if name.startswith(PRESET_PREFIX):
                labels |= self._preset(name.removeprefix(PRESET_PREFIX))
            else:
                labels |= self._labels(name)
        return frozenset(labels)

    def _preset(self, name: str) -> frozenset[str]:
        if name not in self._presets:
            raise BrokenSelection(f"{name!r} is no preset; {_near(name, self._presets, 'presets')}")
        return self._presets[name]

    def _labels(self, entry: str) -> frozenset[str]:
        name = entry.strip()
        if name.startswith(PRESET_PREFIX):
            raise BrokenSelection(f"{name!r}: a preset holds tools and {TOOLSET_PREFIX}NAME, no other preset")
        if name.startswith(TOOLSET_PREFIX):
            toolset = name.removeprefix(TOOLSET_PREFIX)
            if toolset in self._toolsets:
                return self._toolsets[toolset]
            if toolset not in get_args(Toolset):
                known = (*get_args(Toolset), *self._toolsets)
                raise BrokenSelection(f"{toolset!r} is no toolset; {_near(toolset, known, 'toolsets')}")
            return frozenset({name})
        if "(" in name:
            raise BrokenSelection(f"{name!r} is a rule; write it under permissions, or the tool's name alone here")
        if name.startswith(UPSTREAM_PREFIX):
            return frozenset({_upstream_label(name)})
        if name in self._program_tools:
            return frozenset({name})
        # An upstream's own tool of an alias's name is meant as well as the built-in.
        names = {TOOL_ALIASES.get(name, name), name} if self._flat_names else {TOOL_ALIASES.get(name, name)}
        if name and (self._flat_names or SEPARATOR in name or not names.isdisjoint(names_of_ours())):
            return frozenset(names)
        if name in self._resources:
            return frozenset({f"{RESOURCE_PREFIX}{name}"})
        known = (*builtin_names(), *TOOL_ALIASES, *self._resources, *self._program_tools)
        raise BrokenSelection(f"{name!r} names no tool; {_near(name, known, 'tools')}")


def _upstream_label(name: str) -> str:
    """`mcp__server`, `mcp__server__*` or `mcp__server__tool`."""
    server = name.removeprefix(UPSTREAM_PREFIX).removesuffix(f"{SEPARATOR}*")
    if server and SEPARATOR not in server and "*" not in server:
        return f"{UPSTREAM_PREFIX}{server}"
    try:
        split_name(name)
    except InvalidName as problem:
        raise BrokenSelection(str(problem)) from None
    if "*" in name:
        raise BrokenSelection(f"{name!r}: `*` stands only for all tools of a server, e.g. mcp__github__*")
    return name


def _check_preset_name(name: str) -> None:
    if name in own_presets():
        raise BrokenSelection(f"preset {name} is one of ours; give yours another name")
    if not _PRESET_NAME.match(name):
        raise BrokenSelection(f"preset {name!r}: a name has A-Z a-z 0-9 - and _")


def _near(name: str, known: Collection[str], kind: str) -> str:
    near = nearest(name, known) or [each for each in known if len(name) > 2 and name.lower() in each.lower()]
    return one_of(dict.fromkeys(near)) or f"{kind} are {', '.join(dict.fromkeys(known))}"
