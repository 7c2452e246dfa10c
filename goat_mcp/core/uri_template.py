"""Whether a URI may come from a template (RFC 6570).

Templates come from others, so matching takes linear time. It is used for routing: if in doubt it matches.
"""

from __future__ import annotations

from functools import lru_cache

MAX_TEMPLATE_CHARS = 2_000
MAX_EXPRESSIONS = 50
_OPTIONAL = frozenset("?&/;.")
"""Operators whose expression is left out where its variables have no value."""
_ANYTHING = frozenset("+#?&/")
"""Operators whose values may hold a slash."""


class _Literal:
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class _Value:
    __slots__ = ("is_optional", "stops_at")

    def __init__(self, expression: str) -> None:
        operator = expression[:1]
        holds_slash = operator in _ANYTHING or "*" in expression
        self.stops_at = "" if holds_slash else "/"
        self.is_optional = operator in _OPTIONAL


def matches(template: str, uri: str) -> bool:
    """Whether some values of the template's variables make it the URI."""
    parts = _parts(template)
    if parts is None:
        return template == uri
    # reached[i]: what was matched until now may end before the i-th character.
    reached = bytearray(len(uri) + 1)
    reached[0] = 1
    for part in parts:
        reached = _after_literal(part.text, uri, reached) if isinstance(part, _Literal) else _after(part, uri, reached)
        if not any(reached):
            return False
    return bool(reached[len(uri)])


def is_catch_all(template: str) -> bool:
    """Whether it leaves the scheme open, so that any URI may fit: `{+any}`, `{scheme}://{+rest}`, `h{+rest}`."""
    return ":" not in template.partition("{")[0]


def _after_literal(text: str, uri: str, reached: bytearray) -> bytearray:
    ends = bytearray(len(reached))
    start = uri.find(text)
    while start >= 0:
        ends[start + len(text)] = reached[start]
        start = uri.find(text, start + 1)
    return ends


def _after(value: _Value, uri: str, reached: bytearray) -> bytearray:
    ends = bytearray(reached) if value.is_optional else bytearray(len(reached))
    is_open = False
    for index, character in enumerate(uri):
        is_open = (is_open or bool(reached[index])) and character != value.stops_at
        if is_open:
            ends[index + 1] = 1
    return ends


@lru_cache(maxsize=1_000)
def _parts(template: str) -> tuple[_Literal | _Value, ...] | None:
    """The template taken apart; None for one that only equals itself."""
    if len(template) > MAX_TEMPLATE_CHARS or template.count("{") > MAX_EXPRESSIONS:
        return None
    parts: list[_Literal | _Value] = []
    rest = template
    while rest:
        literal, brace, rest = rest.partition("{")
        if literal:
            parts.append(_Literal(literal))
        if brace:
            expression, brace, rest = rest.partition("}")
            if not brace or not expression:
                return None
            parts.append(_Value(expression))
    return tuple(parts)
