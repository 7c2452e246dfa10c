"""Which characters end a line, in text and in bytes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.files.documents.line_ends import (
    Eol,
    FileText,
    count_lines,
    is_line_start,
    line_end,
    line_ending,
    line_start,
    lines_between,
    split_lines,
)
from tests.files.editing.texts import texts


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


@given(texts("ab\u00e9"), st.data())
def test_every_offset_lies_in_the_line_that_splitting_says(text: str, data: st.DataObject) -> None:
    content = text.encode()
    at = data.draw(st.integers(0, max(0, len(content) - 1)))
    starts = [0]
    for line in split_lines(text):
        starts.append(starts[-1] + len(line.encode()))
    expected = max(start for start in starts if start <= at and (start < len(content) or start == 0))

    found = line_start(content, at)

    assert found == expected
    end, after = line_end(content, at)
    line = next(iter(lines_between(content, found, len(content))), b"")
    assert (end, after) == (found + len(line.rstrip(b"\r\n")), found + len(line))


@given(texts("ab"))
def test_lines_are_those_of_the_text(text: str) -> None:
    content = text.encode()

    lines = list(lines_between(content, 0, len(content)))

    assert lines == [line.encode() for line in split_lines(text)]
    assert count_lines(content) == len(lines)
    starts = [at for at in range(len(content)) if is_line_start(content, at)]
    assert starts == [sum(map(len, lines[:index])) for index in range(len(lines))]


def test_long_lines_are_measured_in_steps() -> None:
    content = b"first\r\n" + b"x" * 10_000 + b"\r\nlast"

    assert line_start(content, 9_000) == 7
    assert line_end(content, 20) == (10_007, 10_009)


def test_the_line_end_all_lines_share() -> None:
    shared = {
        text: FileText(text).line_end for text in (b"", b"a", b"a\nb\n", b"a\r\nb", b"a\rb\r", b"a\r\nb\n", b"\r\n\r")
    }

    assert shared == {
        b"": b"",
        b"a": b"",
        b"a\nb\n": b"\n",
        b"a\r\nb": b"\r\n",
        b"a\rb\r": b"\r",
        b"a\r\nb\n": None,
        b"\r\n\r": None,
    }
