"""A terminal program's bytes as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.processes.output_capture import cut, readable, whole_characters


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain\n", "plain\n"),
        (b"\x1b[31mred\x1b[0m \x1b[1;32mgreen\x1b[m", "red green"),
        (b"\x1b]0;title\x07text \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "text link"),
        (b"10%\r20%\r100%\ndone\n", "100%\ndone\n"),
        (b"10%\r100%\r", "100%"),
        (b"dos\r\nlines\r\r\n", "dos\nlines\n"),
        (b"spin |\b/\b-\b ok", "spin  ok"),
        (b"\xff\xfe\x00ok", "\ufffd\ufffd\\x00ok"),
        ("a\u202eb\U000e0041".encode(), "a\\u202eb\\U000e0041"),
        ("\u00e9\u4e2d\U0001f600\tx".encode(), "\u00e9\u4e2d\U0001f600\tx"),
        (b"\x1b alone \x07", "\\x1b alone \\x07"),
    ],
)
def test_what_a_reader_sees_of_it(data: bytes, text: str) -> None:
    assert readable(data) == text


@given(st.binary(max_size=300))
def test_any_bytes_become_text_without_controls(data: bytes) -> None:
    text = readable(data)

    text.encode("utf-8")
    assert not [character for character in text if ord(character) < 32 and character not in "\n\t"]


@given(st.text(max_size=50), st.integers(min_value=0, max_value=3))
def test_an_unfinished_character_is_left_for_later(text: str, missing: int) -> None:
    data = text.encode()
    first = data[: len(data) - missing]

    split = whole_characters(first)

    assert first[:split].decode() == text[: len(first[:split].decode())]
    assert len(first) - split < 4


def test_a_cut_keeps_two_fifths_of_the_head_and_says_how_much_is_gone() -> None:
    shown = cut("h" * 5_000 + "t" * 5_000, 1_000, "; all in F")

    head, mark, tail = shown.split("\n")
    assert mark.startswith("[... ") and mark.endswith(" characters cut; all in F ...]")
    assert int(mark.split()[1]) == 10_000 - len(head) - len(tail)
    assert len(shown) <= 1_000
    assert abs(len(head) / (len(head) + len(tail)) - 0.4) < 0.01
    assert (set(head), set(tail)) == ({"h"}, {"t"})
