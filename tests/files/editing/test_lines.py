from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.files.documents.line_ends import (
    FileText,
    count_lines,
    is_line_start,
    line_end,
    line_start,
    lines_between,
    split_lines,
)
from tests.files.editing.texts import texts


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
