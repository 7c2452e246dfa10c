"""Halves of surrogate pairs: JSON escapes can hold them, UTF-8 cannot, and many readers refuse a message with one."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, cast

_IN_ONE_GO = 1_000
"""Values that are looked at before others have a turn."""


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


def escaped_in_steps(value: Any) -> Generator[None, None, Any]:
    """Returns what `with_escaped_surrogates` does, and changes the value itself; others have their turns meanwhile."""
    holder = [value]
    left: list[Any] = [holder]
    seen = 0
    while left:
        one: Any = left.pop()
        is_list = isinstance(one, list)
        members: Any = enumerate(cast("list[Any]", one)) if is_list else list(cast("dict[str, Any]", one).items())
        if not is_list:
            one.clear()  # names change, and the order stays
        for name, inner in members:
            seen += 1
            if not seen % _IN_ONE_GO:
                yield
            one[name if is_list else escaped_surrogates(name)] = (
                escaped_surrogates(inner) if isinstance(inner, str) else inner
            )
            if isinstance(inner, dict | list):
                left.append(inner)
    return holder[0]
