"""What is kept of an output, in memory and in its file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.processes import output_capture
from goat_mcp.processes.output_capture import MEMORY_BYTES, TAIL_BYTES, OutputCapture, cut, readable, whole_characters


@pytest.fixture
def capture(tmp_path: Path) -> OutputCapture:
    def create(stem: str) -> tuple[Path, int]:
        path = tmp_path / f"{stem}.txt"
        return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)

    return OutputCapture(create)


def test_a_short_output_needs_no_file(capture: OutputCapture) -> None:
    capture.add(b"one\n")
    capture.add(b"two\n")

    assert capture.shown(100).text == "one\ntwo"
    assert capture.path is None


def test_an_output_longer_than_may_be_shown_is_put_into_a_file_that_the_text_names(capture: OutputCapture) -> None:
    data = b"0123456789\n" * 1000
    capture.add(data)
    capture.close()

    part = capture.shown(1_000)

    assert part.truncated
    assert capture.path is not None and str(capture.path) in part.text
    assert capture.path.read_bytes() == data
    assert len(part.text) <= 1_000


def test_memory_stays_bounded_and_the_file_is_whole(capture: OutputCapture) -> None:
    chunk = bytes(range(32, 127)) * 1000
    for _ in range(100):
        capture.add(chunk)

    held = len(capture._recent)  # pyright: ignore[reportPrivateUsage]  # the bound is the property
    assert held <= max(MEMORY_BYTES, 2 * TAIL_BYTES) + len(chunk)
    assert capture.path is not None and capture.path.read_bytes() == chunk * 100


def test_of_a_huge_output_head_and_tail_are_shown(capture: OutputCapture) -> None:
    capture.add(b"first line\n")
    for _ in range(40):
        capture.add(b"x" * 99_999 + b"\n")
    capture.add(b"last line\n")

    text = capture.shown(30_000).text

    assert text.startswith("first line\n") and text.endswith("\nlast line")
    assert 29_000 < len(text) <= 30_000


def test_the_file_keeps_its_first_bytes_only_and_the_text_says_so(
    capture: OutputCapture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_capture, "KEPT_BYTES", 1_000_000)
    for _ in range(30):
        capture.add(b"y" * 100_000)

    text = capture.shown(1_000).text

    assert capture.path is not None and capture.path.stat().st_size == 1_000_000
    assert "the first 1000000 of 3000000 bytes are in" in text


def test_parts_read_one_after_the_other_are_the_whole(capture: OutputCapture) -> None:
    text = "z\u00e9ro \u4e2d\n" * 30_000
    data, at, seen = text.encode(), 0, ""
    for start in range(0, len(data), 7_001):
        capture.add(data[start : start + 7_001])
        part = capture.shown(20_000, at, complete=False)
        at, seen = part.end, seen + part.text + "\n"

    assert seen.replace("\n", "") == text.replace("\n", "")


def test_a_full_disk_is_reported_and_stops_nothing(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    capture = OutputCapture(lambda stem: (tmp_path / stem, os.open("/dev/full", os.O_WRONLY)))

    capture.add(b"x" * (MEMORY_BYTES + 1))

    assert "No space left on device" in capture.shown(1_000).text


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
