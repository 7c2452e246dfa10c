"""What each kind of host accepts, as data: of a schema (SCH-2), of a whole catalog, and of older clients (SCH-3).

Setting: `catalog.schema_dialect`. Every dialect but `mcp` has a folded root, since one root combinator makes model
APIs refuse the whole request, with all other tools in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

DialectName = Literal["plain", "mcp", "openai", "gemini"]
DEFAULT_DIALECT: DialectName = "plain"
RULES_VERSION = 1
"""Rises whenever `portable` would list some schema in another way than before: what an earlier version has found out of
one, and stored, counts no longer."""

_IDENTITY = frozenset({"$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"})
_DEFINITIONS = frozenset({"$defs", "definitions"})
_OPENAI_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_GEMINI_KEYWORDS = frozenset(
    {
        *("type", "title", "description", "format", "enum", "default", "anyOf", "required", "properties", "items"),
        *("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties", "minimum", "maximum"),
        *("pattern", "nullable", "propertyOrdering", "x-mcp-header"),
    }
)


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """`keywords`: those that may stay, None for any. `formats` likewise."""

    name: DialectName
    hosts: str
    """For people: who needs it."""
    is_verbatim: bool = False
    """Only what MCP itself demands is repaired."""
    inlines_references: bool = False
    names_properties: bool = False
    """A root without properties says so with an empty object."""
    single_types: bool = False
    """No lists of types, no booleans for schemas, `anyOf` alone in its schema, enums of strings only."""
    dropped: frozenset[str] = frozenset()
    keywords: frozenset[str] | None = None
    formats: frozenset[str] | None = None


DIALECTS: Mapping[DialectName, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect(name="plain", hosts="all hosts: Claude, Codex, Cursor, VS Code and others"),
        Dialect(name="mcp", hosts="clients that take any schema that MCP allows", is_verbatim=True),
        Dialect(
            name="openai",
            hosts="hosts that pass schemas to OpenAI-compatible APIs unchanged",
            inlines_references=True,
            names_properties=True,
            dropped=_IDENTITY | _DEFINITIONS | {"$comment"},
            formats=_OPENAI_FORMATS,
        ),
        Dialect(
            name="gemini",
            hosts="hosts that pass schemas to Gemini's function declarations unchanged",
            inlines_references=True,
            single_types=True,
            keywords=_GEMINI_KEYWORDS,
            formats=frozenset({"date-time", "enum", "int32", "int64", "float", "double"}),
        ),
    )
}


class HostLimit(NamedTuple):
    """None if a host is not known to have the limit. Names are ours, without what the host puts before them."""

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


def is_for_handshake(entry: Mapping[str, Any]) -> bool:
    """Whether clients of the handshake revisions take the entry's outputSchema: for them an object's, or none.

    One that they do not take makes them drop the whole list.
    """
    if "outputSchema" not in entry:
        return True
    output: Any = entry["outputSchema"]
    if not isinstance(output, dict):
        return False
    schema = cast("dict[str, Any]", output)
    return schema.get("type") == "object" and isinstance(schema.get("properties", {}), dict)


def for_handshake(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry as those clients get it; itself if they take all of it."""
    if is_for_handshake(entry):
        return entry
    return {key: value for key, value in entry.items() if key != "outputSchema"}
