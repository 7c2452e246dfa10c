"""Which characters end a line."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.files.documents.line_ends import Eol, line_ending, split_lines


def test_only_crlf_lf_and_cr_end_a_line() -> None:
    assert split_lines("a\r\nb\rc\nd\x0be\x0cf\x85g\u2028h") == ["a\r\n", "b\r", "c\n", "d\x0be\x0cf\x85g\u2028h"]


@pytest.mark.parametrize(("text", "lines"), [("", []), ("\n", ["\n"]), ("a\n", ["a\n"]), ("\r\r\n", ["\r", "\r\n"])])
def test_there_is_no_phantom_last_line(text: str, lines: list[str]) -> None:
    assert split_lines(text) == lines


@given(st.text(st.sampled_from("ab\r\n\x0c\u2028")))
def test_lines_join_to_the_text_and_agree_with_the_definition(text: str) -> None:
    lines = split_lines(text)

    assert lines == re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)
    assert "".join(lines) == text


@pytest.mark.parametrize(
    ("text", "eol"),
    [("", "none"), ("a", "none"), ("a\n", "lf"), ("a\r\nb", "crlf"), ("a\rb\r", "cr"), ("a\r\nb\n", "mixed")],
)
def test_a_text_has_one_line_ending_or_a_mix(text: str, eol: Eol) -> None:
    assert line_ending(text) == eol
