"""JSON from others: its depth and size, its text without blocking others, and members read as what they should be.

Its escapes can hold halves of surrogate pairs. UTF-8 cannot, and many readers refuse a message with one.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, cast


def is_deeper(value: Any, depth: int) -> bool:
    """Whether more than `depth` lists and objects lie in one another."""
    level: list[Any] = [value]
    for _ in range(depth + 1):
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return False
    return True


def has_infinity(value: Any) -> bool:
    """Whether a number somewhere in a JSON value is none that JSON has: `1e400` is read as infinity."""
    level: list[Any] = [value]
    while level:
        if any(isinstance(one, float) and not math.isfinite(one) for one in level):
            return True
        level = [inner for one in level for inner in _inside(one)]
    return False


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[Any, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list | tuple) else ()


def is_longer(value: Any, max_chars: int) -> bool:
    """Whether its JSON has more characters. Of a value with very many parts no more is looked at than tells that."""
    return has_more_parts(value, max_chars * 2 // 3) or len(json.dumps(value, ensure_ascii=False)) > max_chars


def dumped_in_steps(value: Any) -> str:
    """What `json.dumps` writes, for a thread. That holds the interpreter for all of it; here others have it, too."""
    try:
        text = io.StringIO()
        for piece in json.JSONEncoder(ensure_ascii=False).iterencode(value):
            text.write(piece)
        return text.getvalue()
    except RecursionError:
        # The other way is good for more lists in one another.
        return json.dumps(value, ensure_ascii=False)


def has_more_parts(value: Any, most: int) -> bool:
    """A part takes one and a half characters at least: one alone, two with its brackets, three after another."""
    left = [value]
    parts = 1
    while left:
        one = left.pop()
        inside: Collection[Any]
        if isinstance(one, dict):
            inside = cast("dict[Any, Any]", one).values()
        elif isinstance(one, list | tuple):
            inside = cast("list[Any]", one)
        else:
            continue
        parts += len(inside)
        if parts > most:
            return True
        left += [part for part in inside if isinstance(part, dict | list | tuple)]
    return False


def mapping(value: Any) -> Mapping[str, Any]:
    """The object; an empty one for anything else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def items(value: Any) -> Sequence[Any]:
    """The list; an empty one for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def mappings(value: Any) -> Sequence[Mapping[str, Any]]:
    """The objects of a list."""
    return [mapping(one) for one in items(value) if isinstance(one, dict)]


def count(value: Any) -> int | None:
    """The whole number from 0 on; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def escaped_surrogates(text: str) -> str:
    r"""The text with each half of a surrogate pair as the six characters of its escape (`\ud800`), else as it is."""
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
