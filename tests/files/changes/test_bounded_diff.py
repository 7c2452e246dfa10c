from __future__ import annotations

import difflib
import time

import pytest

from goat_mcp.files.changes.bounded_diff import bounded_diff


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\nb\nc\n", "a\nB\nc\n"),
        ("".join(f"{n}\n" for n in range(100)), "".join(f"{n if n != 50 else 'x'}\n" for n in range(100))),
        ("".join(f"{n}\n" for n in range(100)), "".join(f"{n}\n" for n in range(100) if n not in (20, 60, 61))),
        ("a\na\na\na\na\na\na\na\n", "a\na\na\na\na\na\na\na\na\n"),
        ("", "new\n"),
        ("gone\n", ""),
        ("".join(f"{n}\n" for n in range(10)), "x\n" + "".join(f"{n}\n" for n in range(10))),
    ],
)
def test_it_is_the_unified_diff_of_the_whole_files(old: str, new: str) -> None:
    whole = list(difflib.unified_diff(old.splitlines(), new.splitlines(), "f", "f", lineterm=""))

    assert bounded_diff(old.encode(), new.encode(), "f", 100_000).splitlines()[2:] == whole[2:]


def test_one_changed_line_of_a_million_is_found_fast() -> None:
    lines = [f"line {n}\n" for n in range(1_000_000)]
    old = "".join(lines).encode()
    lines[500_000] = "other\n"

    started_s = time.process_time()
    shown = bounded_diff(old, "".join(lines).encode(), "f", 1000)

    assert shown.splitlines()[5:7] == ["-line 500000", "+other"] or "-line 500000" in shown
    assert time.process_time() - started_s < 20


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        (b"\xff\xfe\x00", b"abc", "f: not UTF-8 text; 3 bytes become 3"),
        (b"a\r\n", b"a\n", "f: only line ends change"),
        (b"a\n" * 30_000, b"b\n" * 30_000, "f: 30,000 lines become 30,000, from line 1 on; too many to show"),
    ],
)
def test_what_is_no_readable_diff_is_told_in_words(old: bytes, new: bytes, shown: str) -> None:
    assert bounded_diff(old, new, "f", 1000) == shown


def test_a_long_diff_says_how_much_is_missing() -> None:
    shown = bounded_diff(b"", b"x" * 5000, "f", 100)

    assert shown.splitlines()[-1].startswith("[... ")
