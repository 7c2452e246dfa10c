"""Making characters visible that would act on a terminal or hide from a reader (security.md, R-FILE-11)."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any, cast

from goat_mcp.core.errors import cut_middle

VISIBLE_RULES = 2
"""Rises when a definition of an upstream would be shown in another way than before, or rejected: what was stored under
other rules is listed again."""
_CONTROLS = bytes(byte for byte in (*range(0x20), 0x7F) if byte not in b"\t\n")
# Surrogates are not valid UTF-8; the rest reorders, hides or smuggles text, looks like a blank that is none, or is no
# character at all.
_ALWAYS = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ud800-\udfff\ufdd0-\ufdef\ufe03-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    r"\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Joiners and the variation selectors in use belong to emoji and several scripts, after a character of these. In
# a row, or among ASCII characters and blanks, they say something that nobody sees.
_JOINERS = r"\u200c\u200d"
_SELECTORS = r"\u180b-\u180d\u180f\ufe00-\ufe02\ufe0e\ufe0f"
_CARRIER = r"[^\x00-\x7f\s\u2800]"


@functools.cache  # compiling takes milliseconds, and most starts meet only ASCII
def _suspect() -> re.Pattern[str]:
    return re.compile(f"[{_ALWAYS}{_JOINERS}{_SELECTORS}]")


@functools.cache
def _hidden() -> re.Pattern[str]:
    return re.compile(
        rf"[{_ALWAYS}]|(?<=[{_JOINERS}])[{_JOINERS}{_SELECTORS}]|(?<=[{_SELECTORS}])[{_SELECTORS}]"
        rf"|(?<!{_CARRIER})(?:[{_JOINERS}](?!{_CARRIER})|[{_SELECTORS}](?!\u20e3))"
    )


def make_visible(text: str) -> str:
    """`text` with control, bidi, tag and other hidden characters as `\\x1b`, `\\u202e` or `\\U000e0041`.

    Tabs and line feeds stay. Returns the very same object if there is nothing to escape.
    """
    if text.isascii():
        # Source files are ASCII as a rule; deleting bytes is some thirty times faster than a character class.
        raw = text.encode("ascii")
        if len(raw.translate(None, _CONTROLS)) == len(raw):
            return text
    elif _suspect().search(text) is None or _hidden().search(text) is None:
        return text
    return _hidden().sub(_escape, text)


def make_lines_visible(text: str) -> str:
    """As `make_visible`, but for line ends of another system: these hide nothing."""
    if "\r\n" not in text:
        return make_visible(text)
    made = "\r\n".join(make_visible(part) for part in text.split("\r\n"))
    return text if made == text else made


def drop_hidden(text: str) -> str:
    """`text` without those characters: for text of the web, where soft hyphens and the like are no sign of anything."""
    return _hidden().sub("", text)


def _escape(hidden: re.Match[str]) -> str:
    code = ord(hidden[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_NONE: frozenset[str] = frozenset()


def make_json_visible(value: Any, opaque: frozenset[str] = _NONE) -> Any:
    """The value with every text in it visible, names of members too; the very same object if it is so already.

    What is below a member of a name in `opaque` stays as it is. Raises `RecursionError`.
    """
    if isinstance(value, str):
        return make_lines_visible(value)
    if isinstance(value, list):
        listed = cast("list[Any]", value)
        made = [make_json_visible(one, opaque) for one in listed]
        return listed if all(a is b for a, b in zip(made, listed, strict=True)) else made
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        named = {key: each if key in opaque else make_json_visible(each, opaque) for key, each in members.items()}
        keys = visible_names(members)
        if all(named[key] is members[key] and keys[key] is key for key in members):
            return members
        return {keys[key]: each for key, each in named.items()}
    return value


def visible_names(members: Mapping[str, Any]) -> dict[str, str]:
    """By name of a member, how it is shown. Of two that are one when visible, one gets a number: none is lost."""
    shown: dict[str, str] = {}
    for name in members:
        visible = made = make_lines_visible(name)
        number = 2
        while made is not name and (made in members or made in shown.values()):
            made = f"{visible} ({number})"
            number += 1
        shown[name] = made
    return shown


def hides_something(value: Any) -> bool:
    """Whether a text in it would be shown in another way than it is. One that is a carriage return hides nothing.

    Raises `RecursionError`.
    """
    if isinstance(value, str):
        return value != "\r" and make_lines_visible(value) is not value
    if isinstance(value, list):
        return any(map(hides_something, cast("list[Any]", value)))
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        return any(map(hides_something, members)) or any(map(hides_something, members.values()))
    return False


MAX_PATH_CHARS = 4096
_BREAKS = str.maketrans({"\t": "\\t", "\n": "\\n"})


def one_line(text: str, max_chars: int) -> str:
    """`text` cut in the middle, with tabs, line ends and hidden characters as escapes such as `\\t` and `\\x1b`."""
    return make_visible(cut_middle(text, max_chars)).translate(_BREAKS)


def shown_path(path: object) -> str:
    """A path in a result: its name may hold anything but `/` and NUL."""
    return one_line(str(path), MAX_PATH_CHARS)


def visible_line(text: str) -> str:
    """`text` whole, on one line, with hidden characters as escapes; tabs stay. Bytes that are no UTF-8 show as
    `\\xff`."""
    if not text.isascii():
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return make_visible(text).replace("\n", "\\n")
