"""A file's name as git prints it: plain, or, where it holds other than ASCII, in quotes with escapes as in C.

Source: git-config(1), core.quotePath.
"""

from __future__ import annotations

import re

_QUOTED = re.compile(r'"(?P<inside>(?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\(?:(?P<octal>[0-7]{3})|(?P<letter>.))")
_LETTERS = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
_PREFIX = re.compile(r'"?(?P<prefix>[abciwo]/)')


def plain_name(name: str) -> str:
    """The name itself. One that is no text, or would be more than a line, keeps its quotes."""
    quoted = _QUOTED.fullmatch(name)
    if quoted is None:
        return name
    try:
        decoded = _ESCAPE.sub(_unescaped, quoted["inside"].encode()).decode()
    except (UnicodeError, ValueError):
        return name
    return decoded if decoded.isprintable() else name


def without_prefix(name: str) -> str:
    """The plain name behind `a/`, `b/` or another letter that git puts before it."""
    prefix = _PREFIX.match(name)
    return plain_name(name[: prefix.start("prefix")] + name[prefix.end() :] if prefix else name)


def _unescaped(escape: re.Match[bytes]) -> bytes:
    if octal := escape["octal"]:
        return bytes([int(octal, 8)])
    return _LETTERS.get(escape["letter"], escape["letter"])
