"""What hosts bear of a catalog as a whole, as data (hosts, section 3): how many tools, how long their names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class HostLimit(NamedTuple):
    """None where a host is not known to have the limit. Names are ours, without what the host puts before them."""

    host: str
    tools: int | None = None
    name_chars: int | None = None


HOST_LIMITS = (
    HostLimit("OpenAI models", tools=128, name_chars=64),
    HostLimit("VS Code", tools=128),
    HostLimit("Windsurf", tools=100),
    HostLimit("Cursor", tools=80, name_chars=55),
    HostLimit("Claude", name_chars=52),
    HostLimit("Gemini", name_chars=64),
)
"""Cursor's 60 are of `goat` and the name; Claude's 64 of `mcp__goat__` and the name."""


def host_findings(names: Iterable[str]) -> list[str]:
    """What of a catalog with these names some hosts would cut or refuse, in words."""
    listed = list(names)
    found: list[str] = []
    for limit in HOST_LIMITS:
        if limit.tools is not None and len(listed) > limit.tools:
            found.append(f"{limit.host}: takes {limit.tools} tools, there are {len(listed)}")
        long = [name for name in listed if limit.name_chars is not None and len(name) > limit.name_chars]
        if long:
            found.append(f"{limit.host}: takes names of {limit.name_chars} characters, {long[0]} has {len(long[0])}")
    return found
