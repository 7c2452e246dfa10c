"""memento: notes for later sessions, as files of the project or of the user. tools.md, section 3; goa, "memento"."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.files.memory import slug
from goat_mcp.server.adapter import INSTRUCTIONS, INSTRUCTIONS_CHARS
from tests.manifests.calling import Caller

pytestmark = pytest.mark.anyio

TOOL = "memento__note"


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "goat-mcp" / "memory"


def link_to_secret(link: Path, secret: Path) -> None:
    secret.write_text("canary")
    link.parent.mkdir(parents=True)
    link.symlink_to(secret)


@pytest.mark.parametrize("scope", ["project", "global"])
async def test_a_note_is_written_read_added_to_listed_and_deleted(tmp_path: Path, config: Path, scope: str) -> None:
    caller = Caller(tmp_path)
    folder = config if scope == "global" else caller.project / ".goa" / "memory"

    await caller.value(
        TOOL, action="write", name="Architecture Notes", content="## Database\n\nOne table.", scope=scope
    )
    await caller.value(TOOL, action="append", name="architecture-notes", content="Two.\n", scope=scope)
    read = await caller.value(TOOL, action="read", name="architecture_notes.md", scope=scope)
    (listed,) = (await caller.value(TOOL, action="list"))["memories"]
    on_disk = (folder / "architecture-notes.md").read_text()
    await caller.value(TOOL, action="delete", name="architecture-notes", scope=scope)

    assert read["content"] == on_disk == "## Database\n\nOne table.\nTwo.\n"
    assert {**listed, "date": ""} == {
        "name": "architecture-notes",
        "scope": scope,
        "heading": "Database",
        "size": 29,
        "date": "",
    }
    assert await caller.value(TOOL, action="list", scope=scope) == {"memories": []}
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("scope", ["project", "global"])
@pytest.mark.parametrize(("first", "second"), [("my-note", "my_note"), ("a", "A")])
@pytest.mark.usefixtures("config")
async def test_a_note_that_replaces_one_under_another_spelling_of_its_name_says_so(
    tmp_path: Path, scope: str, first: str, second: str
) -> None:
    caller = Caller(tmp_path)

    answers = [
        await caller.value(TOOL, action="write", name=name, content="x", scope=scope)
        for name in (second, first, second)
    ]

    assert [answer.get("replaced") for answer in answers] == [
        None,
        None,
        f"there was a note {first}, which {second} means too: its content was replaced",
    ]


async def test_by_goas_name_it_is_the_same_tool(tmp_path: Path) -> None:
    assert await Caller(tmp_path).value("memento", action="list") == {"memories": []}


@pytest.mark.parametrize(
    ("action", "missing"),
    [
        ("write", ["name: is required by write", "content: is required by write"]),
        ("append", ["name: is required by append", "content: is required by append"]),
        ("read", ["name: is required by read"]),
        ("delete", ["name: is required by delete"]),
    ],
)
async def test_all_that_is_missing_is_named_together(tmp_path: Path, action: str, missing: list[str]) -> None:
    problem = await Caller(tmp_path).problem(TOOL, action=action)

    assert problem.splitlines()[: len(missing)] == missing
    assert problem.endswith("[E_INPUT]")


async def test_a_note_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    caller = Caller(tmp_path)
    await caller.value(TOOL, action="write", name="design", content="x")

    for action in ("read", "delete"):
        problem = await caller.problem(TOOL, action=action, name="desing")
        assert problem == "there is no project memory 'desing'\nThere are design.\n[E_NOT_FOUND]"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("../../etc/passwd", "etc-passwd"),
        ("/etc/passwd", "etc-passwd"),
        ("a\0b", "a-b"),
        ("..", ""),
        (".hidden", "hidden"),
        ("Ключ 1", "ключ-1"),
        ("CON.md", "con"),
    ],
)
def test_names_become_slugs_that_lead_nowhere_else(name: str, wanted: str) -> None:
    assert slug(name) == wanted


@pytest.mark.parametrize("name", ["..", "///", "", "x" * 65])
async def test_a_name_that_makes_no_slug_is_refused(tmp_path: Path, name: str) -> None:
    assert (await Caller(tmp_path).problem(TOOL, action="write", name=name, content="x")).endswith("[E_INPUT]")


async def test_a_folder_that_leads_out_of_the_project_is_not_followed(tmp_path: Path) -> None:
    caller = Caller(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.md").write_text("canary")
    (caller.project / ".goa").mkdir()
    (caller.project / ".goa" / "memory").symlink_to(outside)

    written = await caller.problem(TOOL, action="write", name="b", content="x")
    read = await caller.problem(TOOL, action="read", name="a")
    listed = await caller.value(TOOL, action="list")

    assert written.endswith("[E_PATH_OUTSIDE]")
    assert "canary" not in read
    assert listed == {"memories": []}
    assert [file.name for file in outside.iterdir()] == ["a.md"]


async def test_a_global_note_that_is_a_link_is_not_followed(tmp_path: Path, config: Path) -> None:
    link_to_secret(config / "a.md", tmp_path / "secret")
    caller = Caller(tmp_path)

    for arguments in ({"action": "read"}, {"action": "append", "content": "x"}, {"action": "delete"}):
        problem = await caller.problem(TOOL, name="a", scope="global", **arguments)
        assert problem.endswith("[E_NOT_REGULAR]")

    assert (tmp_path / "secret").read_text() == "canary"


async def test_a_rule_that_forbids_to_edit_the_folder_forbids_notes(tmp_path: Path) -> None:
    caller = Caller(tmp_path, {"permissions": {"deny": ["Edit(./.goa/**)"]}})

    assert (await caller.problem(TOOL, action="write", name="a", content="x")).endswith("[E_PERMISSION]")
    assert not (caller.project / ".goa" / "memory" / "a.md").exists()


async def test_what_becomes_of_a_note_can_be_undone(tmp_path: Path) -> None:
    caller = Caller(tmp_path)
    for content in ("one", "two"):
        await caller.value(TOOL, action="write", name="a", content=content)
    await caller.value(TOOL, action="delete", name="a")

    journal = caller.gateway.changes.review.journal
    changes = journal.records.newest_first()

    assert [change.author.tool for change in changes] == [TOOL] * 3
    kept = [journal.blobs.read(change.before.sha256) for change in changes if change.before is not None]
    assert kept == [b"two", b"one"]


REVIEWED = {"files": {"review_mode": True}}


async def listed(caller: Caller) -> list[Any]:
    """What the list has, without the dates; the resource and the command of ours have the same."""
    answer = await caller.value(TOOL, action="list")
    assert await resource(caller) == answer
    assert await caller.value("goa_command__run", command="memory list") == answer
    return [{key: value for key, value in memory.items() if key != "date"} for memory in answer["memories"]]


def on_disk(caller: Caller, name: str, text: str) -> Path:
    file = caller.project / ".goa" / "memory" / f"{name}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, (1, 1))
    return file


def note(name: str, heading: str, size: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "scope": "project", "heading": heading, "size": size, **more}


async def test_in_review_mode_a_note_that_waits_is_listed_as_it_is_read(tmp_path: Path) -> None:
    caller = Caller(tmp_path, REVIEWED)
    kept, changed = on_disk(caller, "kept", "# Kept"), on_disk(caller, "changed", "# Old")

    new = await caller.value(TOOL, action="write", name="new", content="# New")
    more = await caller.value(TOOL, action="append", name="changed", content="# Newer")
    read = await caller.value(TOOL, action="read", name="changed")

    assert read["content"] == "# Old\n# Newer"
    assert {one["name"]: one for one in await listed(caller)} == {
        "changed": note("changed", "Old", read["size"], staged=True, change_id=more["change_id"]),
        "new": note("new", "New", 5, staged=True, change_id=new["change_id"]),
        "kept": note("kept", "Kept", 6),
    }
    assert (kept.read_text(), changed.read_text()) == ("# Kept", "# Old")


async def test_in_review_mode_a_deletion_waits_and_is_listed(tmp_path: Path) -> None:
    caller = Caller(tmp_path, REVIEWED)
    file, _ = on_disk(caller, "a", "# A"), on_disk(caller, "b", "# B")

    answer = await caller.value(TOOL, action="delete", name="a")
    read = await caller.problem(TOOL, action="read", name="a")
    again = await caller.problem(TOOL, action="delete", name="a")
    near = await caller.problem(TOOL, action="read", name="aa")

    id = answer["change_id"]
    assert (answer["deleted"], answer["staged"]) == (False, True)
    assert answer["message"].splitlines()[-1] == f"Once applied: Deleted {file}."
    assert await listed(caller) == [note("a", "A", 3, staged=True, change_id=id, deleted=True), note("b", "B", 3)]
    assert read == again
    assert read.splitlines() == [
        "there is no project memory 'a' any more",
        f"Change {id}, which waits for the user, deletes it; write makes it again.",
        "[E_NOT_FOUND]",
    ]
    assert near.splitlines()[1] == "There are b."
    assert file.read_text() == "# A"


async def test_a_note_can_be_written_anew_where_its_deletion_waits(tmp_path: Path) -> None:
    caller = Caller(tmp_path, REVIEWED)
    file = on_disk(caller, "a", "# A")
    await caller.value(TOOL, action="delete", name="a")

    again = await caller.value(TOOL, action="append", name="a", content="# Other")

    (change,) = caller.gateway.changes.review.oldest_first("local")
    assert (change.id, change.kind, change.path) == (again["change_id"], "change", file)
    assert await listed(caller) == [note("a", "Other", 7, staged=True, change_id=change.id)]


async def test_a_deletion_that_the_user_applies_is_made_and_journaled(tmp_path: Path) -> None:
    caller = Caller(tmp_path, REVIEWED)
    file = on_disk(caller, "a", "# A")
    answer = await caller.value(TOOL, action="delete", name="a")

    await caller.gateway.changes.review.apply(answer["change_id"])

    journal = caller.gateway.changes.review.journal
    (change,) = journal.records.newest_first()
    assert not file.exists()
    assert await listed(caller) == []
    assert (change.author.tool, change.path, change.after) == (TOOL, file, None)
    assert change.before is not None and journal.blobs.read(change.before.sha256) == b"# A"


async def test_deleting_a_note_that_only_waits_takes_it_back(tmp_path: Path) -> None:
    caller = Caller(tmp_path, REVIEWED)
    await caller.value(TOOL, action="write", name="a", content="x")

    answer = await caller.value(TOOL, action="delete", name="a")

    assert (answer["deleted"], answer["staged"]) == (True, False)
    assert answer["message"].startswith("There is no such file on disk: nothing waits for review now.")
    assert await listed(caller) == []
    assert caller.gateway.changes.review.oldest_first("local") == []


@pytest.mark.parametrize(("session", "principal"), [("two", "ada"), ("two", "other"), ("two", "local")])
async def test_r_http_3_what_waits_of_another_session_is_not_listed(
    tmp_path: Path, session: str, principal: str
) -> None:
    caller = Caller(tmp_path, REVIEWED, principal="ada")
    on_disk(caller, "old", "# Old")
    on_disk(caller, "gone", "# Old")
    for action, name in (("write", "new"), ("write", "old"), ("delete", "gone")):
        await caller.value(TOOL, action=action, name=name, content="# Secret")

    caller.session, caller.principal = session, principal

    assert await listed(caller) == [note("gone", "Old", 5), note("old", "Old", 5)]


async def test_in_plan_mode_notes_are_read_and_none_is_changed(tmp_path: Path) -> None:
    caller = Caller(tmp_path, {"mode": "plan"})
    file = caller.project / ".goa" / "memory" / "a.md"
    file.parent.mkdir(parents=True)
    file.write_text("# A")

    there = await caller.value(TOOL, action="list")
    read = await caller.value(TOOL, action="read", name="a")
    refused = [
        await caller.problem(TOOL, action=action, name="a", content="x") for action in ("write", "append", "delete")
    ]

    assert [one["name"] for one in there["memories"]] == ["a"]
    assert read["content"] == "# A"
    assert all(problem.endswith("[E_PLAN_MODE]") for problem in refused)
    assert file.read_text() == "# A"


async def resource(caller: Caller) -> Any:
    ctx = ToolContext(call_id="r", session_key=caller.session, principal=caller.principal)
    for provider in caller.gateway.resources.providers:
        reading = await provider.read("goat://memory", ctx)
        if reading is not None:
            return json.loads(reading.text)
    return None


async def test_the_list_is_the_resource_and_changes_of_it_are_announced(tmp_path: Path) -> None:
    caller = Caller(tmp_path)
    changed: list[str] = []
    caller.gateway.announcements.listen(lambda uri, principal: changed.append(uri))
    await caller.value(TOOL, action="write", name="a", content="# A\n")

    answer = await caller.value(TOOL, action="list")

    assert await resource(caller) == answer
    assert changed.count("goat://memory") == 1


@pytest.mark.parametrize(("max_chars", "notes"), [(None, 700), (6_000, 150), (1_000, 60)])
async def test_a_long_list_comes_in_pages_of_whole_notes(tmp_path: Path, max_chars: int | None, notes: int) -> None:
    caller = Caller(tmp_path, {"output": {"max_chars": max_chars}} if max_chars else {})
    folder = caller.project / ".goa" / "memory"
    folder.mkdir(parents=True)
    for number in range(notes):
        (folder / f"note-{number:03}.md").write_text(f"# {'Über ' * 20}{number}\n")
        os.utime(folder / f"note-{number:03}.md", (number, number))

    pages: list[Any] = [{"nextOffset": 0}]
    while "nextOffset" in pages[-1]:
        result = await caller.call(TOOL, action="list", offset=pages[-1]["nextOffset"])
        pages.append(json.loads(result.text))
        assert (result.is_error, result.structured) == (False, pages[-1])
    del pages[0]
    names = [memory["name"] for page in pages for memory in page["memories"]]

    assert names == [f"note-{number:03}" for number in reversed(range(notes))]
    assert pages[0]["left"] == notes - len(pages[0]["memories"]) == notes - pages[0]["nextOffset"]
    assert pages[-1].keys() == {"memories"}
    assert (await caller.value(TOOL, action="list", offset=5_000)) == {"memories": []}


async def test_the_resource_says_how_many_it_leaves_out(tmp_path: Path) -> None:
    caller = Caller(tmp_path)
    folder = caller.project / ".goa" / "memory"
    folder.mkdir(parents=True)
    for number in range(700):
        (folder / f"note-{number:03}.md").write_text("x")

    listed = await resource(caller)

    assert (len(listed["memories"]), listed["left"], listed["nextOffset"]) == (500, 200, 500)


async def test_there_is_no_such_resource_where_the_tool_is_off(tmp_path: Path) -> None:
    assert await resource(Caller(tmp_path, {"catalog": {"toolsets": ["core"]}})) is None


async def test_where_the_user_wants_it_instructions_name_the_notes(tmp_path: Path) -> None:
    caller = Caller(tmp_path, {"tools": {"memento": {"in_instructions": True}}})
    folder = caller.project / ".goa" / "memory"
    folder.mkdir(parents=True)
    for number in range(100):
        (folder / f"note-{number:03}.md").write_text(f"# About {number}\n[2Jhidden\n")
        os.utime(folder / f"note-{number:03}.md", (number, number))

    told = caller.gateway.on_demand.more_instructions(INSTRUCTIONS_CHARS - len(INSTRUCTIONS))

    assert told.splitlines()[3] == "- note-099 (project): About 99"
    assert len(INSTRUCTIONS) + len(told) <= 2_000
    assert Caller(tmp_path).gateway.on_demand.more_instructions(1_000) == ""
