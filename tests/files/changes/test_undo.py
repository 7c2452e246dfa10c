"""Taking changes back: the old bytes, or an honest refusal."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.changes.change import Author, Change, Content
from goat_mcp.files.changes.undo import UndoOutcome
from goat_mcp.files.settings import FileOptions
from tests.files.changes.keeping import Desk, notebook
from tests.files.changes.test_journal import HEAD, LARGE

pytestmark = pytest.mark.anyio


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def test_the_old_bytes_and_the_mode_come_back(desk: Desk) -> None:
    path = desk.file("f", b"\xef\xbb\xbfone\r\ntwo\r\n")
    path.chmod(0o751)
    await desk.edit(path, "one", "1")
    await desk.write(path, "all new\n")

    attempts = await desk.undo_all()

    assert [attempt.outcome for attempt in attempts] == [UndoOutcome.UNDONE, UndoOutcome.UNDONE]
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\ntwo\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


async def test_a_created_file_is_removed_and_an_undo_of_that_brings_it_back(desk: Desk) -> None:
    path = desk.top / "run.sh"
    await desk.write(path, "#!/bin/sh\n")
    path.chmod(0o755)

    await desk.undo_all()
    gone = not path.exists()
    (undone,) = [change for change in desk.journal.records.newest_first() if change.author.tool == "undo"]
    await desk.undo().run([undone])

    assert gone
    assert path.read_text() == "#!/bin/sh\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


async def test_a_large_file_comes_back(desk: Desk) -> None:
    path = desk.file("f", LARGE)
    await desk.edit(path, HEAD, "x")

    await desk.undo_all()

    assert path.read_text() == LARGE
    assert path.stat().st_nlink == 1


async def test_a_file_that_has_changed_since_is_left_alone_and_named(desk: Desk) -> None:
    changed, other = desk.file("f", "one"), desk.file("g", "one")
    for path in (changed, other):
        await desk.write(path, "two")
        await desk.write(path, "three")
    changed.write_text("mine")

    attempts = await desk.undo_all()

    assert [(attempt.change.path, attempt.outcome) for attempt in attempts] == [
        (other, UndoOutcome.UNDONE),
        (other, UndoOutcome.UNDONE),
        (changed, UndoOutcome.REFUSED),
        (changed, UndoOutcome.REFUSED),
    ]
    assert attempts[2].why == f"{changed} has changed since; it was left as it is"
    assert (changed.read_text(), other.read_text()) == ("mine", "one")


@pytest.mark.parametrize("then", ["deleted", "a folder", "a link"])
async def test_what_is_no_longer_that_file_is_refused(desk: Desk, then: str) -> None:
    path = desk.file("f", "one")
    await desk.write(path, "two")
    path.unlink()
    if then == "a folder":
        path.mkdir()
    elif then == "a link":
        path.symlink_to(desk.file("elsewhere", "two"))

    (attempt,) = await desk.undo_all()

    assert attempt.outcome is UndoOutcome.REFUSED
    assert str(path) in attempt.why
    if then == "a link":
        assert (desk.top / "elsewhere").read_text() == "two"


async def test_a_link_out_of_the_workspace_is_never_followed(desk: Desk) -> None:
    path = desk.file("sub/f", "one")
    await desk.write(path, "two")
    outside = desk.folder / "outside"
    (desk.top / "sub").rename(outside)
    (desk.top / "sub").symlink_to(outside)

    (attempt,) = await desk.undo_all()

    assert attempt.outcome is UndoOutcome.REFUSED
    assert (outside / "f").read_text() == "two"


async def test_a_created_file_that_exists_with_other_content_stays(desk: Desk) -> None:
    path = desk.top / "f"
    await desk.write(path, "two")
    path.write_text("mine")

    (attempt,) = await desk.undo_all()

    assert (attempt.outcome, path.read_text()) == (UndoOutcome.REFUSED, "mine")


async def test_what_was_put_back_by_hand_needs_nothing(desk: Desk) -> None:
    path = desk.file("f", "one")
    await desk.write(path, "two")
    path.write_text("one")

    (attempt,) = await desk.undo_all()

    assert attempt.outcome is UndoOutcome.NOTHING_TO_DO


async def test_a_dry_run_says_all_and_changes_nothing(desk: Desk) -> None:
    path, created = desk.file("f", "one"), desk.top / "new"
    await desk.write(path, "two")
    await desk.write(path, "three")
    await desk.write(created, "n")
    before = desk.records()

    attempts = await desk.undo().run(desk.not_undone(), dry_run=True)

    assert [attempt.outcome for attempt in attempts] == [UndoOutcome.WOULD_UNDO] * 3
    assert (path.read_text(), created.read_text()) == ("three", "n")
    assert desk.records() == before


async def test_a_damaged_or_missing_content_is_refused(desk: Desk) -> None:
    one, two = desk.file("f", "one"), desk.file("g", "two")
    await desk.write(one, "1")
    await desk.write(two, "2")
    changes = desk.not_undone()
    assert changes[0].before and changes[1].before
    desk.journal.blobs.path(changes[0].before.sha256).unlink()
    desk.journal.blobs.path(changes[1].before.sha256).write_text("bad")

    attempts = await desk.undo_all()

    assert [attempt.why for attempt in attempts] == [
        f"the old content of {two} is not kept any more",
        f"the old content of {one} was damaged where it was kept",
    ]
    assert (one.read_text(), two.read_text()) == ("1", "2")


async def test_an_undo_is_undone_by_its_own_record_and_the_first_change_counts_again(desk: Desk) -> None:
    path = desk.file("f", "one")
    await desk.write(path, "two")
    await desk.undo_all()
    assert desk.not_undone() == []
    (undone, _) = desk.journal.records.newest_first()

    await desk.undo().run([undone])

    assert path.read_text() == "two"
    assert [change.author.call_id for change in desk.not_undone()] == ["call-1"]


async def test_a_session_that_knew_the_undone_content_is_told_by_its_next_edit(tmp_path: Path) -> None:
    """R-FILE-8: the content decides."""
    desk = Desk(tmp_path, options=FileOptions())
    path = desk.file("f", "one\n")
    await desk.read(path)
    await desk.write(path, "two\n")

    await desk.undo_all()
    with pytest.raises(ToolError) as refused:
        await desk.write(path, "three\n")

    assert refused.value.code is ErrorCode.STALE
    assert path.read_text() == "one\n"


async def test_files_outside_the_workspace_are_not_even_listed(desk: Desk, tmp_path: Path) -> None:
    path = desk.file("f", "one")
    await desk.write(path, "two")
    other = Desk(tmp_path / "sub") if (tmp_path / "sub").mkdir() is None else desk
    other.journal = desk.journal

    assert other.undo().newest_first() == []
    assert len(desk.undo().newest_first()) == 1


async def test_a_notebook_comes_back(desk: Desk) -> None:
    path = desk.file("n.ipynb", notebook("x"))
    await desk.edit_cell(path, "y")

    await desk.undo_all()

    assert path.read_text() == notebook("x")


def test_a_record_remembers_names_that_are_no_text() -> None:
    name = os.fsdecode(b"/ws/caf\xe9")
    change = Change(
        "1", 2.0, Author("Write", "c", "s", "p"), Path(name), Path("/ws"), None, Content("a", 1), "0", "full"
    )

    assert Change.from_json("1", change.to_json()) == change
