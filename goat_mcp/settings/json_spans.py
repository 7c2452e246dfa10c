"""Where the members of a JSON object and the items of an array lie in its text, so that one of them can be changed and
every other byte left alone. What the values mean is not asked here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_BLANKS = re.compile(r"[ \t\n\r]*")
# Numbers are only passed over: as text they cost least, and no limit of digits applies.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


MAX_ITEMS = 50_000
"""Each of them costs some hundred bytes; no notebook comes near."""


class TooManyItems(ValueError):
    """An object or array holds more than `MAX_ITEMS`."""


@dataclass(frozen=True, slots=True)
class Span:
    """`text[start:end]` is an item or a member. The blanks before it begin at `lead`; those behind it end at `after`,
    where a comma or the closing bracket stands."""

    lead: int
    start: int
    end: int
    after: int


@dataclass(frozen=True, slots=True)
class Member(Span):
    """`"key": value` of an object; the key's text ends at `key_end`."""

    key: str
    key_end: int
    value_start: int


@dataclass(frozen=True, slots=True)
class JsonObject:
    """An object. Its values are not kept: where they are small they are cheap to read again."""

    start: int
    end: int
    members: tuple[Member, ...]

    def last(self, key: str) -> Member | None:
        """The member that counts: where a key comes twice, readers of JSON take the last."""
        return next((member for member in reversed(self.members) if member.key == key), None)


@dataclass(frozen=True, slots=True)
class Item(Span):
    """An item of an array; `fields` where it is an object."""

    fields: JsonObject | None


@dataclass(frozen=True, slots=True)
class JsonArray:
    start: int
    end: int
    items: tuple[Item, ...]


def value_at(text: str, at: int) -> tuple[Any, int]:
    """The value that begins at `at`, its numbers as text, and where it ends. Raises `JSONDecodeError`."""
    return _DECODER.raw_decode(text, at)


def object_at(text: str, at: int, end_of: Callable[[str, int], int] | None = None) -> JsonObject:
    """The object whose `{` stands at `at`. Raises `JSONDecodeError`, `TooManyItems`.

    `end_of(key, start)` passes over a member's value in place of `value_at`.
    """
    members: list[Member] = []
    lead = at + 1
    while True:
        start = skip_blanks(text, lead)
        if not members and text[start : start + 1] == "}":
            return JsonObject(at, start + 1, ())
        if len(members) == MAX_ITEMS:
            raise TooManyItems
        if text[start : start + 1] != '"':
            raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, start)
        key, key_end = value_at(text, start)
        colon = skip_blanks(text, key_end)
        if text[colon : colon + 1] != ":":
            raise json.JSONDecodeError("Expecting ':' delimiter", text, colon)
        value_start = skip_blanks(text, colon + 1)
        end = value_at(text, value_start)[1] if end_of is None else end_of(key, value_start)
        after = skip_blanks(text, end)
        members.append(Member(lead, start, end, after, key, key_end, value_start))
        if _closes(text, after, "}"):
            return JsonObject(at, after + 1, tuple(members))
        lead = after + 1


def array_at(text: str, at: int) -> JsonArray:
    """The array whose `[` stands at `at`. Raises `JSONDecodeError`, `TooManyItems`."""
    items: list[Item] = []
    lead = at + 1
    while True:
        start = skip_blanks(text, lead)
        if not items and text[start : start + 1] == "]":
            return JsonArray(at, start + 1, ())
        if len(items) == MAX_ITEMS:
            raise TooManyItems
        fields = object_at(text, start) if text[start : start + 1] == "{" else None
        end = value_at(text, start)[1] if fields is None else fields.end
        after = skip_blanks(text, end)
        items.append(Item(lead, start, end, after, fields))
        if _closes(text, after, "]"):
            return JsonArray(at, after + 1, tuple(items))
        lead = after + 1


def skip_blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return at if match is None else match.end()


def _closes(text: str, after: int, closing: str) -> bool:
    """Whether what follows an item closes the whole, or only parts it from the next."""
    if text[after : after + 1] not in (",", closing):
        raise json.JSONDecodeError("Expecting ',' delimiter", text, after)
    return text[after] == closing
