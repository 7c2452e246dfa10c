"""memento: the files of notes are judged as any other file is, and no link leads to one. R-FILE-5, R-FILE-9."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.permissions.approval import ALLOW_ONCE, DECISION
from goat_mcp.core.elicitation import Answer, Form, Reply
from tests.manifests.calling import Caller

pytestmark = pytest.mark.anyio

TOOL = "memento__note"
CHANGES: list[dict[str, Any]] = [
    {"action": "write", "content": "evil"},
    {"action": "append", "content": "evil"},
    {"action": "delete"},
]


class Refusing:
    """Says no, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Form] = []

    async def __call__(self, form: Form) -> Answer:
        self.asked.append(form)
        return Answer(Reply.ACCEPTED, {DECISION: "deny"})


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "goat-mcp" / "memory"


def notes_of(caller: Caller) -> Path:
    folder = caller.project / ".goa" / "memory"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
@pytest.mark.parametrize("arguments", [{"action": "read"}, *CHANGES], ids=lambda given: given["action"])
async def test_a_note_that_is_a_link_is_refused_and_what_it_leads_to_stays(
    tmp_path: Path, arguments: dict[str, Any], mode: str
) -> None:
    caller = Caller(tmp_path, {"mode": mode})
    git_config = caller.project / ".git" / "config"
    git_config.parent.mkdir()
    git_config.write_text("canary")
    (notes_of(caller) / "todo.md").symlink_to("../../.git/config")

    problem = await caller.problem(TOOL, name="todo", **arguments)

    assert problem.endswith("[E_NOT_REGULAR]")
    assert git_config.read_text() == "canary"


@pytest.mark.parametrize("link", [".goa", ".goa/memory"])
@pytest.mark.parametrize("arguments", [{"action": "read"}, *CHANGES], ids=lambda given: given["action"])
async def test_a_folder_that_is_a_link_is_refused_within_the_project_too(
    tmp_path: Path, arguments: dict[str, Any], link: str
) -> None:
    caller = Caller(tmp_path)
    hooks = caller.project / ".git" / "hooks"
    (hooks / "memory").mkdir(parents=True)
    (caller.project / link).parent.mkdir(exist_ok=True)
    (caller.project / link).symlink_to(hooks)
    (hooks / "a.md").write_text("canary")

    problem = await caller.problem(TOOL, name="a", **arguments)
    listed = await caller.value(TOOL, action="list")

    assert problem.endswith("[E_NOT_REGULAR]")
    assert listed == {"memories": []}
    assert sorted(path.name for path in hooks.rglob("*")) == ["a.md", "memory"]
    assert (hooks / "a.md").read_text() == "canary"


async def test_links_among_the_notes_are_not_listed(tmp_path: Path) -> None:
    caller = Caller(tmp_path)
    (caller.project / "secret.md").write_text("# canary")
    (notes_of(caller) / "a.md").symlink_to("../../secret.md")

    assert await caller.value(TOOL, action="list", scope="project") == {"memories": []}


async def test_r_perm_2_a_note_that_becomes_a_link_while_a_person_is_asked_is_refused(tmp_path: Path) -> None:
    async def swap_and_allow(form: Form) -> Answer:
        (notes_of(caller) / "a.md").symlink_to("../../.bashrc")
        return Answer(Reply.ACCEPTED, {DECISION: ALLOW_ONCE})

    caller = Caller(tmp_path, {"permissions": {"ask": ["Edit(.goa/**)"]}}, swap_and_allow)
    notes_of(caller)
    problem = await caller.problem(TOOL, action="write", name="a", content="evil")

    assert problem.endswith("[E_NOT_REGULAR]")
    assert not (caller.project / ".bashrc").exists()


@pytest.mark.parametrize(
    "rule", ["Edit(.goa/**)", "Edit(.goa/memory/a.md)", "Read(.goa/**)", "Write(.goa/**)", "Write"]
)
@pytest.mark.parametrize("arguments", CHANGES, ids=lambda given: given["action"])
async def test_rules_that_ask_about_changed_files_ask_about_notes(
    tmp_path: Path, arguments: dict[str, Any], rule: str
) -> None:
    person = Refusing()
    caller = Caller(tmp_path, {"permissions": {"ask": [rule]}}, person)
    note = notes_of(caller) / "a.md"
    note.write_text("before")

    problem = await caller.problem(TOOL, name="a", **arguments)

    assert problem.endswith("[E_PERMISSION]")
    assert len(person.asked) == 1
    assert note.read_text() == "before"


@pytest.mark.parametrize("rule", ["Read(.goa/memory/secret*)", "Read"])
async def test_rules_that_ask_about_read_files_ask_about_notes(tmp_path: Path, rule: str) -> None:
    person = Refusing()
    caller = Caller(tmp_path, {"permissions": {"ask": [rule]}}, person)
    (notes_of(caller) / "secret-1.md").write_text("canary")

    problem = await caller.problem(TOOL, action="read", name="secret 1")

    assert problem.endswith("[E_PERMISSION]")
    assert len(person.asked) == 1


@pytest.mark.parametrize("effect", ["ask", "deny"])
async def test_notes_that_may_not_be_read_unasked_are_not_listed(tmp_path: Path, effect: str) -> None:
    caller = Caller(tmp_path, {"permissions": {effect: ["Read(.goa/memory/secret*)"]}})
    (notes_of(caller) / "secret-1.md").write_text("# canary")
    (notes_of(caller) / "b.md").write_text("# shown")

    listed = await caller.value(TOOL, action="list")
    by_command = await caller.value("goa_command__run", command="memory list")

    assert [one["heading"] for one in listed["memories"]] == ["shown"]
    assert [one["heading"] for one in by_command["memories"]] == ["shown"]


@pytest.mark.parametrize(
    ("denied", "arguments"),
    [
        ("Read", {"action": "read", "name": "a"}),
        ("Read", {"action": "list"}),
        ("Read", {"action": "read", "name": "a", "scope": "global"}),
        ("Write", {"action": "write", "name": "a", "content": "x"}),
        ("Write", {"action": "delete", "name": "a"}),
        ("Write", {"action": "append", "name": "a", "content": "x", "scope": "global"}),
    ],
)
async def test_who_denies_a_tool_of_files_denies_what_notes_do_as_it(
    tmp_path: Path, denied: str, arguments: dict[str, Any]
) -> None:
    caller = Caller(tmp_path, {"permissions": {"deny": [denied]}})
    note = notes_of(caller) / "a.md"
    note.write_text("before")

    assert (await caller.problem(TOOL, **arguments)).endswith("[E_PERMISSION]")
    assert note.read_text() == "before"


async def test_accept_edits_lets_project_notes_be_written_and_asks_about_the_users(
    tmp_path: Path, config: Path
) -> None:
    person = Refusing()
    caller = Caller(tmp_path, {"mode": "acceptEdits", "approval": "elicit"}, person)

    await caller.value(TOOL, action="write", name="a", content="x")
    problem = await caller.problem(TOOL, action="write", name="a", content="x", scope="global")

    assert "[E_PERMISSION]" in problem
    assert len(person.asked) == 1
    assert not list(config.parent.glob("memory/*"))


@pytest.mark.parametrize("folder", [".config", "elsewhere"])
async def test_the_users_notes_can_be_written_with_nobody_to_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """As over stdio, where the host asks. `.config` is what the folder is called if nothing says otherwise."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / folder))
    caller = Caller(tmp_path, {"approval": "host"})

    for action, content in (("write", "x"), ("append", "y"), ("read", ""), ("delete", "")):
        arguments = {"content": content} if content else {}
        await caller.value(TOOL, action=action, name="a", scope="global", **arguments)


async def test_a_directory_outside_the_workspace_has_no_notes(tmp_path: Path) -> None:
    problem = await Caller(tmp_path).problem(TOOL, action="write", name="a", content="x", directory=str(tmp_path))

    assert problem.endswith("[E_PATH_OUTSIDE]")
    assert not (tmp_path / ".goa").exists()
