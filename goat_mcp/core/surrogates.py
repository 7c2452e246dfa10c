"""Halves of surrogate pairs, which JSON's escapes can hold and UTF-8 cannot: many readers refuse a whole message that
has one. Whether input has one is asked in `lenient_values`."""

from __future__ import annotations


def visible_surrogates(text: str) -> str:
    r"""The text with each of them as the six characters of its escape (`\ud800`), else as it is."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode()
