"""Halves of surrogate pairs, which JSON's escapes can hold and UTF-8 cannot: many readers refuse a whole message that
has one. Whether input has one is asked in `lenient_values`."""

from __future__ import annotations

from typing import Any, cast


def visible_surrogates(text: str) -> str:
    r"""The text with each of them as the six characters of its escape (`\ud800`), else as it is."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode()


def with_visible_surrogates(value: Any) -> Any:
    """A JSON value in which every text, names of members too, is as `visible_surrogates` leaves it."""
    if isinstance(value, str):
        return visible_surrogates(value)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {visible_surrogates(name): with_visible_surrogates(inner) for name, inner in members.items()}
    if isinstance(value, list):
        return [with_visible_surrogates(inner) for inner in cast("list[Any]", value)]
    return value
