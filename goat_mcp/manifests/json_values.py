"""JSON between declared tools and us: what other programs give back is read strictly, and only what every client can
read goes on to one."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from goat_mcp.core.json_values import is_deeper
from goat_mcp.core.surrogates import escaped_surrogates

MAX_DEPTH = 128
"""Of lists and objects in one another. Clients stop reading a message at about 200, and the value lies inside one."""


def read_json(data: bytes | bytearray) -> Any:
    """The value that a program gave back. Raises `ValueError`, also where an object names a member twice."""
    try:
        return json.loads(data, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError("its lists and objects lie too deep in one another") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        twin = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"an object names {twin[:80]!r} twice")
    return value


def written_json(value: Any) -> str:
    """As it is sent. Raises `ValueError` or `TypeError`, in words, for what some client could not read."""
    if is_deeper(value, MAX_DEPTH):
        raise ValueError(f"more than {MAX_DEPTH} lists and objects lie in one another")
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as problem:
            half = escaped_surrogates(text[problem.start])
            raise ValueError(f"a text of it holds {half}, half of a surrogate pair") from None
    return text
