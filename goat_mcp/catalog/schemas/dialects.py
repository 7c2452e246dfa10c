"""What each kind of host accepts of a tool's schema, as data (gateway contract SCH-2; hosts, section 3).

Chosen by `catalog.schema_dialect`. Every dialect but `mcp` has the root folded, since one root combinator makes model
APIs refuse the whole request, with all other tools in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

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
    """Only what MCP itself demands is mended."""
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
