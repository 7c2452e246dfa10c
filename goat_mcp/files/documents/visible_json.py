"""Make the texts in JSON visible, as `visible_text` does with one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from goat_mcp.files.documents.visible_text import make_lines_visible

_NONE: frozenset[str] = frozenset()


def make_json_visible(value: Any, opaque: frozenset[str] = _NONE) -> Any:
    """The value with every text in it visible, names of members too; the very same object if it is so already.

    What is below a member of a name in `opaque` stays as it is. Raises `RecursionError`.
    """
    if isinstance(value, str):
        return make_lines_visible(value)
    if isinstance(value, list):
        listed = cast("list[Any]", value)
        made = [make_json_visible(one, opaque) for one in listed]
        return listed if all(a is b for a, b in zip(made, listed, strict=True)) else made
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        named = {key: each if key in opaque else make_json_visible(each, opaque) for key, each in members.items()}
        keys = visible_names(members)
        if all(named[key] is members[key] and keys[key] is key for key in members):
            return members
        return {keys[key]: each for key, each in named.items()}
    return value


def visible_names(members: Mapping[str, Any]) -> dict[str, str]:
    """By name of a member, how it is shown. Of two that are one when visible, one gets a number: none is lost."""
    shown: dict[str, str] = {}
    for name in members:
        visible = made = make_lines_visible(name)
        number = 2
        while made is not name and (made in members or made in shown.values()):
            made = f"{visible} ({number})"
            number += 1
        shown[name] = made
    return shown


def hides_something(value: Any) -> bool:
    """Whether a text in it would be shown in another way than it is. One that is a carriage return hides nothing.

    Raises `RecursionError`.
    """
    if isinstance(value, str):
        return value != "\r" and make_lines_visible(value) is not value
    if isinstance(value, list):
        return any(map(hides_something, cast("list[Any]", value)))
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        return any(map(hides_something, members)) or any(map(hides_something, members.values()))
    return False
