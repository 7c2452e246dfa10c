"""Names of parameters that model APIs refuse, the names we give them instead, and the way back (SCH-2).

A new name depends on the old one alone, so the way back needs no record: arguments get the upstream's own names before
rules, hooks or the upstream see them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, cast

from goat_mcp.catalog.schemas.references import DATA_KEYWORDS

MAX_NAME_CHARS = 64
_ACCEPTED = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
_REFUSED_CHARACTER = re.compile(r"[^A-Za-z0-9_.-]")
_HASH_CHARS = 8
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LOOKS_RENAMED = re.compile(r"[A-Za-z0-9_.-]{0,55}_[0-9a-f]{8}\Z")


def is_accepted(name: str) -> bool:
    return _ACCEPTED.match(name) is not None


def accepted_name(name: str) -> str:
    """The name itself, or its head in accepted characters and 8 hex digits of its SHA-256."""
    if is_accepted(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{_REFUSED_CHARACTER.sub('_', name)[: MAX_NAME_CHARS - _HASH_CHARS - 1]}_{digest}"


def declared_names(schema: Any) -> set[str]:
    """Every name of a property, at whatever depth."""
    found: set[str] = set()
    waiting: list[tuple[Any, bool]] = [(schema, False)]
    while waiting:
        node, is_named = waiting.pop()
        if isinstance(node, list):
            waiting += [(child, False) for child in cast("list[Any]", node)]
        elif isinstance(node, dict):
            members = cast("dict[str, Any]", node)
            if is_named:
                waiting += [(child, False) for child in members.values()]
                continue
            if isinstance(properties := members.get("properties"), dict):
                found.update(cast("dict[str, Any]", properties))
            waiting += [(child, key in _NAMED) for key, child in members.items() if key not in DATA_KEYWORDS]
    return found


def renamed(schema: Any) -> dict[str, str]:
    """The refused names of a schema's properties, each with the name clients see."""
    return {name: accepted_name(name) for name in declared_names(schema) if not is_accepted(name)}


def duplicate_name(schema: Any) -> str:
    """A name that two properties would have; empty if there is none. Only an upstream that wants it gets there."""
    names = declared_names(schema)
    given: set[str] = {name for name in names if is_accepted(name)}
    for name in sorted(names - given):
        if (new := accepted_name(name)) in given:
            return new
        given.add(new)
    return ""


def original_arguments(arguments: Mapping[str, Any], new_names: Mapping[str, str]) -> Mapping[str, Any]:
    """Arguments under the upstream's own names, at every depth. `new_names` is what `renamed` found."""
    old_names = {new: old for old, new in new_names.items()}
    return cast("Mapping[str, Any]", with_names(arguments, old_names))


def with_names(value: Any, names: Mapping[str, str]) -> Any:
    """JSON with members renamed. A member that is there under both names keeps both."""
    if isinstance(value, list):
        return [with_names(item, names) for item in cast("list[Any]", value)]
    if not isinstance(value, Mapping):
        return value
    given = cast("Mapping[str, Any]", value)
    return {
        (names[key] if key in names and names[key] not in given else key): with_names(child, names)
        for key, child in given.items()
    }


def may_hold_renamed(value: Any) -> bool:
    """Whether arguments have a member that looks like one of our names: most calls need not be looked at closer."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            members = cast("dict[str, Any]", node)
            if any(_LOOKS_RENAMED.match(key) for key in members):
                return True
            waiting += members.values()
        elif isinstance(node, list):
            waiting += cast("list[Any]", node)
    return False
