"""What the journal keeps, what it costs the user's files (nothing), and what it does when it cannot keep."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.changes.blobs import LINKED_ABOVE_BYTES
from goat_mcp.files.changes.change import Author, Content
from goat_mcp.files.changes.journal import JournalLimits
from goat_mcp.files.settings import FileOptions
from goat_mcp.files.workspace import FileVersion
from goat_mcp.files.workspace.directory import descriptor_path
from tests.files.changes.keeping import Desk, notebook

pytestmark = pytest.mark.anyio

HEAD = "the first line"
LARGE = HEAD + "\na line of some length, many times\n" * (LINKED_ABOVE_BYTES // 20)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def content(text: str, mode: int = 0) -> Content:
    return Content(hashlib.sha256(text.encode()).hexdigest(), len(text.encode()), mode)


async def test_every_tool_leaves_a_record_with_the_old_content(desk: Desk) -> None:
    written, edited, cells = desk.file("w", "one"), desk.file("e", "two"), desk.file("n.ipynb", notebook("x"))
    for path in (written, edited, cells):
        path.chmod(0o640)

    await desk.write(written, "1")
    await desk.edit(edited, "two", "2")
    await desk.edit_cell(cells, "y")
    await desk.write(desk.top / "new" / "f", "n")

    created, cell, edit, write = desk.journal.records.newest_first()
    assert [change.author for change in (write, edit, cell, created)] == [
        Author(tool, f"call-{number}", "local", "local")
        for number, tool in enumerate(("Write", "Edit", "NotebookEdit", "Write"), start=1)
    ]
    assert (write.path, write.root, write.before, write.after) == (
        written,
        desk.top,
        content("one", 0o640),
        content("1"),
    )
    assert (edit.before, edit.after) == (content("two", 0o640), content("2"))
    assert (cell.before, cell.after) == (content(notebook("x"), 0o640), content(cells.read_text()))
    assert (created.path, created.before, created.after) == (desk.top / "new" / "f", None, content("n"))
    assert [desk.journal.blobs.read(change.before.sha256) for change in (write, edit) if change.before] == [
        b"one",
        b"two",
    ]


async def test_what_is_kept_is_private(desk: Desk) -> None:
    small, large = desk.file("small", "one"), desk.file("large", LARGE)

    await desk.write(small, "two")
    await desk.edit(large, HEAD, "x")

    assert {stat.S_IMODE(path.stat().st_mode) for path in (*desk.blobs(), *desk.records())} == {0o600}
    folders = (desk.state.path, desk.state.path / "changes", desk.blobs()[0].parent, desk.records()[0].parent)
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}


async def test_a_large_content_is_kept_without_being_copied(desk: Desk) -> None:
    path = desk.file("f", LARGE)
    inode = path.stat().st_ino

    await desk.edit(path, HEAD, "x")

    (blob,) = desk.blobs()
    assert (blob.stat().st_ino, blob.stat().st_nlink) == (inode, 1)
    assert blob.read_text() == LARGE
    assert path.stat().st_nlink == 1


async def test_where_no_link_can_be_made_a_large_content_is_copied(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    path = desk.file("f", LARGE)
    link = os.link

    def link_on_this_file_system(source: object, target: object, **options: Any) -> None:
        if "blobs" in str(descriptor_path(options["dst_dir_fd"])):
            raise OSError(18, "Invalid cross-device link")
        link(source, target, **options)  # type: ignore[call-overload]  # as it came

    monkeypatch.setattr(os, "link", link_on_this_file_system)
    inode = path.stat().st_ino

    await desk.edit(path, HEAD, "x")

    (blob,) = desk.blobs()
    assert blob.stat().st_ino != inode
    assert blob.read_text() == LARGE


async def test_a_refused_write_leaves_no_record(desk: Desk) -> None:
    path = desk.file("f", LARGE)
    stale = FileVersion("0" * 64, len(LARGE), 0)

    with pytest.raises(ToolError) as refused:
        desk.journal.write(
            desk.workspace, desk.workspace.resolve(str(path)), b"x", expect=stale, author=Author("Write", "c", "s", "p")
        )

    assert refused.value.code is ErrorCode.STALE
    assert (desk.records(), desk.blobs(), path.stat().st_nlink) == ([], [], 1)


async def test_a_change_that_fails_at_the_last_moment_leaves_the_file_writable(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-FILE-7: a second name of ours must not make the file one with hard links, which is never written."""
    path = desk.file("f", LARGE)
    rename = os.rename

    def full(source: object, target: object, **options: object) -> None:
        if target == "f":
            raise OSError(28, "No space left on device")
        rename(source, target, **options)  # type: ignore[call-overload]  # as it came

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(ToolError):
        await desk.edit(path, HEAD, "x")
    monkeypatch.undo()

    assert path.stat().st_nlink == 1
    assert desk.records() == []
    await desk.edit(path, HEAD, "x")
    (change,) = desk.journal.records.newest_first()
    assert change.before == content(LARGE, stat.S_IMODE(path.stat().st_mode))


async def test_what_a_killed_change_left_does_not_stop_the_next_one(desk: Desk) -> None:
    """Killed between keeping the old bytes and replacing the file: the file has a second name in the journal."""
    path = desk.file("f", LARGE)
    digest = hashlib.sha256(LARGE.encode()).hexdigest()
    os.link(path, desk.journal.blobs.path(digest))
    os.link(path, desk.journal.blobs.path(f".{digest}.12345678"))

    await desk.edit(path, HEAD, "x")

    assert path.stat().st_nlink == 1
    assert desk.journal.blobs.read(digest) == LARGE.encode()
    assert len(desk.blobs()) == 1


async def test_a_users_hard_link_is_still_refused(desk: Desk) -> None:
    path = desk.file("f", "x")
    os.link(path, desk.top / "g")

    with pytest.raises(ToolError) as refused:
        await desk.write(path, "y")

    assert refused.value.code is ErrorCode.HARD_LINKED


async def test_a_file_overwritten_in_place_is_kept_by_a_copy(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    path = desk.file("f", LARGE)
    rename = os.rename

    def busy(source: object, target: object, **options: object) -> None:
        if target == "f":
            raise OSError(16, "Device or resource busy")
        rename(source, target, **options)  # type: ignore[call-overload]  # as it came

    monkeypatch.setattr(os, "rename", busy)
    inode = path.stat().st_ino

    await desk.edit(path, HEAD, "x")

    (blob,) = desk.blobs()
    assert (path.stat().st_ino, path.read_text()) == (inode, f"x{LARGE[len(HEAD) :]}")
    assert blob.read_text() == LARGE


async def test_the_result_says_when_a_change_cannot_be_undone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, limits=JournalLimits(total_bytes=4))
    path = desk.file("f", "12345")

    result = await desk.write(path, "new")

    assert result.text.splitlines()[-1] == (
        "[this change cannot be undone with goat-mcp undo; the old content was not kept: "
        "its 5 bytes are more than files.journal_bytes, 4]"
    )
    assert path.read_text() == "new"
    assert desk.blobs() == []


async def test_a_journal_that_cannot_be_written_does_not_stop_the_work(desk: Desk) -> None:
    path = desk.file("f", "old")
    desk.state.folder("changes").rmdir()
    (desk.state.path / "changes").write_text("in the way")

    result = await desk.write(path, "new")

    assert path.read_text() == "new"
    assert "cannot be undone" in result.text


async def test_with_journal_bytes_0_nothing_is_kept_and_nothing_is_said(tmp_path: Path) -> None:
    desk = Desk(tmp_path, limits=JournalLimits(total_bytes=0))
    path = desk.file("f", "old")

    result = await desk.write(path, "new")

    assert result.text == f"Updated {path} (1 line, +1 -1)."
    assert not (desk.state.path / "changes").exists()


async def test_an_unchanged_file_leaves_no_record(desk: Desk) -> None:
    path = desk.file("f", "same")

    await desk.write(path, "same")

    assert desk.records() == []


async def test_the_journal_is_pruned_by_age_and_by_size(tmp_path: Path) -> None:
    desk = Desk(tmp_path, limits=JournalLimits(total_bytes=10, days=1))
    path = desk.file("f", "0" * 4)
    for number in (1, 2, 3):
        await desk.write(path, str(number) * 4)
    long_ago_s = time.time() - 2 * 24 * 3600
    for file in (*desk.blobs(), *desk.records()):
        os.utime(file, (long_ago_s, long_ago_s))

    desk.journal.prune()

    assert [change.before for change in desk.journal.records.newest_first()] == [
        content(str(number) * 4, stat.S_IMODE(path.stat().st_mode)) for number in (2, 1)
    ]
    assert len(desk.blobs()) == 3, "a blob so young may belong to a change under way"


async def test_a_pruned_content_goes_once_it_is_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path, limits=JournalLimits(total_bytes=10, days=1))
    path = desk.file("f", "0" * 4)
    for number in (1, 2, 3):
        await desk.write(path, str(number) * 4)
    later_s = time.time() + 7200
    monkeypatch.setattr(time, "time", lambda: later_s)

    desk.journal.prune()

    assert sorted(blob.read_text() for blob in desk.blobs()) == ["1111", "2222"]


async def test_a_damaged_record_is_set_aside_and_the_others_stay(desk: Desk) -> None:
    """R-CRASH-1"""
    path = desk.file("f", "0")
    for number in (1, 2):
        await desk.write(path, str(number))
    damaged, _ = desk.records()
    whole = damaged.read_bytes()

    for size in range(len(whole)):
        damaged.write_bytes(whole[:size])
        assert len(desk.journal.records.newest_first()) == 1
        aside = damaged.with_name(f"{damaged.name}.corrupt")
        assert aside.read_bytes() == whole[:size]
        aside.unlink()


@pytest.mark.parametrize("text", ["[]", "null", "{}", '{"version": 2}', '{"version": 1}', '"x"', "\xff"])
async def test_a_record_that_is_none_is_set_aside(desk: Desk, text: str) -> None:
    """R-CRASH-1"""
    path = desk.file("f", "0")
    await desk.write(path, "1")
    (record,) = desk.records()
    record.write_text(text, encoding="latin-1")

    assert desk.journal.records.newest_first() == []
    assert [path.name for path in desk.records()] == [f"{record.name}.corrupt"]


async def test_a_damaged_blob_is_replaced_when_the_same_content_is_kept_again(desk: Desk) -> None:
    path = desk.file("f", "old")
    await desk.write(path, "new")
    (blob,) = desk.blobs()
    blob.write_text("bad")
    path.write_text("old")

    await desk.write(path, "newer")

    assert blob.read_text() == "old"


def test_the_settings_bound_the_journal() -> None:
    assert (FileOptions().journal_bytes, FileOptions().journal_days, FileOptions().review_mode) == (2**30, 30, False)
