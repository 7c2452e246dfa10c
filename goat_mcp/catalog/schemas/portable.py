"""A listed tool as the hosts of a dialect accept it: pure, idempotent, for any JSON (SCH-1, SCH-2); or why none can.

The entry that came stays the authority: pins, calls and checks of results use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from goat_mcp.catalog.schemas.dialects import DEFAULT_DIALECT, DIALECTS, Dialect
from goat_mcp.catalog.schemas.parameter_names import duplicate_name, renamed, with_names
from goat_mcp.catalog.schemas.references import DATA_KEYWORDS, Local, expanded_size, is_definition
from goat_mcp.catalog.schemas.root_schema import MAX_RULES_CHARS, is_plain, plain_root
from goat_mcp.catalog.schemas.subschemas import MAX_EXPANDED, Rewrite, Subschemas
from goat_mcp.core.errors import cut_middle

_BY_NAME = frozenset({"patternProperties", "propertyNames"})
_NAME_LISTS = frozenset({"required", "propertyOrdering"})

Object = dict[str, Any]


@dataclass(frozen=True)
class Portable:
    """`entry` is the very one given where nothing had to change, and then `rewrites` is empty."""

    entry: Mapping[str, Any]
    rewrites: tuple[Rewrite, ...]


def portable(entry: Mapping[str, Any], dialect: Dialect) -> Portable:
    """`entry` is a member of a `tools/list` answer. It is not changed."""
    given: Any = entry.get("inputSchema")
    schema = cast("Object", given) if isinstance(given, dict) else {}
    if dialect.is_verbatim:
        if given is schema and schema.get("type") == "object":
            return Portable(entry, ())
        rewrite = Rewrite("/inputSchema", "it says that it is an object, as MCP demands")
        return Portable({**entry, "inputSchema": {**schema, "type": "object"}}, (rewrite,))
    rewrites: list[Rewrite] = []
    new, rules = _input(schema, dialect, rewrites)
    changed: Object = {}
    if new is not given:
        changed["inputSchema"] = new
    if rules:
        changed["description"] = _description(entry.get("description"), rules)
    output: Any = entry.get("outputSchema")
    if isinstance(output, dict):
        parts = Subschemas(dialect, Local(cast("Object", output)), rewrites)
        if (shown := parts.rewritten(cast("Object", output), "/outputSchema")) is not output:
            changed["outputSchema"] = shown
    return Portable({**entry, **changed} if changed else entry, tuple(rewrites))


def needs_nothing(entry: Mapping[str, Any]) -> bool:
    """Whether every host takes the entry as it is. Depends on the entry and `RULES_VERSION`, and on nothing else."""
    return portable(entry, DIALECTS[DEFAULT_DIALECT]).entry is entry


def _input(schema: Object, dialect: Dialect, rewrites: list[Rewrite]) -> tuple[Object, tuple[str, ...]]:
    path = "/inputSchema"
    local = Local(schema)
    folded, rules = schema, ()
    if not is_plain(schema):
        folded, rules = plain_root(schema, local)
        if folded.keys() >= schema.keys():
            rewrites.append(Rewrite(path, "it says that it is an object"))
        else:
            gone = ", ".join(key for key in schema if key not in folded)
            rewrites.append(Rewrite(path, f"the root became one plain object, without {gone}"))
    moved = folded is not schema and _refers_elsewhere(schema)
    parts = Subschemas(dialect, local, inlines=moved)
    new = parts.rewritten(_without_definitions(folded) if moved else folded, path)
    if parts.has_refused_names:
        names = renamed(folded)
        # A pattern would be held against the new names; a pointer would look for the old ones.
        by_name = replace(dialect, dropped=dialect.dropped | _BY_NAME)
        parts = Subschemas(by_name, local, inlines=True)
        new = cast("Object", _with_new_names(parts.rewritten(_without_definitions(folded), path), names))
        for old, given in names.items():
            rewrites.append(Rewrite(path, f"parameter {old[:200]!a} is listed as {given}"))
    rewrites += parts.rewrites
    if dialect.names_properties and "properties" not in new:
        new = cast("Object", {**new, "properties": {}})
        rewrites.append(Rewrite(path, "it says that it has no properties"))
    return new, rules


def _description(given: Any, rules: tuple[str, ...]) -> str:
    text = cut_middle(" ".join(rules), MAX_RULES_CHARS)
    return f"{given}\n\n{text}" if isinstance(given, str) and given else text


def _without_definitions(schema: Object) -> Object:
    """Where every reference is followed, nobody looks them up."""
    return {key: value for key, value in schema.items() if key not in ("$defs", "definitions")}


def _refers_elsewhere(schema: Object) -> bool:
    """Whether a reference names something other than a definition: a place that moved with the root."""
    waiting: list[Any] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += cast("list[Any]", node)
        elif isinstance(node, dict):
            members = cast("Object", node)
            reference = members.get("$ref")
            if isinstance(reference, str) and not is_definition(reference):
                return True
            waiting += [child for key, child in members.items() if key not in DATA_KEYWORDS]
    return False


def _with_new_names(schema: Any, names: Mapping[str, str], *, is_named: bool = False) -> Any:
    """`is_named`: the keys of `schema` are names of properties."""
    if isinstance(schema, list):
        return [_with_new_names(child, names) for child in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    given = cast("Object", schema)
    if is_named:
        return {names.get(name, name): _with_new_names(child, names) for name, child in given.items()}
    new: Object = {}
    for key, value in given.items():
        if key in DATA_KEYWORDS:
            new[key] = with_names(value, names)
        elif key in _NAME_LISTS and isinstance(value, list):
            new[key] = [names.get(name, name) if isinstance(name, str) else name for name in cast("list[Any]", value)]
        elif key in ("dependentRequired", "dependencies") and isinstance(value, dict):
            new[key] = {
                names.get(name, name): _names_or_schema(each, names) for name, each in cast("Object", value).items()
            }
        else:
            new[key] = _with_new_names(value, names, is_named=key in ("properties", "dependentSchemas"))
    return new


def _names_or_schema(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [names.get(name, name) if isinstance(name, str) else name for name in cast("list[Any]", value)]
    return _with_new_names(value, names)


def why_too_large(schema: Any) -> str:
    """In words, if following every reference would make too many parts; else empty."""
    if expanded_size(schema, MAX_EXPANDED) > MAX_EXPANDED:
        return f"has more than {MAX_EXPANDED} parts once its references are followed"
    return ""


def why_uncallable(input_schema: Mapping[str, Any]) -> str:
    """In words, if there is no way to call the tool; else empty."""
    kind: Any = input_schema.get("type", "object")
    kinds = cast("list[Any]", kind) if isinstance(kind, list) else [kind]
    if all(isinstance(one, str) for one in kinds) and "object" not in kinds:
        return "its inputSchema takes no object, which arguments always are"
    if twice := duplicate_name(input_schema):
        return f"two of its parameters would be listed as {twice}"
    return ""
