from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.settings import FileOptions
from tests.repetitions import examples
from tests.tools.changing import Desk, state_of

pytestmark = pytest.mark.anyio

CHANGED = "[the file had changed since you read it; the edit went into its present content]"


def desk_with(folder: Path, mode: Literal["strict", "relaxed", "off"]) -> Desk:
    return Desk(folder, FileOptions(read_before_write=mode))


async def test_edit_015_strict_wants_a_read_first(tmp_path: Path) -> None:
    desk = desk_with(tmp_path, "strict")
    path = desk.file("f.txt", "a\n")

    refusal = await desk.refused_edit(path, old_string="a", new_string="b")

    assert refusal.code is ErrorCode.NOT_READ and "Read it first" in refusal.suggestion
    assert path.read_text() == "a\n"


async def test_edit_015_relaxed_takes_an_exact_and_unique_edit_unread(tmp_path: Path) -> None:
    desk = desk_with(tmp_path, "relaxed")
    path = desk.file("f.txt", "a\n\tb\nc c\n")

    await desk.edit(path, old_string="a", new_string="A")
    codes = [
        (await desk.refused_edit(path, **arguments)).code
        for arguments in (
            {"old_string": "  b", "new_string": "B"},
            {"old_string": "c", "new_string": "C", "replace_all": True},
        )
    ]

    assert codes == [ErrorCode.NOT_READ, ErrorCode.NOT_READ]
    assert path.read_text() == "A\n\tb\nc c\n"


async def test_an_unread_file_stays_unread_after_an_edit(tmp_path: Path) -> None:
    desk = desk_with(tmp_path, "relaxed")
    path = desk.file("f.txt", "a\n\tb\n")

    await desk.edit(path, old_string="a", new_string="A")

    assert (await desk.refused_write(path, "whole")).code is ErrorCode.NOT_READ


async def test_a_read_by_another_client_does_not_count(tmp_path: Path) -> None:
    desk = desk_with(tmp_path, "strict")
    path = desk.file("f.txt", "a\n")
    desk.has_read(path, "other")

    assert (await desk.refused_edit(path, old_string="a", new_string="b")).code is ErrorCode.NOT_READ
    await desk.edit(path, "other", old_string="a", new_string="b")


async def test_a_partial_read_is_enough(tmp_path: Path) -> None:
    desk = desk_with(tmp_path, "strict")
    path = desk.file("f.txt", "a\n")
    desk.has_read(path, whole=False)

    await desk.edit(path, old_string="a", new_string="b")
    await desk.write(path, "c\n")

    assert path.read_text() == "c\n"


@pytest.mark.parametrize("mode", ["strict", "relaxed"])
async def test_edit_016_a_changed_file_is_still_editable_when_the_match_is_unique(tmp_path: Path, mode: Any) -> None:
    desk = desk_with(tmp_path, mode)
    path = desk.file("f.txt", "uniq\nmiddle\n")
    desk.has_read(path)
    path.write_text("uniq\nmiddle\ntheirs\n")

    result = await desk.edit(path, old_string="uniq", new_string="u2")

    assert path.read_text() == "u2\nmiddle\ntheirs\n"
    assert result.text.endswith(CHANGED)


@pytest.mark.parametrize("mode", ["strict", "relaxed"])
@pytest.mark.parametrize(
    "arguments",
    [
        {"old_string": "gone", "new_string": "b"},
        {"old_string": "twice", "new_string": "b"},
        {"old_string": "twice", "new_string": "b", "replace_all": True},
        {"old_string": "    fuzzy", "new_string": "b"},
    ],
)
async def test_edit_018_a_changed_file_is_stale_for_any_other_edit(
    tmp_path: Path, mode: Any, arguments: dict[str, Any]
) -> None:
    desk = desk_with(tmp_path, mode)
    path = desk.file("f.txt", "gone\n")
    desk.has_read(path)
    path.write_text("new\ntwice twice\n\tfuzzy\n")
    before = state_of(tmp_path)

    refusal = await desk.refused_edit(path, **arguments)

    assert refusal.code is ErrorCode.STALE
    assert "changed since it was read" in refusal.message and "Read it again" in refusal.suggestion
    assert state_of(tmp_path) == before


async def test_fs_35_write_over_a_changed_file_is_stale(tmp_path: Path) -> None:
    desk = desk_with(tmp_path, "strict")
    path = desk.file("f.txt", "mine\n")
    desk.has_read(path)
    path.write_text("theirs\n")

    refusal = await desk.refused_write(path, "x")

    assert refusal.code is ErrorCode.STALE
    assert path.read_text() == "theirs\n"


async def test_a_new_time_alone_does_not_make_a_file_stale(tmp_path: Path) -> None:
    desk = desk_with(tmp_path, "strict")
    path = desk.file("f.txt", "a\n\tb\n")
    desk.has_read(path)
    os.utime(path, ns=(1, 1))

    result = await desk.edit(path, old_string="  b", new_string="  c")

    assert CHANGED not in result.text
    assert path.read_text() == "a\n\tc\n"


async def test_our_own_writes_refresh_what_was_read(tmp_path: Path) -> None:
    desk = desk_with(tmp_path, "strict")
    path = desk.folder / "f.txt"

    await desk.write(path, "a\n\tb\n")
    await desk.edit(path, old_string="  b", new_string="  c")
    result = await desk.edit(path, old_string="  c", new_string="  d")
    await desk.write(path, "all new\n")

    assert CHANGED not in result.text
    assert path.read_text() == "all new\n"


async def test_a_file_made_by_an_edit_counts_as_read(tmp_path: Path) -> None:
    desk = desk_with(tmp_path, "strict")
    path = desk.folder / "f.txt"

    await desk.edit(path, old_string="", new_string="a\n")
    await desk.edit(path, old_string="a", new_string="b")

    assert path.read_text() == "b\n"


async def test_reading_through_a_link_counts_for_its_target(tmp_path: Path) -> None:
    desk = desk_with(tmp_path, "strict")
    target = desk.file("target.txt", "a\n")
    (tmp_path / "link.txt").symlink_to("target.txt")
    desk.has_read(target)

    await desk.edit(desk.folder / "link.txt", old_string="a", new_string="b")

    assert target.read_text() == "b\n"


async def test_without_checks_nothing_needs_a_read(tmp_path: Path) -> None:
    desk = desk_with(tmp_path, "off")
    path = desk.file("f.txt", "a a\n")
    desk.has_read(path)
    path.write_text("b b\n")

    await desk.edit(path, old_string="b", new_string="c", replace_all=True)
    await desk.write(path, "d\n")

    assert path.read_text() == "d\n"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(60))
@given(
    content=st.binary(max_size=40) | st.text("ab \t\n\r\u00e9", max_size=40).map(str.encode),
    old=st.text("ab \n\u00e9", max_size=4),
    new=st.text("ab \n\u00e9\ud800", max_size=4),
    mode=st.sampled_from(["strict", "relaxed", "off"]),
    is_read=st.booleans(),
)
async def test_a_failed_edit_changes_nothing(
    tmp_path: Path, content: bytes, old: str, new: str, mode: Any, is_read: bool
) -> None:
    desk = desk_with(tmp_path, mode)
    path = desk.file("f.txt", content)
    if is_read:
        desk.has_read(path)
    before = state_of(tmp_path)

    try:
        await desk.edit(path, old_string=old, new_string=new)
    except ToolError:
        assert state_of(tmp_path) == before
    else:
        assert path.read_bytes() != content
