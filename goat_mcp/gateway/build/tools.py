"""Which tools the settings choose: the filter of the catalog, and what is odd about the choice."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from goat_mcp.catalog.filter import TEAMS_VARIABLE, CatalogFilter, CatalogProfile
from goat_mcp.catalog.registry import Registry
from goat_mcp.core.names import NAME_ALIASES, SEPARATOR, TOOLSET_PREFIX, UPSTREAM_PREFIX
from goat_mcp.core.spec import Toolset
from goat_mcp.gateway.build.toolsets import Declared, labels_in, split
from goat_mcp.settings.settings import BrokenSettings, Settings
from goat_mcp.upstreams.config.entry import UpstreamConfig

_NO_TOOLSETS: Declared = {}


class ChosenTools:
    """`catalog.*` of the settings, over the upstreams there are."""

    def __init__(
        self,
        settings: Settings,
        upstreams: Sequence[UpstreamConfig],
        toolsets: Declared = _NO_TOOLSETS,
        resources: Collection[str] = (),
    ) -> None:
        """`toolsets` and `resources` are those that manifests declare."""
        self._settings = settings
        self._declared = toolsets
        self._resources = resources
        self._chosen = settings.catalog
        self._upstreams = upstreams

    def filter(self) -> CatalogFilter:
        """What a client may see. Raises `BrokenSettings` for a name that nobody knows."""
        chosen = self._chosen
        toolsets, also_on = split(chosen.toolsets, self._declared, "catalog.toolsets")
        toolsets = _with_teams(toolsets)
        if chosen.allow is None and not chosen.deny and not chosen.presets:
            return CatalogFilter(toolsets=toolsets, also_on=also_on)
        # Most starts select nothing.
        from goat_mcp.catalog.presets import BrokenSelection, Selections

        flat_names = any(upstream.naming == "flat" for upstream in self._upstreams)
        key = "catalog.presets"
        try:
            selections = Selections(
                chosen.presets,
                flat_names=flat_names,
                toolsets=labels_in(self._declared),
                resources=self._resources,
            )
            key = "catalog.allow"
            allow = selections.labels(chosen.allow) if chosen.allow is not None else None
            key = "catalog.deny"
            deny = selections.labels(chosen.deny)
        except BrokenSelection as broken:
            raise BrokenSettings(f"{key}: {broken}", "Mend it and start again.") from None
        return CatalogFilter(toolsets=toolsets, also_on=also_on, allow=allow, deny=deny)

    def profiles(self) -> Mapping[str, CatalogProfile]:
        """Raises `BrokenSettings`."""
        settings = self._settings
        if not settings.profiles and not settings.profile and not settings.profile_of_client:
            return {}
        # Most starts have none.
        from goat_mcp.gateway.build.profiles import chosen_profiles

        flat_names = any(upstream.naming == "flat" for upstream in self._upstreams)
        return chosen_profiles(settings, flat_names=flat_names, toolsets=self._declared, resources=self._resources)

    def check_allowed_are_on(self, registry: Registry) -> None:
        """A tool or toolset that is allowed by its own name is meant to be there; a preset may hold more than is."""
        on = _with_teams(split(self._chosen.toolsets, self._declared, "catalog.toolsets")[0])
        for entry in self._chosen.allow or ():
            name = NAME_ALIASES.get(entry.strip(), entry.strip())
            tool = registry.get(name)
            toolset = tool.spec.toolset if tool is not None else name.removeprefix(TOOLSET_PREFIX)
            if toolset in self._declared:
                continue  # what it holds is on by that
            if (tool is not None or name.startswith(TOOLSET_PREFIX)) and toolset not in on:
                remedy = f"Set {TEAMS_VARIABLE}=1." if toolset == "teams" else f"Add it with --toolset {toolset}."
                raise BrokenSettings(f"catalog.allow: {entry} needs the toolset {toolset}, which is off", remedy)

    def unknown_servers(self) -> list[dict[str, Any]]:
        """Selections that name a server nobody configured: no error, since one settings file serves many lists."""
        known = [f"{UPSTREAM_PREFIX}{upstream.server}" for upstream in self._upstreams]
        return [
            {
                "name": entry,
                "reason_code": "unknown_server",
                "detail": f"catalog.{key} selects nothing: no upstream has this name{_or(known)}",
            }
            for key, entries in (("allow", self._chosen.allow), ("deny", self._chosen.deny))
            for entry in entries or ()
            if entry.startswith(UPSTREAM_PREFIX) and SEPARATOR.join(entry.split(SEPARATOR)[:2]) not in known
        ] + self._unknown_in_profiles()

    def _unknown_in_profiles(self) -> list[dict[str, Any]]:
        if not self._settings.profiles:
            return []
        from goat_mcp.gateway.build.profiles import unknown_servers

        return unknown_servers(self._settings, [upstream.server for upstream in self._upstreams])


def _or(known: Sequence[str]) -> str:
    return f"; there are {', '.join(known)}" if known else ""


def _with_teams(chosen: Sequence[Toolset]) -> tuple[Toolset, ...]:
    """Those of the settings, and the teams where their variable is set. Raises `BrokenSettings`."""
    if os.environ.get(TEAMS_VARIABLE, "").strip().lower() not in ("", "0", "false", "no", "off"):
        return (*chosen, "teams")
    if "teams" in chosen:
        raise BrokenSettings(
            f"catalog.toolsets: teams needs the environment variable {TEAMS_VARIABLE}", f"Set {TEAMS_VARIABLE}=1."
        )
    return tuple(chosen)
