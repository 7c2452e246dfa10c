"""A schema as people and models read it: with what is text made visible, and what is data left as it is (R-UP-7b).

What a keyword holds is in `keywords` and in `DATA`; one that nobody knows holds text. Data in which something hides
cannot be made visible, for an argument must be equal to it: who shows the schema must not show it then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, cast

from goat_mcp.catalog.schemas.keywords import NAMED, ONE, SEVERAL
from goat_mcp.files.documents.visible_text import hides_something, make_json_visible, visible_names

DATA = frozenset(
    {
        *("const", "enum", "default", "examples", "example", "pattern", "format", "type", "required"),
        *("dependencies", "dependentRequired", "contentMediaType", "contentEncoding", "propertyOrdering"),
        *("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$ref"),
        *("$dynamicRef", "$recursiveRef", "x-mcp-header"),
    }
)
"""Keywords that hold values, names or addresses, which mean something only as they are."""


class VisibleSchema(NamedTuple):
    """`schema` is the very same object if nothing had to be made visible. `hidden` is a keyword whose data hides
    something; empty if none does."""

    schema: Any
    hidden: str


def visible_schema(schema: Any) -> VisibleSchema:
    """Raises `RecursionError`."""
    walk = _Walk()
    return VisibleSchema(walk.schema(schema), walk.hidden)


class VisibleEntry(NamedTuple):
    """`hidden` has the members whose data hides something, each with the keyword, or the member itself."""

    entry: dict[str, Any]
    hidden: Mapping[str, str]
    is_changed: bool


def visible_entry(given: Mapping[str, Any], *, schemas: Collection[str], data: Collection[str]) -> VisibleEntry:
    """A listed entry, or a question, with every text in it visible. `schemas` and `data` name members that are such.

    Raises `RecursionError`.
    """
    made: dict[str, Any] = {}
    hidden: dict[str, str] = {}
    names = visible_names(given)
    is_changed = False
    for member, value in given.items():
        shown = value
        if member in schemas:
            shown, keyword = visible_schema(value)
            if keyword:
                hidden[member] = keyword
        elif member not in data:
            shown = make_json_visible(value)
        elif hides_something(value):
            hidden[member] = member
        is_changed |= shown is not value or names[member] is not member
        made[names[member]] = shown
    return VisibleEntry(made, hidden, is_changed)


class _Walk:
    def __init__(self) -> None:
        self.hidden = ""

    def schema(self, node: Any) -> Any:
        if isinstance(node, list):
            return self._several(cast("list[Any]", node))
        if not isinstance(node, dict):
            return make_json_visible(node)
        given = cast("dict[str, Any]", node)
        made = {key: self._member(key, value) for key, value in given.items()}
        names = visible_names(given)
        if all(made[key] is given[key] and names[key] is key for key in given):
            return given
        return {names[key]: value for key, value in made.items()}

    def _member(self, key: str, value: Any) -> Any:
        if key in NAMED and isinstance(value, dict):
            return self._named(key, cast("dict[str, Any]", value))
        if key in ONE or key in SEVERAL:
            return self.schema(value)
        if key in DATA or key in NAMED:
            self._look_at(key, value)
            return value
        return make_json_visible(value)

    def _named(self, key: str, named: dict[str, Any]) -> Any:
        self._look_at(key, list(named))
        made = {name: self.schema(child) for name, child in named.items()}
        return named if all(made[name] is named[name] for name in named) else made

    def _several(self, schemas: list[Any]) -> Any:
        made = [self.schema(each) for each in schemas]
        return schemas if all(a is b for a, b in zip(made, schemas, strict=True)) else made

    def _look_at(self, key: str, data: Any) -> None:
        if not self.hidden and hides_something(data):
            self.hidden = key
