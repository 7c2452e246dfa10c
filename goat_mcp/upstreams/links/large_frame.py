"""JSON of many MB, parsed a little at a time: an upstream's large result takes its turns like everybody else.

What is large in a result is nearly always a few long strings: a file, a picture. These are decoded in pieces, and the
rest in one go. Where there are many small values instead, all of it is parsed in one go: there is no parser that would
stop half-way, and in a thread it would hold the interpreter's lock as long.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Generator, Mapping
from typing import Any, cast

PIECE_BYTES = 64 * 1024
"""Of a string; looking through that and decoding it takes about half a millisecond."""
_LONG_BYTES = PIECE_BYTES // 2
"""Of a string that is decoded by itself: what goes on after its first piece is always one."""
_MAX_SHORT = 2_000
"""Strings that are not long. With more of them looking for the long ones would cost more than it saves."""
_ESCAPE_BYTES = 6
_UP_TO_QUOTE = re.compile(rb'(?:[^"\\]++|\\[^u]|\\u[0-9a-fA-F]{4})*+')
_HALF_PAIR = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
_QUOTE = b'"'
Loads = Callable[[bytes | bytearray], Any]


def parsed_in_steps(line: bytes | bytearray, loads: Loads) -> Generator[None, None, Any]:
    """Returns what `loads(line)` does, or raises what it does; between two steps others may do something."""
    nonce = secrets.token_hex(8)
    long: dict[str, str] = {}
    skeleton: list[bytes] = []
    short = taken = at = 0
    while (begin := line.find(_QUOTE, at) + 1) > 0:
        end = begin
        pieces: list[str] = []
        while True:
            stop = _piece_end(line, end)
            if stop >= len(line) or (stop == end and line[stop : stop + 1] != _QUOTE):
                return loads(line)  # a string without an end, or with a broken escape: it says what is wrong
            if stop - begin >= _LONG_BYTES:
                pieces.append(loads(_QUOTE + line[end:stop] + _QUOTE))
                yield
            end = stop
            if line[end : end + 1] == _QUOTE:
                break
        if pieces:
            name = f"{nonce}:{len(long)}"
            long[name] = "".join(pieces)
            skeleton += (bytes(line[taken:begin]), name.encode())
            taken = end
        else:
            short += 1
            if short > _MAX_SHORT:
                return loads(line)
        at = end + 1
    skeleton.append(bytes(line[taken:]))
    return _filled(loads(b"".join(skeleton)), long)


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


def _filled(value: Any, long: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return long.get(value, value)
    if isinstance(value, dict):
        named = cast("dict[str, Any]", value)
        return {long.get(name, name): _filled(inner, long) for name, inner in named.items()}
    if isinstance(value, list):
        return [_filled(inner, long) for inner in cast("list[Any]", value)]
    return value
