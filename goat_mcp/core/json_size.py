"""JSON of values that may have millions of parts, how long it is and the text: nobody else stands still for it."""

from __future__ import annotations

import io
import json
from collections.abc import Collection
from typing import Any, cast


def is_longer(value: Any, max_chars: int) -> bool:
    """Whether its JSON has more characters. Of a value with very many parts no more is looked at than tells that."""
    return _has_more_parts(value, max_chars * 2 // 3) or len(json.dumps(value, ensure_ascii=False)) > max_chars


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


def _has_more_parts(value: Any, most: int) -> bool:
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
