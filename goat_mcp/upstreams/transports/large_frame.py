"""JSON of many MB, parsed a little at a time: an upstream's large result takes its turns like everybody else.

What a text says is for the parser of all frames to tell. Here it is only cut: an expression that knows strings and
brackets, and nothing else of JSON, takes as many whole members of a list or an object as fit into a window. A member
that is larger, or in which more lies in one another than the expression follows, is entered, and its own members are
taken in that way; a long string is decoded in pieces.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Generator
from typing import Any

RUN_BYTES = 16 * 1024
"""Of members that are parsed in one go, which takes about half a millisecond, whatever they are."""
PIECE_BYTES = 64 * 1024
"""Of a string; looking through that and decoding it takes as long."""
MAX_DEPTH = 960
"""Lists and objects in one another. In one go it ends at about as many."""
_FOLLOWED = 32
"""Levels that the expression looks into."""
_NEAR_BYTES = 4 * 1024
"""How far the end of what lies deeper is looked for bracket by bracket, where it is parsed in one go, too."""
_NEAR_DEPTH = 500
"""What lies deeper than that is entered in any case: parsing it in one go takes recursion."""
_NO_RUN_COST = RUN_BYTES // 4
_MEMBER_COST = RUN_BYTES // 64
"""In bytes of a run: looking for one where there is none, and a member that is taken by itself."""
_ESCAPE_BYTES = 6
_UP_TO_QUOTE = re.compile(rb'(?>(?:[^"\\]++|\\[^u]|\\u[0-9a-fA-F]{4})*)')
_HALF_PAIR = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
_SPACE = re.compile(rb"[ \t\r\n]*+")
_SCALAR = re.compile(rb'[^][{}",: \t\r\n]*+')
_BRACKET = re.compile(rb'"(?>(?:[^"\\]++|\\.)*)"|["[\]{}]', re.DOTALL)
_QUOTE = b'"'
_OPENS, _ENDS = b"[{", b"]}"
_CLOSERS = {b"{": b"}", b"[": b"]"}
Loads = Callable[[bytes], Any]
Steps = Generator[None, None, None]


def parsed_in_steps(line: bytes | bytearray, loads: Loads) -> Generator[None, None, Any]:
    """Returns the list or object that `line` says; between two steps others may do something. Raises `ValueError`.

    `loads` parses parts of it, each JSON by itself.
    """
    return (yield from _Reader(line, loads).whole())


class _Inside:
    """A list or an object that has been entered, with what it holds so far."""

    __slots__ = ("closer", "has_comma", "has_member", "is_list", "opener", "value")

    def __init__(self, opener: bytes) -> None:
        self.opener, self.closer = opener, _CLOSERS[opener]
        self.is_list = opener == b"["
        self.value: Any = [] if self.is_list else {}
        self.has_member = False
        """Whether the last thing in it was a member: a comma or its end comes next."""
        self.has_comma = False

    def take(self, members: Any) -> None:
        if self.is_list:
            self.value.extend(members)
        else:
            self.value.update(members)

    def add(self, name: str, value: Any) -> None:
        if self.is_list:
            self.value.append(value)
        else:
            self.value[name] = value
        self.has_member, self.has_comma = True, False


class _Reader:
    def __init__(self, line: bytes | bytearray, loads: Loads) -> None:
        self._line = line
        self._loads = loads
        self._at = 0
        self._looked_to = 0
        self._spent = 0

    def whole(self) -> Generator[None, None, Any]:
        yield from self._skip_space()
        entered = [self._enter()]
        value = entered[0].value
        while entered:
            inside = entered[-1]
            if not inside.has_member:
                yield from self._take_run(inside)
            yield from self._skip_space()
            mark = self._mark()
            if mark == inside.closer and not inside.has_comma:
                self._at += 1
                entered.pop()
            elif inside.has_member:
                if mark != b",":
                    raise self._wrong("a comma or an end is missing")
                self._at += 1
                inside.has_member, inside.has_comma = False, True
            else:
                yield from self._take_member(inside, entered)
        yield from self._skip_space()
        if self._mark():
            raise self._wrong("something comes after its end")
        return value

    def _take_run(self, inside: _Inside) -> Steps:
        begin = self._at
        found = _runs().match(self._line, begin, begin + RUN_BYTES)
        end = found.end() if found is not None else begin
        if end == begin:
            yield from self._spend(_NO_RUN_COST)
            return
        ends_with_comma = self._line[end - 1 : end] == b","
        part = self._loads(inside.opener + self._line[begin : end - ends_with_comma] + inside.closer)
        if ends_with_comma and not part:
            raise self._wrong("a member is missing")
        self._at = end
        if part:
            inside.take(part)
            inside.has_member, inside.has_comma = not ends_with_comma, ends_with_comma
        yield from self._spend(end - begin)

    def _take_member(self, inside: _Inside, entered: list[_Inside]) -> Steps:
        """One that is no part of a run: it is entered, or taken in pieces."""
        yield from self._spend(_MEMBER_COST)
        name = ""
        if not inside.is_list:
            name = yield from self._string()
            yield from self._skip_space()
            if self._mark() != b":":
                raise self._wrong("a colon is missing")
            self._at += 1
            yield from self._skip_space()
        mark = self._mark()
        if mark in _CLOSERS and (end := self._near_end(MAX_DEPTH - len(entered))):
            part = bytes(self._line[self._at : end])
            self._at = end
            inside.add(name, self._loads(part))
            yield from self._spend(_NEAR_BYTES)
        elif mark in _CLOSERS:
            entered.append(self._enter())
            if len(entered) > MAX_DEPTH:
                raise self._wrong("it is nested too deeply")
            inside.add(name, entered[-1].value)
        elif mark == _QUOTE:
            inside.add(name, (yield from self._string()))
        else:
            inside.add(name, (yield from self._scalar()))

    def _near_end(self, max_depth: int) -> int:
        """Where the list or object ends that begins here; 0 where that is far. No byte is looked at twice for that."""
        if self._at < self._looked_to:
            return 0
        depth = 0
        for found in _BRACKET.finditer(self._line, self._at, self._at + _NEAR_BYTES):
            self._looked_to = found.end()
            mark = self._line[found.start()]
            if mark in _OPENS:
                depth += 1
                if depth > min(max_depth, _NEAR_DEPTH):
                    return 0
            elif mark in _ENDS:
                depth -= 1
                if not depth:
                    return found.end()
            elif found.end() - found.start() == 1:
                return 0  # a string that ends farther on
        return 0

    def _enter(self) -> _Inside:
        mark = self._mark()
        if mark not in _CLOSERS:
            raise self._wrong("it is no list and no object")
        self._at += 1
        return _Inside(mark)

    def _string(self) -> Generator[None, None, str]:
        if self._mark() != _QUOTE:
            raise self._wrong("a name is missing")
        self._at += 1
        pieces: list[str] = []
        while True:
            end = _piece_end(self._line, self._at)
            if end > self._at:
                pieces.append(self._loads(_QUOTE + self._line[self._at : end] + _QUOTE))
                yield from self._spend((end - self._at) // (PIECE_BYTES // RUN_BYTES))
            if self._line[end : end + 1] == _QUOTE:
                self._at = end + 1
                return "".join(pieces)
            if end in (self._at, len(self._line)):
                raise self._wrong("a string does not end, or has a broken escape")
            self._at = end

    def _scalar(self) -> Generator[None, None, Any]:
        begin = self._at
        yield from self._pass(_SCALAR)
        return self._loads(bytes(self._line[begin : self._at]))

    def _skip_space(self) -> Steps:
        yield from self._pass(_SPACE)

    def _pass(self, what: re.Pattern[bytes]) -> Steps:
        while True:
            found = what.match(self._line, self._at, self._at + RUN_BYTES)
            begin, self._at = self._at, found.end() if found is not None else self._at
            if self._at - begin < RUN_BYTES:
                return
            yield from self._spend(RUN_BYTES)

    def _mark(self) -> bytes:
        return bytes(self._line[self._at : self._at + 1])

    def _spend(self, cost: int) -> Steps:
        self._spent += cost
        if self._spent >= RUN_BYTES:
            self._spent = 0
            yield

    def _wrong(self, why: str) -> ValueError:
        return ValueError(f"{why} at byte {self._at}")


@functools.cache
def _runs() -> re.Pattern[bytes]:
    """What matches whole members, each with the comma after it; the last one before the end of what they are in."""
    string = rb'"(?>(?:[^"\\]++|\\.)*)"'
    inside = rb'(?>(?:[^][{}"]++|' + string + rb")*)"
    for _ in range(_FOLLOWED):
        inside = rb'(?>(?:[^][{}"]++|' + string + rb"|[\[{]" + inside + rb"[\]}])*)"
    member = rb'(?>(?:[^][{}",]++|' + string + rb"|[\[{]" + inside + rb"[\]}])+)"
    return re.compile(rb"(?>(?:" + member + rb"(?:,|(?=[\]}])))*)", re.DOTALL)


def _piece_end(line: bytes | bytearray, begin: int) -> int:
    """Where a piece of a string ends that begins here: at its closing quote, or between two characters."""
    limit = begin + PIECE_BYTES
    found = _UP_TO_QUOTE.match(line, begin, limit)
    end = found.end() if found is not None else begin
    if end < limit - _ESCAPE_BYTES or end >= len(line):
        return end
    while end > begin and line[end] & 0xC0 == 0x80:  # inside a character of several bytes
        end -= 1
    half = _HALF_PAIR.search(line, max(begin, end - _ESCAPE_BYTES), end)
    if half is None or half.start() == begin:
        return end
    before = line[begin : half.start()]
    is_text = (len(before) - len(before.rstrip(b"\\"))) % 2  # of a backslash that is itself escaped
    return end if is_text else half.start()
