"""`profiles` of the settings, as the catalog knows them, and which of them a client gets beside those it asks for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, get_args

from goat_mcp.catalog.filter import CatalogFilter, CatalogProfile, ProfileOptions
from goat_mcp.catalog.presets import BrokenSelection, Selections
from goat_mcp.core.names import UPSTREAM_PREFIX, InvalidName, clean_server_name
from goat_mcp.core.spec import Toolset
from goat_mcp.gateway.build.toolsets import Declared, labels_in, split
from goat_mcp.settings.settings import BrokenSettings, Settings


def chosen_profiles(
    settings: Settings, *, flat_names: bool, toolsets: Declared, resources: Collection[str] = ()
) -> Mapping[str, CatalogProfile]:
    """Raises `BrokenSettings` for a name that nobody knows, in a profile or of one."""
    for key, name in [("profile", settings.profile), *_by_client(settings)]:
        if name and name not in settings.profiles:
            known = f"there are {', '.join(settings.profiles)}" if settings.profiles else "there are none"
            raise BrokenSettings(f"{key}: {name!r} is no profile; {known}", "Add it under profiles, or mend the name.")
    return {
        name: CatalogProfile(
            filter=_filter(name, options, lambda: _selections(settings, flat_names, toolsets, resources), toolsets),
            name_cap=options.name_cap,
            dialect=options.schema_dialect,
            token_budget=options.token_budget,
        )
        for name, options in settings.profiles.items()
    }


def unknown_servers(settings: Settings, servers: Sequence[str]) -> list[dict[str, Any]]:
    """What profiles say of servers that nobody configured: no error, since one settings file serves many lists."""
    return [
        {
            "name": server,
            "reason_code": "unknown_server",
            "detail": f"profiles.{name}.upstreams selects nothing: no upstream has this name",
        }
        for name, options in settings.profiles.items()
        for server in options.upstreams or ()
        if _server(name, server) not in servers
    ]


def _by_client(settings: Settings) -> list[tuple[str, str]]:
    return [(f"profile_of_client.{client}", name) for client, name in settings.profile_of_client.items()]


def _selections(settings: Settings, flat_names: bool, toolsets: Declared, resources: Collection[str]) -> Selections:
    return Selections(
        settings.catalog.presets, flat_names=flat_names, toolsets=labels_in(toolsets), resources=resources
    )


def _filter(
    profile: str, options: ProfileOptions, selections: Callable[[], Selections], toolsets: Declared
) -> CatalogFilter:
    allow, deny = options.tools.allow, options.tools.deny
    allowed: frozenset[str] | None = None
    denied = frozenset[str]()
    if allow is not None or deny:
        key = "allow"
        try:
            chosen = selections()
            allowed = chosen.labels(allow) if allow is not None else None
            key = "deny"
            denied = chosen.labels(deny)
        except BrokenSelection as broken:
            raise BrokenSettings(f"profiles.{profile}.tools.{key}: {broken}", "Mend it and start again.") from None
    servers = options.upstreams
    named = get_args(Toolset) if options.toolsets is None else options.toolsets
    own, also_on = split(named, toolsets, f"profiles.{profile}.toolsets")
    return CatalogFilter(
        toolsets=own,
        also_on=also_on,
        allow=allowed,
        deny=denied,
        servers=None if servers is None else frozenset(_server(profile, server) for server in servers),
        only_reads=options.read_only,
    )


def _server(profile: str, name: str) -> str:
    """The part that names of its tools have of an upstream."""
    try:
        return clean_server_name(name.removeprefix(UPSTREAM_PREFIX))
    except InvalidName as problem:
        raise BrokenSettings(f"profiles.{profile}.upstreams: {problem}", "Name upstreams as in their file.") from None
