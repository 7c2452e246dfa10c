"""Which characters are shown escaped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.files.documents.visible_text import make_visible


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("\x00", "\\x00"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x7f", "\\x7f"),
        ("\x9b", "\\x9b"),
        ("\r", "\\x0d"),
        ("\u202e", "\\u202e"),
        ("\u2066", "\\u2066"),
        ("\u200b", "\\u200b"),
        ("\u2028", "\\u2028"),
        ("\ufeff", "\\ufeff"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("\U000e0101", "\\U000e0101"),
    ],
)
def test_controls_bidi_tags_and_halves_of_pairs_are_escaped(hidden: str, shown: str) -> None:
    assert make_visible(f"a{hidden}b") == f"a{shown}b"


@pytest.mark.parametrize("text", ["", "a\tb\nc", "café 日本語", "👩\u200d💻", "क\u094d\u200dष", "❤\ufe0f"])
def test_ordinary_text_stays_the_same_object(text: str) -> None:
    assert make_visible(text) is text


@given(st.text(st.characters()))
def test_what_comes_out_is_valid_utf_8_without_controls(text: str) -> None:
    shown = make_visible(text)

    shown.encode("utf-8")
    assert not any(ord(character) < 0x20 and character not in "\t\n" for character in shown)
