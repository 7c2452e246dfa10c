"""Review mode: nothing is written until a person says so, and the session goes on from what it has staged."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from pathlib import Path

import pytest

from goat_mcp.calls.audit.records import CallFilter, last_calls
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Ask, Form, Reply
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.changes.review import OWNER, ReviewChanges, ReviewResource
from goat_mcp.files.settings import FileOptions
from goat_mcp.settings.view import SETTABLE
from tests.files.changes.keeping import Desk, notebook

pytestmark = pytest.mark.anyio


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, review_mode=True)


def answering(reply: Reply, forms: list[Form] | None = None, **values: str) -> Ask:
    async def ask(form: Form) -> Answer:
        if forms is not None:
            forms.append(form)
        return Answer(reply, values)

    return ask


def waiting(desk: Desk) -> list[tuple[str, bytes]]:
    return [(staged.path.name, desk.queue.data(staged)) for staged in desk.review.oldest_first(OWNER)]


async def test_a_write_is_staged_and_says_so_with_the_diff_and_the_id(desk: Desk) -> None:
    path = desk.file("f.txt", "one\ntwo\n")

    result = await desk.write(path, "one\n2\n")

    (staged,) = desk.review.oldest_first(OWNER)
    assert path.read_text() == "one\ntwo\n"
    assert result.text == (
        f"Staged as change {staged.id}, NOT written: it waits for the user (goat-mcp review apply {staged.id}). "
        "Your own reads and edits of this file go on from it; commands and searches see the old file.\n"
        f"Once applied: Updated {path} (2 lines, +1 -1, LF kept).\n"
        f"--- {path}\n+++ {path}\n@@ -1,2 +1,2 @@\n one\n-two\n+2"
    )
    assert result.facts is not None
    assert (result.facts["staged"], result.facts["change_id"], result.facts["type"]) == (True, staged.id, "update")


async def test_every_tool_that_changes_files_stages(desk: Desk) -> None:
    edited, cells = desk.file("e", "one"), desk.file("n.ipynb", notebook("x"))

    texts = [
        (await desk.edit(edited, "one", "two")).text,
        (await desk.edit_cell(cells, "y")).text,
        (await desk.write(desk.top / "sub" / "new", "n")).text,
    ]

    assert all(text.startswith("Staged as change ") for text in texts)
    assert (edited.read_text(), cells.read_text()) == ("one", notebook("x"))
    assert not (desk.top / "sub").exists()
    assert waiting(desk) == [("e", b"two"), ("n.ipynb", notebook("y").encode()), ("new", b"n")]


async def test_a_second_edit_builds_on_the_first_and_takes_its_place(desk: Desk) -> None:
    path = desk.file("f", "one two")
    await desk.edit(path, "one", "1")
    (first,) = desk.review.oldest_first(OWNER)

    await desk.edit(path, "two", "2")

    (second,) = desk.review.oldest_first(OWNER)
    assert second.id != first.id, "whoever has seen the first has not seen the second"
    assert desk.queue.data(second) == b"1 2"
    await desk.review.apply(second.id)
    assert path.read_text() == "1 2"


async def test_a_new_file_can_be_edited_before_it_exists(desk: Desk) -> None:
    path = desk.top / "new"
    await desk.write(path, "one")

    await desk.edit(path, "one", "two")

    (staged,) = desk.review.oldest_first(OWNER)
    await desk.review.apply(staged.id)
    assert path.read_text() == "two"


async def test_the_session_reads_what_it_has_staged_and_is_told_so(desk: Desk) -> None:
    path = desk.file("f", "one\n")
    await desk.write(path, "two\n")
    (staged,) = desk.review.oldest_first(OWNER)

    mine, theirs = await desk.read(path), await desk.read(path, session="another")

    assert mine.text == (
        f"1\ttwo\n[this is what change {staged.id} will make of the file; "
        "it waits for the user, on disk is the old one]"
    )
    assert theirs.text == "1\tone"


async def test_read_before_write_holds_for_staged_content(tmp_path: Path) -> None:
    desk = Desk(tmp_path, review_mode=True, options=FileOptions())
    path = desk.file("f", "one\n")
    await desk.read(path)
    await desk.write(path, "two\n")

    await desk.write(path, "three\n")

    assert waiting(desk) == [("f", b"three\n")]
    with pytest.raises(ToolError) as refused:
        await desk.write(path, "four\n", session="another")
    assert refused.value.code is ErrorCode.NOT_READ


async def test_two_sessions_stage_for_themselves_and_the_second_to_be_applied_is_refused(desk: Desk) -> None:
    path = desk.file("f", "one")
    await desk.write(path, "mine")
    await desk.write(path, "theirs", session="another")
    mine, theirs = desk.review.oldest_first(OWNER)

    await desk.review.apply(mine.id)
    with pytest.raises(ToolError) as refused:
        await desk.review.apply(theirs.id)

    assert refused.value.code is ErrorCode.STALE
    assert path.read_text() == "mine"
    assert [staged.id for staged in desk.review.oldest_first(OWNER)] == [theirs.id]


@pytest.mark.parametrize("then", ["changed", "deleted", "created", "a link"])
async def test_a_change_whose_file_is_another_now_is_refused_and_keeps_waiting(desk: Desk, then: str) -> None:
    path = desk.top / "f"
    if then != "created":
        path.write_text("one")
    await desk.write(path, "two")
    if then in ("changed", "created"):
        path.write_text("mine")
    else:
        path.unlink()
    if then == "a link":
        path.symlink_to(desk.file("elsewhere", "one"))
    (staged,) = desk.review.oldest_first(OWNER)

    with pytest.raises(ToolError) as refused:
        await desk.review.apply(staged.id)

    assert refused.value.code is ErrorCode.STALE
    assert refused.value.message == f"{path} has changed since change {staged.id} was staged; it still waits"
    assert desk.review.oldest_first(OWNER) == [staged]
    if then == "a link":
        assert (desk.top / "elsewhere").read_text() == "one"


async def test_an_applied_change_is_journaled_as_the_call_that_made_it(desk: Desk) -> None:
    path = desk.file("f", "one")
    path.chmod(0o640)
    await desk.write(path, "two")
    (staged,) = desk.review.oldest_first(OWNER)

    await desk.review.apply(staged.id)
    applied = path.read_text()
    (change,) = desk.journal.records.newest_first()
    await desk.undo_all()

    assert change.author == staged.author
    assert (applied, path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("two", "one", 0o640)


async def test_a_rejected_change_is_gone_and_the_session_sees_the_disk_again(desk: Desk) -> None:
    path = desk.file("f", "one")
    await desk.write(path, "two")
    (staged,) = desk.review.oldest_first(OWNER)

    await desk.review.reject(staged.id)

    assert desk.review.oldest_first(OWNER) == []
    assert (await desk.read(path)).text == "1\tone"
    assert list(desk.queue.folder.iterdir()) == []


async def test_an_edit_of_a_change_that_is_rejected_meanwhile_is_refused(desk: Desk) -> None:
    path = desk.file("f", "one")
    await desk.write(path, "two")
    (staged,) = desk.review.oldest_first(OWNER)
    files = desk.changes.of(desk.workspace, desk.ctx(), "Edit")
    location = desk.workspace.resolve(str(path))
    with files.open_file(location) as file:
        seen = file.version(file.read())
    await desk.review.reject(staged.id)

    with pytest.raises(ToolError) as refused:
        files.write_file(location, b"three", expect=seen)

    assert refused.value.code is ErrorCode.STALE
    assert desk.review.oldest_first(OWNER) == []


async def test_a_change_back_to_what_is_on_disk_leaves_nothing_to_review(desk: Desk) -> None:
    path = desk.file("f", "one")
    await desk.write(path, "two")

    result = await desk.write(path, "one")

    assert desk.review.oldest_first(OWNER) == []
    assert result.text.startswith("The file is on disk as it would become: nothing waits for review now.")


async def test_a_person_who_can_be_asked_approves_in_the_call(desk: Desk) -> None:
    path = desk.file("f", "one\n")
    forms: list[Form] = []

    result = await desk.write(path, "two\n", ask=answering(Reply.ACCEPTED, forms, decision="approve"))

    assert path.read_text() == "two\n"
    assert result.text == f"Updated {path} (1 line, +1 -1, LF kept).\n[the user approved this change]"
    assert result.facts is not None
    assert result.facts["staged"] is False
    assert desk.review.oldest_first(OWNER) == []
    assert forms[0].message == f"Write wants to change {path}:\n\n--- {path}\n+++ {path}\n@@ -1 +1 @@\n-one\n+two"


@pytest.mark.parametrize("decision", ["approve", "reject", "keep"])
async def test_what_a_person_decides_in_the_call_is_recorded(desk: Desk, decision: str) -> None:  # R-AUDIT-2
    ask = answering(Reply.ACCEPTED, decision=decision)

    with contextlib.suppress(ToolError):
        await desk.write(desk.top / "f", "x", session="s", ask=ask, principal="ada")

    path = desk.state.path / "audit.jsonl"
    told = [
        (one["tool"], one["decision"], one["by"], one["rule"].partition(", change ")[0], one["error_code"])
        for one in (last_calls(path, 10, CallFilter()) if path.exists() else ())
    ]
    what = {"approve": ["review apply"], "reject": ["review reject"], "keep": []}[decision]
    assert told == [(one, "allow", "user", "form in call call-1", None) for one in what]


async def test_a_person_who_rejects_is_quoted_to_the_model(desk: Desk) -> None:
    path = desk.file("f", "one")

    with pytest.raises(ToolError) as refused:
        await desk.write(path, "two", ask=answering(Reply.ACCEPTED, decision="reject", feedback="Say why"))

    assert (refused.value.code, refused.value.suggestion) == (ErrorCode.PERMISSION, "They said: Say why")
    assert path.read_text() == "one"
    assert desk.review.oldest_first(OWNER) == []


@pytest.mark.parametrize(
    "ask",
    [
        answering(Reply.ACCEPTED, decision="keep"),
        answering(Reply.ACCEPTED),
        *(answering(reply) for reply in Reply if reply is not Reply.ACCEPTED),
    ],
)
async def test_without_a_decision_the_change_keeps_waiting(desk: Desk, ask: Ask) -> None:
    path = desk.file("f", "one")

    result = await desk.write(path, "two", ask=ask)

    assert result.text.startswith("Staged as change ")
    assert (path.read_text(), waiting(desk)) == ("one", [("f", b"two")])


async def test_an_approval_is_of_what_was_shown(desk: Desk) -> None:
    """R-PERM-4: while the form is open the session stages something else."""
    path = desk.file("f", "one")

    async def ask(form: Form) -> Answer:
        await desk.write(path, "three")
        return Answer(Reply.ACCEPTED, {"decision": "approve"})

    result = await desk.write(path, "two", ask=ask)

    assert "could not be applied" in result.text
    assert (path.read_text(), waiting(desk)) == ("one", [("f", b"three")])


async def test_a_file_that_changes_while_the_person_decides_is_not_overwritten(desk: Desk) -> None:
    path = desk.file("f", "one")

    async def ask(form: Form) -> Answer:
        path.write_text("mine")
        return Answer(Reply.ACCEPTED, {"decision": "approve"})

    result = await desk.write(path, "two", ask=ask)

    assert "The user approved it, but it could not be applied" in result.text
    assert (path.read_text(), waiting(desk)) == ("mine", [("f", b"two")])


async def test_what_could_never_be_written_is_refused_before_it_is_staged(desk: Desk) -> None:
    linked = desk.file("f", "x")
    os.link(linked, desk.top / "g")
    (desk.top / "dangling").symlink_to(desk.top / "nowhere")

    refusals: list[ErrorCode] = []
    for path in (linked, desk.top / "dangling"):
        with pytest.raises(ToolError) as refused:
            await desk.write(path, "y")
        refusals.append(refused.value.code)

    assert refusals == [ErrorCode.HARD_LINKED, ErrorCode.NOT_FOUND]
    assert desk.review.oldest_first(OWNER) == []


async def test_a_change_applied_by_a_process_that_died_then_is_not_applied_twice(desk: Desk) -> None:
    path = desk.file("f", "one")
    await desk.write(path, "two")
    (staged,) = desk.review.oldest_first(OWNER)
    path.write_text("two")

    await desk.review.apply(staged.id)

    assert (path.read_text(), desk.review.oldest_first(OWNER), desk.records()) == ("two", [], [])


async def test_a_damaged_record_is_set_aside_and_a_damaged_content_never_applied(desk: Desk) -> None:
    """R-CRASH-1"""
    one, two = desk.file("f", "one"), desk.file("g", "one")
    await desk.write(one, "two")
    await desk.write(two, "two")
    first, second = desk.review.oldest_first(OWNER)
    (desk.queue.folder / f"{first.id}.json").write_text("{")
    desk.queue.content_path(second.id).write_text("bad")

    assert [staged.id for staged in desk.review.oldest_first(OWNER)] == [second.id]
    with pytest.raises(ToolError) as refused:
        await desk.review.apply(second.id)

    assert refused.value.code is ErrorCode.IO
    assert two.read_text() == "one"
    assert (desk.queue.folder / f"{first.id}.json.corrupt").exists()


async def test_the_queue_is_private(desk: Desk) -> None:
    await desk.write(desk.top / "f", "x")

    assert {stat.S_IMODE(path.stat().st_mode) for path in desk.queue.folder.iterdir()} == {0o600}
    assert stat.S_IMODE(desk.queue.folder.stat().st_mode) == 0o700


async def test_the_resource_lists_what_waits_and_shows_a_diff(desk: Desk) -> None:
    path = desk.file("f", "one\n")
    heard: list[str] = []
    desk.announcements.listen(lambda uri, principal: heard.append(uri))
    await desk.write(path, "two\n")
    (staged,) = desk.review.oldest_first(OWNER)
    resource, ctx = ReviewResource(desk.review), ToolContext(call_id="r")

    listed = await resource.read("goat://review", ctx)
    shown = await resource.read(f"goat://review/{staged.id}", ctx)

    assert listed is not None
    (entry,) = json.loads(listed.text)["waiting"]
    assert (entry["id"], entry["path"], entry["kind"], entry["tool"]) == (staged.id, str(path), "change", "Write")
    assert shown is not None
    assert shown.text.endswith("-one\n+two")
    assert await resource.read("goat://review/00000000", ctx) is None
    assert await resource.read("goat://review/../x", ctx) is None
    assert heard == ["goat://review", f"goat://review/{staged.id}"]


async def test_r_http_3_a_principal_sees_its_own_changes_and_the_owner_everybodys(desk: Desk) -> None:
    heard: list[tuple[str, str | None]] = []
    desk.announcements.listen(lambda uri, principal: heard.append((uri, principal)))
    await desk.write(desk.top / "a", "x", session="one", principal="ada")
    await desk.write(desk.top / "b", "y", session="two", principal="bob")
    ids = {staged.author.principal: staged.id for staged in desk.review.oldest_first(OWNER)}
    resource = ReviewResource(desk.review)

    seen: dict[str, set[str]] = {}
    diffs: dict[str, list[bool]] = {}
    for reader in ("ada", "bob", "local", "anonymous"):
        ctx = ToolContext(call_id="r", principal=reader)
        listed = await resource.read("goat://review", ctx)
        assert listed is not None
        seen[reader] = {entry["principal"] for entry in json.loads(listed.text)["waiting"]}
        shown = [await resource.read(f"goat://review/{ids[author]}", ctx) for author in ("ada", "bob")]
        diffs[reader] = [diff is not None for diff in shown]

    assert seen == {"ada": {"ada"}, "bob": {"bob"}, "local": {"ada", "bob"}, "anonymous": set()}
    assert diffs == {"ada": [True, False], "bob": [False, True], "local": [True, True], "anonymous": [False, False]}
    assert {principal for uri, principal in heard if uri.endswith(ids["ada"])} == {"ada", "local"}
    with pytest.raises(ToolError) as foreign:
        desk.review.find(ids["bob"], "ada")
    with pytest.raises(ToolError) as unknown:
        desk.review.find("00000000", "ada")
    assert str(foreign.value).replace(ids["bob"], "00000000") == str(unknown.value)


async def test_what_another_process_decides_is_announced(desk: Desk) -> None:
    look = ReviewChanges(desk.review).look
    await look(())
    await desk.write(desk.top / "f", "x")
    (staged,) = desk.review.oldest_first(OWNER)
    await look(())
    heard: list[str] = []
    desk.announcements.listen(lambda uri, principal: heard.append(uri))
    desk.queue.remove(staged.id)

    await look(())

    assert heard == ["goat://review", f"goat://review/{staged.id}"]


def test_a_session_cannot_end_review_mode_or_empty_the_journal() -> None:
    """R-PERM-6"""
    assert not {key for key in SETTABLE if key.startswith("files.")}
