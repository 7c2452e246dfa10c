"""Read: text as a model gets it, the words of refusals, and what the session remembers.

Ids such as read-002 and FS-16 are those of the example cases.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.settings import FileOptions
from goat_mcp.state.sessions import ReadRecord
from tests.tools.reading import Desk

pytestmark = pytest.mark.anyio

TEN_LINES = "".join(f"line {number}\n" for number in range(1, 11))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    folder = tmp_path / "ws"
    folder.mkdir()
    return Desk(folder)


async def test_lines_come_numbered_without_padding_and_without_a_phantom_last_line(desk: Desk) -> None:
    result = await desk.read(desk.file("f.txt", TEN_LINES))

    assert result.text == "".join(f"{number}\tline {number}\n" for number in range(1, 11)).rstrip("\n")
    assert result.facts == {
        "start_line": 1,
        "end_line": 10,
        "total_lines": 10,
        "truncated": False,
        "encoding": "utf-8",
        "eol": "lf",
    }


@pytest.mark.parametrize(
    ("arguments", "first", "last"),
    [
        pytest.param({"offset": " +3", "limit": "2"}, 3, 4, id="read-015 numbers as text"),
        pytest.param({"offset": 0, "limit": 1}, 1, 1, id="0 is the first line"),
        pytest.param({"offset": -2}, 9, 10, id="negative counts from the end"),
        pytest.param({"offset": -50, "limit": 2}, 1, 2, id="more lines than there are, from the end"),
        pytest.param({"offset": 9, "limit": 100}, 9, 10, id="limit past the end"),
        pytest.param({"start_line": 2, "end_line": 3}, 2, 3, id="goa: end_line is included"),
        pytest.param({"startLine": "2", "endLine": "2"}, 2, 2, id="goa in camel case, as text"),
        pytest.param({"end_line": 2}, 1, 2, id="goa: end_line alone"),
        pytest.param({"start_line": 3, "end_line": 8, "max_lines": 2}, 3, 4, id="goa: both bounds hold"),
        pytest.param({"max_bytes": 17}, 1, 2, id="goa: max_bytes"),
        pytest.param({"offset": None, "limit": "null", "pages": ""}, 1, 10, id="absent in other words"),
    ],
)
async def test_offset_and_limit_choose_the_lines(desk: Desk, arguments: dict[str, Any], first: int, last: int) -> None:
    path = desk.file("f.txt", TEN_LINES)

    result = await desk.call({"path": path, **arguments})

    lines = [line for line in result.text.splitlines() if not line.startswith("[")]
    assert lines == [f"{number}\tline {number}" for number in range(first, last + 1)]
    assert result.facts is not None
    assert (result.facts["start_line"], result.facts["end_line"]) == (first, last)


@pytest.mark.parametrize(
    "arguments",
    [
        {"limit": 0},
        {"offset": "third"},
        {"start_line": 5, "end_line": 4},
        {"end_line": "x"},
        {"end_line": 0},
        {"start_line": 2, "offset": 3},
        {"pages": True},
        {"lines": 3},
    ],
)
def test_senseless_arguments_are_refused_by_name(desk: Desk, arguments: dict[str, Any]) -> None:
    with pytest.raises(ToolError) as refused:
        desk.tool.validate({"file_path": "/f", **arguments})

    assert refused.value.code is ErrorCode.INPUT
    assert next(reversed(arguments)) in refused.value.message


async def test_an_empty_file_is_a_notice(desk: Desk) -> None:
    """read-002"""
    result = await desk.read(desk.file("e.txt", ""))

    assert not result.is_error
    assert result.text == "[The file exists but is empty]"


async def test_an_offset_past_the_end_is_a_notice_with_the_line_count(desk: Desk) -> None:
    result = await desk.read(desk.file("f.txt", TEN_LINES), offset=11)

    assert result.text == "[offset 11 is past the end: the file has 10 lines]"


async def test_a_long_file_comes_in_pages_that_join_to_the_whole(desk: Desk) -> None:
    """read-005"""
    text = "".join(f"this is the line with number {number}\n" for number in range(1, 11_001))
    path = desk.file("f.txt", text)

    shown: list[str] = []
    offset, pages = 1, 0
    while offset:
        result = await desk.read(path, offset=offset)
        assert len(result.text) <= 48_000
        *lines, notice = result.text.split("\n")
        if notice.startswith("[PARTIAL"):
            first, last = offset, offset + len(lines) - 1
            assert notice == f"[PARTIAL: lines {first}-{last} of 11000; continue with offset={last + 1}]"
            offset = last + 1
        else:
            lines.append(notice)
            offset = 0
        shown += [line.split("\t", 1)[1] for line in lines]
        pages += 1

    assert pages > 5
    assert "\n".join(shown) + "\n" == text


async def test_a_too_large_limit_pages_as_well_and_allow_large_shows_more(desk: Desk) -> None:
    path = desk.file("f.txt", ("x" * 49 + "\n") * 10_000)

    page = await desk.read(path, limit=10_000)
    large = await desk.read(path, limit=10_000, allow_large=True)

    assert 46_900 < len(page.text) <= 48_000
    assert page.text.endswith("\n[PARTIAL: lines 1-872 of 10000; continue with offset=873]")
    assert 198_900 < len(large.text) <= 200_000
    assert "\n[PARTIAL: lines 1-" in large.text[-100:]


async def test_who_gets_as_many_lines_as_asked_for_sees_no_notice(desk: Desk) -> None:
    result = await desk.read(desk.file("f.txt", TEN_LINES), limit=2)

    assert result.text == "1\tline 1\n2\tline 2"


async def test_a_long_line_is_cut_and_says_so(desk: Desk) -> None:
    """read-007"""
    result = await desk.read(desk.file("l.txt", "x" * 300_000))

    assert result.text == "1\t" + "x" * 2000 + " [... line cut: 2000 of 300000 characters shown]"
    assert result.facts is not None
    assert result.facts["truncated"] is True


@pytest.mark.parametrize(
    ("data", "encoding", "eol"),
    [
        ("é\nb\n".encode(), "utf-8", "lf"),
        ("\ufeffé\nb\n".encode(), "utf-8", "lf"),
        ("é\r\nb\r\n".encode("utf-16"), "utf-16-le", "crlf"),
        (b"\xfe\xff" + "é\rb".encode("utf-16-be"), "utf-16-be", "cr"),
        ("é\r\nb\n".encode("utf-32"), "utf-32-le", "mixed"),
    ],
)
async def test_text_of_every_unicode_encoding_is_shown(desk: Desk, data: bytes, encoding: str, eol: str) -> None:
    result = await desk.read(desk.file("f.txt", data))

    assert result.text == "1\té\n2\tb"
    assert result.facts is not None
    assert (result.facts["encoding"], result.facts["eol"]) == (encoding, eol)


async def test_text_of_unknown_encoding_is_shown_as_latin_1_with_a_notice(desk: Desk) -> None:
    result = await desk.read(desk.file("f.txt", b"caf\xe9\n"))

    assert result.text.startswith("1\tcafé\n[not UTF-8, encoding unknown: shown as latin-1;")


async def test_a_named_legacy_encoding_is_used(tmp_path: Path) -> None:
    desk = Desk(tmp_path, FileOptions(legacy_encoding="shift_jis"))

    result = await desk.read(desk.file("f.txt", "日本\n".encode("shift_jis")))

    assert result.text == "1\t日本"


async def test_damaged_utf_16_shows_what_can_be_read(desk: Desk) -> None:
    result = await desk.read(desk.file("log.txt", "ab\n".encode("utf-16") + b"x"))

    assert result.text == "1\tab\n2\t\ufffd"


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        pytest.param("x.dat", bytes(range(256)) * 20, "of unknown type, 5.1 KB (5,120 bytes)", id="read-008"),
        pytest.param("bin", b"\0\x1b[2J\xff\xfe\xe2\x80\xae\xe2\x80\x8b", "13 bytes", id="FS-42"),
        pytest.param("a.txt", b"PK\x03\x04\x00\x01", "a zip archive", id="zip"),
        pytest.param("prog", b"\x7fELF\x02\x01\x01\0", "an ELF executable", id="elf"),
    ],
)
async def test_binary_files_are_named_and_never_shown(desk: Desk, name: str, data: bytes, words: str) -> None:
    refused = await desk.refusal(desk.file(name, data))

    assert refused.code is ErrorCode.BINARY
    assert words in refused.message
    assert all(character.isprintable() for character in refused.message)


async def test_hidden_characters_are_shown_escaped_with_a_notice(desk: Desk) -> None:
    """FS-42: text that clears screens, reorders itself or hides instructions."""
    result = await desk.read(desk.file("f.txt", "a\x1b[2J\u202eb\u200b\U000e0041 and enough letters\n"))

    assert result.text == (
        "1\ta\\x1b[2J\\u202eb\\u200b\\U000e0041 and enough letters\n"
        "[control and invisible characters are shown escaped, as in \\x1b or \\u202e]"
    )


async def test_form_feeds_and_unicode_separators_end_no_line(desk: Desk) -> None:
    result = await desk.read(desk.file("f.txt", "a\x0cb\u2028c\x85d\ne\n"))

    assert result.text.splitlines()[:2] == ["1\ta\\x0cb\\u2028c\\x85d", "2\te"]


async def test_svg_is_text(desk: Desk) -> None:
    result = await desk.read(desk.file("i.svg", "<svg/>\n"))

    assert result.text == "1\t<svg/>"


async def test_a_directory_points_to_glob(desk: Desk) -> None:
    """read-013"""
    (desk.folder / "d").mkdir()

    refused = await desk.refusal(str(desk.folder / "d"))

    assert refused.code is ErrorCode.DIRECTORY
    assert "Glob" in refused.suggestion


async def test_a_pipe_without_writer_is_refused_at_once(desk: Desk) -> None:
    """FS-13"""
    os.mkfifo(desk.folder / "p")

    refused = await desk.refusal(str(desk.folder / "p"))

    assert refused.code is ErrorCode.NOT_REGULAR


@pytest.mark.parametrize("name", ["../out/secret.txt", "d/secret.txt", "link.txt"])
async def test_nothing_outside_is_read_or_told(desk: Desk, name: str) -> None:
    """FS-01, FS-04: through `..`, a linked folder, a linked file."""
    outside = desk.folder.parent / "out"
    outside.mkdir()
    (outside / "secret.txt").write_text("CANARY")
    (desk.folder / "d").symlink_to(outside)
    (desk.folder / "link.txt").symlink_to(outside / "secret.txt")

    refused = await desk.refusal(f"{desk.folder}/{name}")

    assert refused.code is ErrorCode.PATH_OUTSIDE
    assert "CANARY" not in refused.message + refused.suggestion


async def test_a_near_name_is_opened_only_when_the_user_allows_it_and_it_is_named(desk: Desk) -> None:
    path = desk.file("settings.py", "x = 1\n")
    asked = path.replace("settings", "setings")
    lenient = Desk(desk.folder, FileOptions(fuzzy_match=True))

    refused = await desk.refusal(asked)
    result = await lenient.read(asked)

    assert refused.code is ErrorCode.NOT_FOUND
    assert path in refused.suggestion
    assert result.text == f"1\tx = 1\n[{asked} does not exist; this is the near match {path}]"
    assert lenient.sessions.of("local").reads.paths() == (path,)


async def test_of_two_near_names_none_is_opened(tmp_path: Path) -> None:
    desk = Desk(tmp_path, FileOptions(fuzzy_match=True))
    desk.file("report1.txt", "one")
    desk.file("report2.txt", "two")

    refused = await desk.refusal(str(tmp_path / "report.txt"))

    assert refused.code is ErrorCode.NOT_FOUND


def test_rules_see_the_file_that_a_near_name_would_open(tmp_path: Path) -> None:
    desk = Desk(tmp_path, FileOptions(fuzzy_match=True))
    path = desk.file("settings.py", "x = 1\n")

    access = desk.tool.access(desk.tool.validate({"file_path": path.replace("settings", "setings")}))

    assert access.reads == (path,)


@pytest.mark.parametrize(("arguments", "whole"), [({}, True), ({"limit": 3}, False), ({"offset": 2}, False)])
async def test_the_session_remembers_what_it_has_seen(desk: Desk, arguments: dict[str, Any], whole: bool) -> None:
    path = desk.file("f.txt", TEN_LINES)
    modified_ns = 1_234_567_890_123_456_789
    os.utime(path, ns=(modified_ns, modified_ns))
    (desk.folder / "alias").symlink_to("f.txt")

    await desk.read(str(desk.folder / "alias"), **arguments)

    digest = hashlib.sha256(TEN_LINES.encode()).hexdigest()
    expected = ReadRecord(digest, len(TEN_LINES), modified_ns, whole=whole)
    assert desk.sessions.of("local").reads.get(path) == expected
    assert desk.sessions.of("another").reads.paths() == ()


async def test_a_file_with_a_cut_line_is_not_seen_whole(desk: Desk) -> None:
    path = desk.file("l.txt", "x" * 3000)

    await desk.read(path)

    seen = desk.sessions.of("local").reads.get(path)
    assert seen is not None
    assert seen.whole is False


async def test_a_refused_read_is_not_remembered(desk: Desk) -> None:
    await desk.refusal(desk.file("b.dat", b"\0"))

    assert desk.sessions.of("local").reads.paths() == ()


async def test_pages_of_a_text_file_are_a_notice(desk: Desk) -> None:
    result = await desk.read(desk.file("f.txt", "a\n"), pages="1-3")

    assert result.text == "1\ta\n[pages applies to PDF only]"


def test_the_definition_is_short_and_shows_no_alias(desk: Desk) -> None:
    spec = desk.tool.spec

    assert list(spec.input_schema["properties"]) == ["file_path", "offset", "limit", "pages", "allow_large"]
    assert spec.meta == {"anthropic/alwaysLoad": True, "anthropic/maxResultSizeChars": 200_000}
    assert spec.hints.wire() == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
