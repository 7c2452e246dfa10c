"""Make characters visible that would act on a terminal or hide from a reader (security.md, R-FILE-11)."""

from __future__ import annotations

import re

_CONTROLS = bytes(byte for byte in (*range(0x20), 0x7F) if byte not in b"\t\n")
# Surrogates are not valid UTF-8; the rest reorders, hides or smuggles text. Joiners (U+200C, U+200D) and
# variation selectors 1-16 stay: emoji and several scripts need them.
_HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def make_visible(text: str) -> str:
    """`text` with control, bidi, tag and other hidden characters as `\\x1b`, `\\u202e` or `\\U000e0041`.

    Tabs and line feeds stay. Returns the very same object where there is nothing to escape.
    """
    if text.isascii():
        # Source files are ASCII as a rule; deleting bytes is some thirty times faster than a character class.
        raw = text.encode("ascii")
        if len(raw.translate(None, _CONTROLS)) == len(raw):
            return text
    elif _HIDDEN.search(text) is None:
        return text
    return _HIDDEN.sub(_escape, text)


def drop_hidden(text: str) -> str:
    """`text` without those characters: for text of the web, where soft hyphens and the like are no sign of anything."""
    return _HIDDEN.sub("", text)


def _escape(hidden: re.Match[str]) -> str:
    code = ord(hidden[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
