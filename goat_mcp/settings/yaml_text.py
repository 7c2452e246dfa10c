"""YAML as people write it, edited so that every byte that is not concerned stays as it is: comments, order, quotes.

Edited as text, at the positions that the parser reports: a library that writes the parsed document again moves the
comments behind the last key of a mapping, indents all lists in one way, and breaks long lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from goat_mcp.core.errors import ToolError
from goat_mcp.core.json_values import has_more_parts
from goat_mcp.settings.yaml_spans import YamlSpans, parsed, refusal

_MAX_VALUES = 100_000
"""Aliases count each time."""


class Removed:
    """Stands for the value of a key that is to go."""


REMOVED = Removed()


def read_yaml(text: str) -> dict[str, Any]:
    """The mapping that a text holds; a blank one holds an empty one. Keys are texts, as they are written.

    Raises `ToolError(CONFIG)` with line and column.
    """
    found = parsed(text)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise refusal("it is not a mapping (`key: value`)")
    if has_more_parts(found, _MAX_VALUES):
        raise refusal(f"it holds more than {_MAX_VALUES} values; aliases count each time")
    return cast("dict[str, Any]", found)


def edited_yaml(text: str, path: Sequence[str], value: Any) -> str:
    """The text with `value` at `path`, or without that key if it is `REMOVED`. Mappings on the way are made.

    A key goes with the comments right above it. Raises `ToolError(CONFIG)` for a text that cannot be read, or not be
    edited without changing the rest of it.
    """
    before = read_yaml(text)
    if value is not REMOVED:
        return _checked(text, YamlSpans(text).with_value(path, value), _expected(before, path, value))
    return _checked(text, YamlSpans(text).without(path), _expected(before, path, value)) if _has(before, path) else text


def edited_list(text: str, path: Sequence[str], *, add: Sequence[Any] = (), remove: Sequence[Any] = ()) -> str:
    """The text with the list at `path` without some items, and with others behind those that stay.

    What is there already is not added again; a list that is not there is made. Raises `ToolError(CONFIG)` as
    `edited_yaml` does, and for what is no list.
    """
    tree = read_yaml(text)
    there = _list_at(tree, path)
    stays = [item for item in there if item not in remove]
    if len(stays) < len(there):
        gone = {index for index, item in enumerate(there) if item in remove}
        pieces = YamlSpans(text).without_items(path, gone) if stays else YamlSpans(text).with_value(path, [])
        tree = _expected(tree, path, stays)
        text = _checked(text, pieces, tree)
    new: list[Any] = []
    for item in add:
        if item not in stays and item not in new:
            new.append(item)
    if not new:
        return text
    pieces = YamlSpans(text).with_items(path, new) if stays else YamlSpans(text).with_value(path, new)
    return _checked(text, pieces, _expected(tree, path, [*stays, *new]))


def _checked(text: str, pieces: Sequence[tuple[int, int, str]], expected: Mapping[str, Any]) -> str:
    """The edit is one of texts: what it means is compared with what was meant, the order of keys included."""
    for start, end, new in sorted(pieces, reverse=True):
        text = text[:start] + new + text[end:]
    try:
        if repr(read_yaml(text)) == repr(expected):
            return text
    except ToolError:
        pass
    raise refusal("it cannot be edited without changing the rest of it")


def _expected(before: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    name, *rest = path
    if rest:
        below = before.get(name)
        value = _expected(cast("dict[str, Any]", below) if isinstance(below, dict) else {}, rest, value)
    if value is REMOVED:
        return {key: other for key, other in before.items() if key != name}
    return {**before, name: value}


def _has(tree: Any, path: Sequence[str]) -> bool:
    for name in path:
        if not isinstance(tree, dict) or name not in tree:
            return False
        tree = cast("dict[str, Any]", tree)[name]
    return True


def _list_at(tree: Any, path: Sequence[str]) -> list[Any]:
    for depth, name in enumerate(path):
        tree = {} if tree is None else tree
        if not isinstance(tree, dict):
            raise refusal(f"{'.'.join(path[:depth])} is not a mapping (`key: value`)")
        tree = cast("dict[str, Any]", tree).get(name)
    if tree is None:
        return []
    if not isinstance(tree, list):
        raise refusal(f"{'.'.join(path)} is not a list")
    return cast("list[Any]", tree)
