"""file-system: reading and writing by Goondan's names, and every gate of Read and Write in front of it.

Contract: tools.md, section 3 ("relative to `workdir` allowed; jail and Write's gates hold"); R-FILE-1 to 9.
"""

from __future__ import annotations

import base64
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.elicitation import Answer, Form, Reply
from tests.manifests.calling import Caller

pytestmark = pytest.mark.anyio

READ, WRITE = "file-system__read", "file-system__write"


def code(problem: str) -> str:
    return problem.splitlines()[-1].strip("[]")


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


# --- reading


@pytest.mark.parametrize("path", ["docs/a.md", "./docs/../docs/a.md", "@docs/a.md", "{project}/docs/a.md"])
async def test_a_file_is_read_by_a_relative_path_or_a_whole_one(tmp_path: Path, path: str) -> None:
    caller = Caller(tmp_path)
    file = caller.project / "docs" / "a.md"
    file.parent.mkdir()
    file.write_bytes(b"one\r\ntwo")

    value = await caller.value(READ, path=path.format(project=caller.project))

    assert value["content"] == "one\r\ntwo"
    assert (value["encoding"], value["size"], value["truncated"]) == ("utf-8", 8, False)


@pytest.mark.parametrize(
    ("data", "arguments", "content", "encoding"),
    [
        ("ключ".encode(), {}, "ключ", "utf-8"),
        ("\ufeffü".encode("utf-16-le"), {}, "ü", "utf-16-le"),
        ("ü".encode("cp1252"), {"encoding": "cp1252"}, "ü", "cp1252"),
        ("ü".encode("utf-16-le"), {"encoding": "utf16le"}, "ü", "utf-16-le"),
        (b"\0\xff", {"encoding": "base64"}, base64.b64encode(b"\0\xff").decode(), "base64"),
        (b"", {}, "", "utf-8"),
    ],
)
async def test_the_encoding_is_found_or_asked_for(
    tmp_path: Path, data: bytes, arguments: dict[str, Any], content: str, encoding: str
) -> None:
    caller = Caller(tmp_path)
    (caller.project / "f").write_bytes(data)

    value = await caller.value(READ, path="f", **arguments)

    assert (value["content"], value["encoding"]) == (content, encoding)


@pytest.mark.parametrize(("max_bytes", "content"), [(1, "a"), (2, "a"), (3, "aü"), (4, "aü"), (6, "aü€"), (99, "aü€")])
async def test_a_cut_never_goes_through_a_character(tmp_path: Path, max_bytes: int, content: str) -> None:
    caller = Caller(tmp_path)
    (caller.project / "f").write_bytes("aü€".encode())

    value = await caller.value(READ, path="f", maxBytes=max_bytes)

    assert (value["content"], value["truncated"], value["encoding"]) == (content, max_bytes < 6, "utf-8")


@pytest.mark.parametrize(
    ("encoding", "told"),
    [
        ("rot13", "E_INPUT"),
        ("zip", "E_INPUT"),
        ("no such", "E_INPUT"),
        ("../../os", "E_INPUT"),
        ("a\0b", "E_INPUT"),
        ("ascii", "E_ENCODING"),
    ],
)
async def test_an_encoding_that_is_none_of_text_is_refused(tmp_path: Path, encoding: str, told: str) -> None:
    caller = Caller(tmp_path)
    (caller.project / "f").write_bytes("ü".encode())

    assert code(await caller.problem(READ, path="f", encoding=encoding)) == told


async def test_a_binary_file_is_refused_with_the_way_to_its_bytes(tmp_path: Path) -> None:
    caller = Caller(tmp_path)
    (caller.project / "f").write_bytes(b"\x7fELF\0\0\0")

    problem = await caller.problem(READ, path="f")

    assert code(problem) == "E_BINARY"
    assert "Set encoding to base64" in problem


# --- writing


async def test_a_new_file_is_created_with_its_folders(tmp_path: Path) -> None:
    caller = Caller(tmp_path)

    value = await caller.value(WRITE, path="a/b.txt", content="x\n")

    assert (caller.project / "a" / "b.txt").read_bytes() == b"x\n"
    assert (value["written"], value["type"], value["path"]) == (True, "create", f"{caller.project}/a/b.txt")


async def test_what_was_read_may_be_replaced(tmp_path: Path) -> None:
    caller = Caller(tmp_path)
    (caller.project / "f").write_bytes(b"old\r\n")
    await caller.value(READ, path="f")

    value = await caller.value(WRITE, path="f", content="new\nnewer\n")

    assert (caller.project / "f").read_bytes() == b"new\r\nnewer\r\n"
    assert value["message"].startswith(f"Updated {caller.project}/f (2 lines, +2 -1, CRLF kept).")


async def test_appending_adds_literally_with_the_files_line_ends_and_encoding(tmp_path: Path) -> None:
    caller = Caller(tmp_path)
    (caller.project / "f").write_bytes("\ufeffü\r\n".encode("utf-16-le"))
    await caller.value(READ, path="f")

    for content in ("ä\n", "\\1 $&"):
        value = await caller.value(WRITE, path="f", content=content, append=True)

    assert (caller.project / "f").read_bytes() == "\ufeffü\r\nä\r\n\\1 $&".encode("utf-16-le")
    assert value["type"] == "append"


async def test_appending_creates_what_is_not_there_and_adding_nothing_changes_nothing(tmp_path: Path) -> None:
    caller = Caller(tmp_path)

    created = await caller.value(WRITE, path="f", content="a", append="true")
    unchanged = await caller.value(WRITE, path="f", content="", append=True)

    assert (created["type"], unchanged["type"]) == ("create", "unchanged")
    assert (caller.project / "f").read_bytes() == b"a"


@pytest.mark.parametrize("append", [False, True])
async def test_r_file_8_a_file_that_was_not_read_is_not_written(tmp_path: Path, append: bool) -> None:
    caller = Caller(tmp_path)
    (caller.project / "f").write_text("old")

    assert code(await caller.problem(WRITE, path="f", content="x", append=append)) == "E_NOT_READ"
    assert (caller.project / "f").read_text() == "old"


async def test_another_session_has_not_read_what_this_one_has(tmp_path: Path) -> None:
    caller = Caller(tmp_path)
    (caller.project / "f").write_text("old")
    await caller.value(READ, path="f")
    caller.session = "another"

    assert code(await caller.problem(WRITE, path="f", content="x")) == "E_NOT_READ"


async def test_a_file_changed_since_it_was_read_is_not_replaced_but_added_to_saying_so(tmp_path: Path) -> None:
    caller = Caller(tmp_path)
    file = caller.project / "f"
    file.write_text("old\n")
    await caller.value(READ, path="f")
    file.write_text("newer\n")

    assert code(await caller.problem(WRITE, path="f", content="x")) == "E_STALE"
    added = await caller.value(WRITE, path="f", content="x\n", append=True)

    assert file.read_text() == "newer\nx\n"
    assert "had changed since you read it" in added["message"]


async def test_read_and_write_share_what_was_read_with_the_built_in_tools(tmp_path: Path) -> None:
    caller = Caller(tmp_path)
    file = caller.project / "f"
    file.write_text("a = 1\n")

    await caller.value(READ, path="f")
    edited = await caller.call("Edit", file_path=str(file), old_string="1", new_string="2")
    await caller.value(WRITE, path="f", content="a = 3\n")
    again = await caller.call("Write", file_path=str(file), content="a = 4\n")

    assert (edited.is_error, again.is_error, file.read_text()) == (False, False, "a = 4\n")


@pytest.mark.parametrize("append", [False, True])
async def test_what_was_written_can_be_undone(tmp_path: Path, append: bool) -> None:
    caller = Caller(tmp_path)
    file = caller.project / "f"
    file.write_text("old\n")
    await caller.value(READ, path="f")

    await caller.value(WRITE, path="f", content="new\n", append=append)

    journal = caller.gateway.changes.review.journal
    (change,) = journal.records.newest_first()
    assert (change.path, change.author.tool) == (file, "file-system__write")
    assert change.before is not None
    assert journal.blobs.read(change.before.sha256) == b"old\n"


async def test_placeholders_are_told_of_when_they_are_added(tmp_path: Path) -> None:
    caller = Caller(tmp_path, {"files": {"placeholder_check": "refuse"}})
    (caller.project / "f").write_text("a\n")
    await caller.value(READ, path="f")

    problem = await caller.problem(WRITE, path="f", content="# ... rest of code ...\n", append=True)

    assert code(problem) == "E_PLACEHOLDER"


async def test_in_review_mode_a_change_waits_and_is_what_its_session_reads(tmp_path: Path) -> None:
    caller = Caller(tmp_path, {"files": {"review_mode": True}})
    file = caller.project / "f"
    file.write_text("old\n")
    await caller.value(READ, path="f")

    written = await caller.value(WRITE, path="f", content="more\n", append=True)
    read = await caller.value(READ, path="f")

    assert (written["written"], written["staged"], file.read_text()) == (False, True, "old\n")
    assert read["content"] == "old\nmore\n"
    assert "waits for the user" in read["notices"][0]


@pytest.mark.parametrize("append", [True, False])
async def test_a_change_that_waits_is_listed_under_the_tool_that_last_made_it(tmp_path: Path, append: bool) -> None:
    caller = Caller(tmp_path, {"files": {"review_mode": True}})
    await caller.call("Write", file_path="@f", content="first\n")

    await caller.value(WRITE, path="f", content="more\n", append=append)

    (waiting,) = caller.gateway.changes.review.oldest_first("local")
    assert waiting.author.tool == "file-system__write"


# --- what an enemy would try


@pytest.mark.parametrize(
    "path",
    [
        *("../secret", "/etc/passwd", "a/../../secret", "@../secret", "@/../secret", "{project}/../secret"),
        *("{project}-evil/f", "out", "out/deep", "out-folder/secret", "./out", "/proc/self/environ", "//etc/passwd"),
    ],
)
@pytest.mark.parametrize("tool", [READ, WRITE, "append"])
async def test_r_file_1_nothing_outside_the_workspace_is_read_or_written(tmp_path: Path, path: str, tool: str) -> None:
    caller = Caller(tmp_path)
    (tmp_path / "secret").write_text("canary")
    (tmp_path / "project-evil").mkdir()
    (tmp_path / "project-evil" / "f").write_text("canary")
    (caller.project / "out").symlink_to(tmp_path / "secret")
    (caller.project / "out-folder").symlink_to(tmp_path)

    arguments = {} if tool == READ else {"content": "x", "append": tool == "append"}
    problem = await caller.problem(
        READ if tool == READ else WRITE, path=path.format(project=caller.project), **arguments
    )

    assert "canary" not in problem
    assert (tmp_path / "secret").read_text() == "canary"
    assert (tmp_path / "project-evil" / "f").read_text() == "canary"


@pytest.mark.parametrize("path", ["", "a\0b", "~/x", "$HOME/x", "file:///etc/passwd", "\ud800"])
@pytest.mark.parametrize("tool", [READ, WRITE])
async def test_odd_paths_are_refused_or_taken_literally(tmp_path: Path, path: str, tool: str) -> None:
    caller = Caller(tmp_path)

    result = await caller.call(tool, path=path, **({"content": "x"} if tool == WRITE else {}))

    assert "E_INTERNAL" not in result.text
    assert names_in(tmp_path) == ["project", "state"]


@pytest.mark.parametrize("rule", ["Read(./secret/**)", "file-system__read(./secret/**)", "Read", "file-system__read"])
@pytest.mark.parametrize("path", ["secret/key", "docs/../secret/key", "@secret/key", "link"])
async def test_r_file_5_what_may_not_be_read_is_not_read(tmp_path: Path, rule: str, path: str) -> None:
    caller = Caller(tmp_path, {"permissions": {"deny": [rule]}})
    (caller.project / "secret").mkdir()
    (caller.project / "docs").mkdir()
    (caller.project / "secret" / "key").write_text("canary")
    (caller.project / "link").symlink_to("secret/key")

    problem = await caller.problem(READ, path=path)

    assert "canary" not in problem


@pytest.mark.parametrize(
    "rule",
    ["Read(./src/**)", "Edit(./src/**)", "Write(./src/**)", "file-system__write(./src/**)", "Write"],
)
@pytest.mark.parametrize("path", ["src/new", "src/old", "link"])
@pytest.mark.parametrize("append", [False, True])
async def test_r_file_5_what_may_not_be_edited_is_not_written(
    tmp_path: Path, rule: str, path: str, append: bool
) -> None:
    caller = Caller(tmp_path, {"permissions": {"deny": [rule]}, "files": {"read_before_write": "off"}})
    (caller.project / "src").mkdir()
    (caller.project / "src" / "old").write_text("old")
    (caller.project / "link").symlink_to("src/old")

    await caller.problem(WRITE, path=path, content="x", append=append)

    assert [file.name for file in (caller.project / "src").iterdir()] == ["old"]
    assert (caller.project / "src" / "old").read_text() == "old"


@pytest.mark.parametrize("rule", ["Edit(./src/**)", "Write(./src/**)", "Read(./src/**)"])
async def test_a_rule_that_asks_about_write_asks_about_this_one(tmp_path: Path, rule: str) -> None:
    asked: list[Form] = []

    async def decline(form: Form) -> Answer:
        asked.append(form)
        return Answer(Reply.DECLINED)

    caller = Caller(tmp_path, {"permissions": {"ask": [rule]}}, decline)

    assert code(await caller.problem(WRITE, path="src/a", content="x")) == "E_PERMISSION"
    assert len(asked) == 1


async def test_a_rule_that_allows_edits_of_a_folder_allows_these_and_no_others(tmp_path: Path) -> None:
    caller = Caller(tmp_path, {"permissions": {"allow": ["Edit(./src/**)"]}, "mode": "dontAsk"})

    await caller.value(WRITE, path="src/a", content="x")

    assert code(await caller.problem(WRITE, path="a", content="x")) == "E_PERMISSION"


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", "hook", ".mcp.json"])
async def test_r_file_9_what_is_protected_is_written_by_nobody_unasked(tmp_path: Path, path: str) -> None:
    caller = Caller(tmp_path, {"mode": "bypassPermissions"})
    (caller.project / ".git" / "hooks").mkdir(parents=True)
    (caller.project / "hook").symlink_to(".git/hooks/pre-commit")

    assert code(await caller.problem(WRITE, path=path, content="#!/bin/sh\n")) == "E_APPROVAL_PENDING"
    assert list((caller.project / ".git" / "hooks").iterdir()) == []


async def test_plan_mode_refuses_to_write_and_reads(tmp_path: Path) -> None:
    caller = Caller(tmp_path, {"mode": "plan"})
    (caller.project / "f").write_text("a")

    assert (await caller.value(READ, path="f"))["content"] == "a"
    assert code(await caller.problem(WRITE, path="g", content="x")) == "E_PLAN_MODE"


async def test_r_file_7_a_file_of_several_names_is_not_written(tmp_path: Path) -> None:
    caller = Caller(tmp_path, {"files": {"read_before_write": "off"}})
    (tmp_path / "outside").write_text("old")
    os.link(tmp_path / "outside", caller.project / "inside")

    for append in (False, True):
        assert code(await caller.problem(WRITE, path="inside", content="x", append=append)) == "E_HARD_LINKED"
    assert (tmp_path / "outside").read_text() == "old"


async def test_only_regular_files_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = Caller(tmp_path)
    os.mkfifo(caller.project / "fifo")
    (caller.project / "folder").mkdir()
    listener = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(caller.project)  # its whole path may be too long for a socket's
    listener.bind("socket")

    with listener:
        problems = {
            name: code(await caller.problem(READ, path=name)) for name in ("fifo", "folder", "socket", "no-such")
        }

    assert problems["fifo"] == "E_NOT_REGULAR"
    assert problems["folder"] == "E_DIRECTORY"
    assert problems["no-such"] == "E_NOT_FOUND"
    assert problems["socket"] in ("E_NOT_REGULAR", "E_IO")


async def test_the_servers_own_state_is_neither_read_nor_written(tmp_path: Path) -> None:
    caller = Caller(tmp_path, {"workspace": [tmp_path]})
    (tmp_path / "state").mkdir(exist_ok=True)
    (tmp_path / "state" / "audit.jsonl").write_text("canary")

    assert "canary" not in await caller.problem(READ, path="state/audit.jsonl")
    await caller.problem(WRITE, path="state/x", content="x")
    assert not (tmp_path / "state" / "x").exists()


async def test_rules_and_hooks_see_the_whole_path(tmp_path: Path) -> None:
    tool = Caller(tmp_path).gateway.registry.get(READ)

    assert tool is not None
    assert tool.access({"path": "a/../b"}).asked == (f"{tmp_path}/project/b",)


async def test_a_link_inside_stays_a_link_and_its_file_changes(tmp_path: Path) -> None:
    caller = Caller(tmp_path)
    (caller.project / "real").write_text("old")
    (caller.project / "link").symlink_to("real")
    await caller.value(READ, path="link")

    await caller.value(WRITE, path="link", content="+", append=True)

    assert (caller.project / "link").is_symlink()
    assert (caller.project / "real").read_text() == "old+"
