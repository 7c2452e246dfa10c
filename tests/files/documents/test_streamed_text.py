"""A file read block by block shows the same as one read whole."""

from __future__ import annotations

import codecs
import hashlib
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.files.documents.excerpt import Excerpt, excerpt_of_text
from goat_mcp.files.documents.streamed_text import (
    IndexKey,
    LineIndex,
    LineIndexes,
    LinesNotReached,
    ReadLimits,
    excerpt_of_stream,
)
from goat_mcp.files.documents.text_encoding import decode_text

MAX_CHARS = 10_000


@contextmanager
def opened(data: bytes) -> Generator[int]:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        yield file.fileno()


def in_time(offset: int | None = None, limit: int = 2000) -> ReadLimits:
    return ReadLimits(offset, limit, MAX_CHARS, deadline_s=time.monotonic() + 30)


def streamed(data: bytes, limits: ReadLimits, block_bytes: int = 8) -> Excerpt:
    with opened(data) as descriptor:
        return excerpt_of_stream(descriptor, LineIndex(data[:64], len(data), block_bytes=block_bytes), limits)


LINES = st.lists(
    st.tuples(st.text(st.sampled_from("aé漢😀\x0c\u2028"), max_size=9), st.sampled_from(["\n", "\r\n", "\r"]))
)
CODECS = st.sampled_from(
    [
        ("utf-8", b""),
        ("utf-8", codecs.BOM_UTF8),
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("utf-32-le", codecs.BOM_UTF32_LE),
        ("utf-32-be", codecs.BOM_UTF32_BE),
    ]
)


@given(LINES, st.text("ab", max_size=3), CODECS, st.integers(-12, 12), st.integers(1, 9), st.sampled_from([4, 8, 64]))
def test_any_excerpt_is_the_same_streamed_and_in_memory(
    lines: list[tuple[str, str]], end: str, codec: tuple[str, bytes], offset: int, limit: int, block_bytes: int
) -> None:
    data = codec[1] + ("".join(line + eol for line, eol in lines) + end).encode(codec[0])

    found = streamed(data, in_time(offset, limit), block_bytes)

    assert found == excerpt_of_text(decode_text(data), offset, limit, MAX_CHARS)


@pytest.mark.parametrize("block_bytes", [4, 8])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("line", ["abc", "ab", "a", ""])
def test_a_crlf_split_between_blocks_is_one_line_end(line: str, encoding: str, block_bytes: int) -> None:
    data = "".join(f"{line}\r\n{line}{number}\r\n" for number in range(10)).encode(encoding)

    for offset in range(1, 22):
        found = streamed(data, in_time(offset, limit=3), block_bytes)

        assert found == excerpt_of_text(decode_text(data), offset, 3, MAX_CHARS)


@given(st.binary(max_size=60))
def test_the_index_knows_the_hash_and_whether_all_is_utf_8(data: bytes) -> None:
    with opened(data) as descriptor:
        index = LineIndex(data[:4], len(data), block_bytes=4)
        index.scan(descriptor, go_on=lambda _: True)

    assert index.sha256 == hashlib.sha256(data).hexdigest()
    if not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)):
        assert index.format(None) == decode_text(data).format


def test_a_long_line_is_measured_but_only_its_start_is_kept() -> None:
    data = b"short\n" + b"x" * 50_000 + "é".encode() * 10 + b"\nlast"

    found = streamed(data, in_time(), block_bytes=1024)

    assert [len(line) for line in found.lines] == [5, 2000, 4]
    assert found.cut_lengths == {1: 50_010}
    assert found.is_last_line_measured


def test_a_scan_that_stopped_goes_on_where_it_was() -> None:
    data = b"".join(b"%d\n" % number for number in range(1, 101))
    index = LineIndex(data[:4], len(data), block_bytes=8)

    with opened(data) as descriptor:
        index.scan(descriptor, go_on=lambda so_far: so_far.lines_ended < 50)
        stopped_at = index.scanned_bytes
        index.scan(descriptor, go_on=lambda _: True)

    assert 0 < stopped_at < len(data)
    assert (index.total_lines, index.is_complete, index.eol) == (100, True, "lf")
    assert index.sha256 == hashlib.sha256(data).hexdigest()


def test_lines_past_the_deadline_are_not_reached_and_the_total_is_a_lower_bound() -> None:
    data = b"line\n" * 1000
    late = replace(in_time(limit=3), deadline_s=time.monotonic() - 1)

    with opened(data) as descriptor:
        index = LineIndex(data[:4], len(data), block_bytes=8)
        with pytest.raises(LinesNotReached):
            excerpt_of_stream(descriptor, index, replace(late, offset=900))
        with pytest.raises(LinesNotReached):
            excerpt_of_stream(descriptor, index, replace(late, offset=-1))
        found = excerpt_of_stream(descriptor, index, late)

    assert list(found.lines) == ["line"] * 3
    assert not found.is_counted
    assert not found.is_whole


def test_a_cancelled_read_stops_counting() -> None:
    data = b"line\n" * 1000
    limits = in_time(offset=900)
    limits.stop.set()

    with pytest.raises(LinesNotReached):
        streamed(data, limits)


def test_the_index_of_an_unchanged_file_is_kept_and_that_of_a_changed_one_is_new() -> None:
    indexes = LineIndexes()
    long_ago_ns = time.time_ns() - 10**9
    key = IndexKey("/f", 1, 2, 3, long_ago_ns, long_ago_ns)

    index = indexes.of(key, b"abc")

    assert indexes.of(key, b"abc") is index
    assert indexes.of(replace(key, size=4), b"abcd") is not index
    assert indexes.of(replace(key, ctime_ns=long_ago_ns + 1), b"abc") is not index


def test_the_index_of_a_file_changed_just_now_is_not_kept() -> None:
    indexes = LineIndexes()
    just_now = IndexKey("/f", 1, 2, 3, time.time_ns() + 10**9, 0)

    assert indexes.of(just_now, b"abc") is not indexes.of(just_now, b"abc")


def test_only_the_files_read_last_are_remembered() -> None:
    indexes = LineIndexes()
    first = indexes.of(IndexKey("/0", 1, 0, 3, 0, 0), b"abc")

    for inode in range(1, 40):
        indexes.of(IndexKey(f"/{inode}", 1, inode, 3, 0, 0), b"abc")

    assert indexes.of(IndexKey("/0", 1, 0, 3, 0, 0), b"abc") is not first
