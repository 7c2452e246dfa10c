"""What a changed record shows, and what it cannot show by itself (R-AUDIT-3)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from goat_mcp.calls.audit.chain import NO_LINE, hash_of, rotated_files
from goat_mcp.calls.audit.verify import InvalidHead, Verification, parse_head, verify
from tests.calls.audit.records import write_calls

COUNT = 6
Change = Callable[[list[bytes], int], list[bytes]]


def edited(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[:at], lines[at].replace(b'"Read"', b'"Grep"'), *lines[at + 1 :]]


def deleted(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[:at], *lines[at + 1 :]]


def doubled(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[: at + 1], *lines[at:]]


def swapped(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]


def added(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[:at], b"{}\n", *lines[at:]]


def changed(tmp_path: Path, change: Change, at: int) -> Verification:
    path = tmp_path / "audit.jsonl"
    write_calls(path, COUNT)
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True), at)))
    return verify(path)


@pytest.mark.parametrize("at", range(2 * COUNT - 1))
@pytest.mark.parametrize(
    ("change", "named", "problem"),
    [
        (edited, 0, "is not as it was written"),
        (deleted, 0, "missing"),
        (doubled, 1, "it is not in its place"),
        (swapped, 0, "missing"),
        (added, 0, "is not a line of a record"),
    ],
)
def test_the_changed_line_is_named(tmp_path: Path, change: Change, named: int, problem: str, at: int) -> None:
    found = changed(tmp_path, change, at)

    assert found.bad is not None
    assert found.bad.location == f"audit.jsonl:{at + 1 + named}"
    assert problem in found.bad.problem


def test_an_edited_line_with_a_new_hash_behind_it_moves_the_break_and_does_not_mend_it(tmp_path: Path) -> None:
    def rehashed(lines: list[bytes], at: int) -> list[bytes]:
        lines = edited(lines, at)
        following = json.loads(lines[at + 1]) | {"prev": hash_of(lines[at][:-1])}
        return [*lines[: at + 1], json.dumps(following).encode() + b"\n", *lines[at + 2 :]]

    found = changed(tmp_path, rehashed, 3)

    assert found.bad is not None and found.bad.location == "audit.jsonl:5"


def test_a_false_mark_does_not_cover_a_removed_line(tmp_path: Path) -> None:
    def covered(lines: list[bytes], at: int) -> list[bytes]:
        mark = {"seq": at + 1, "prev": hash_of(b"{"), "event": "gap", "reason": "torn", "torn_bytes": 1}
        return [*lines[:at], b"{\n", json.dumps(mark).encode() + b"\n", *lines[at + 1 :]]

    found = changed(tmp_path, covered, 3)

    assert found.bad is not None and found.bad.location == "audit.jsonl:5"


def test_a_cut_tail_shows_against_a_head_that_was_kept_and_only_then(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_calls(path, COUNT)
    head = verify(path).head
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))

    assert verify(path).bad is None
    bad = verify(path, expected=parse_head(head)).bad
    assert bad is not None and "the head that was kept is not in the record" in bad.problem
    assert bad.location == f"audit.jsonl:{2 * COUNT - 1}"


def test_a_record_that_grew_still_holds_the_head_that_was_kept(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_calls(path, 3)
    head = verify(path).head
    write_calls(path, 3)

    assert verify(path, expected=parse_head(head)).bad is None
    assert verify(path, expected=parse_head(head.partition(":")[2])).bad is None
    wrong_number = verify(path, expected=parse_head("5:" + head.partition(":")[2]))
    assert wrong_number.bad is not None


def test_a_rewritten_record_shows_against_a_head_that_was_kept(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_calls(path, 3)
    head = verify(path).head
    path.unlink()
    write_calls(path, 5, first=10)

    assert verify(path).bad is None
    assert verify(path, expected=parse_head(head)).bad is not None


@pytest.mark.parametrize("text", ["", "abc", "1:" + "g" * 64, "x:" + "0" * 64, "-1:" + "0" * 64])
def test_what_is_no_head_is_said_so(text: str) -> None:
    with pytest.raises(InvalidHead):
        parse_head(text)


@pytest.fixture
def rotated(tmp_path: Path) -> Path:
    path = tmp_path / "audit.jsonl"
    write_calls(path, 100, max_bytes=5_000, kept_files=4)
    assert len(rotated_files(path)) == 4
    assert verify(path).bad is None
    return path


@pytest.mark.parametrize("which", range(4))
def test_a_missing_file_shows(rotated: Path, which: int) -> None:
    rotated_files(rotated)[which][1].unlink()

    assert verify(rotated).bad is not None


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("count", [1, 2, -1])
def test_AU_12_a_kept_file_without_its_head_or_tail_shows(rotated: Path, which: int, count: int) -> None:
    file = rotated_files(rotated)[which][1]
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[count:] if count > 0 else lines[:count]))

    found = verify(rotated)

    assert found.bad is not None
    after = [*(file.name for _, file in rotated_files(rotated)), rotated.name][which + (count < 0)]
    assert found.bad.location == f"{after}:1"


def test_files_in_exchanged_places_show(rotated: Path) -> None:
    (_, first), (_, second), *_ = rotated_files(rotated)
    first.rename(rotated.with_name("x"))
    second.rename(first)
    rotated.with_name("x").rename(second)

    assert verify(rotated).bad is not None


def test_the_number_of_kept_files_may_be_changed(rotated: Path) -> None:
    write_calls(rotated, 100, max_bytes=5_000, kept_files=2)
    assert (len(rotated_files(rotated)), verify(rotated).bad) == (2, None)

    write_calls(rotated, 100, max_bytes=5_000, kept_files=9)
    assert (len(rotated_files(rotated)), verify(rotated).bad) == (9, None)


def test_an_empty_record_is_intact_and_a_missing_one_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    with pytest.raises(FileNotFoundError):
        verify(path)
    path.touch()
    assert (verify(path).bad, verify(path).head) == (None, "")


@pytest.mark.parametrize("junk", [b"\0" * 300_000, b"[" * 100_000, b"null\n", b'{"seq":true}\n', b"\xff\xfe\n"])
def test_any_bytes_are_a_finding_and_no_crash(tmp_path: Path, junk: bytes) -> None:
    path = tmp_path / "audit.jsonl"
    write_calls(path, 1)
    path.write_bytes(junk + path.read_bytes())

    assert verify(path).bad is not None
    write_calls(path, 1)  # and writing goes on
    assert NO_LINE not in path.read_text("latin-1").splitlines()[-1]


def test_lines_that_were_kept_as_heads_must_be_there(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_calls(path, COUNT)
    lines = path.read_bytes().splitlines(keepends=True)
    heads = [f"{number}:{hash_of(line[:-1])}" for number, line in enumerate(lines, 1)]

    whole = verify(path, anchors=heads)
    other = verify(path, anchors=[f"3:{hash_of(b'other')}"])
    path.write_bytes(b"".join(lines[:-2]))
    cut = verify(path, anchors=heads)
    alone = verify(path)

    assert whole.is_intact and "as in 12 heads" in whole.in_words
    assert other.bad is not None and other.bad.location.endswith(":3")
    assert cut.bad is not None and "number 12 was kept: cut" in cut.bad.problem
    assert alone.is_intact
