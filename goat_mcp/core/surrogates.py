"""Halves of surrogate pairs: JSON escapes can hold them, UTF-8 cannot, and many readers refuse a message with one."""

from __future__ import annotations

from typing import Any, cast


def escaped_surrogates(text: str) -> str:
    r"""The text with each of them as the six characters of its escape (`\ud800`), else as it is."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode()


def with_escaped_surrogates(value: Any) -> Any:
    """A JSON value in which every text, names of members too, is as `escaped_surrogates` leaves it."""
    if isinstance(value, str):
        return escaped_surrogates(value)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {escaped_surrogates(name): with_escaped_surrogates(inner) for name, inner in members.items()}
    if isinstance(value, list):
        return [with_escaped_surrogates(inner) for inner in cast("list[Any]", value)]
    return value
