"""`files.git_stage`: what tools write is staged, and nothing that git says or runs can harm the write."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.manifests.calling import Caller

pytestmark = pytest.mark.anyio

ON: dict[str, Any] = {"files": {"git_stage": "on", "read_before_write": "off"}}


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def repository(tmp_path: Path, settings: dict[str, Any] = ON) -> Caller:
    """With two tracked files, `a` and `*`."""
    caller = Caller(tmp_path, settings)
    git(caller.project, "init", "-q")
    for name in ("a", "*"):
        (caller.project / name).write_text("old\n")
    git(caller.project, "add", ".")
    git(caller.project, "commit", "-qm", "first")
    return caller


def staged(caller: Caller) -> list[str]:
    return git(caller.project, "diff", "--cached", "--name-only").split()


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Write", {"file_path": "@a", "content": "new\n"}),
        ("Edit", {"file_path": "@a", "old_string": "old", "new_string": "new"}),
        ("file-system__write", {"path": "a", "content": "more\n", "append": True}),
    ],
)
async def test_a_tracked_file_is_staged_once_it_is_written(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    caller = repository(tmp_path)

    result = await caller.call(tool, **arguments)

    assert "staged with git" in result.text
    assert staged(caller) == ["a"]


async def test_names_that_are_patterns_stage_only_themselves(tmp_path: Path) -> None:
    caller = repository(tmp_path)
    (caller.project / "a").write_text("the user's own change\n")

    await caller.call("Write", file_path="@*", content="new\n")

    assert staged(caller) == ["*"]


async def test_an_untracked_file_and_one_outside_of_a_repository_are_left_alone(tmp_path: Path) -> None:
    caller = repository(tmp_path)
    elsewhere = Caller(tmp_path, {**ON, "workspace": [tmp_path]})

    results = [
        await caller.call("Write", file_path="@new", content="x"),
        await elsewhere.call("Write", file_path="@outside", content="x"),
    ]

    assert [(result.is_error, "git" in result.text) for result in results] == [(False, False), (False, False)]
    assert staged(caller) == []


async def test_it_is_off_unless_the_user_wants_it(tmp_path: Path) -> None:
    caller = repository(tmp_path, {"files": {"read_before_write": "off"}})

    await caller.call("Write", file_path="@a", content="new\n")

    assert staged(caller) == []


@pytest.mark.parametrize("what", ["locked index", "broken index"])
async def test_what_cannot_be_staged_is_written_all_the_same(tmp_path: Path, what: str) -> None:
    caller = repository(tmp_path)
    if what == "locked index":
        (caller.project / ".git" / "index.lock").touch()
    else:
        (caller.project / ".git" / "index").write_bytes(b"nonsense")

    result = await caller.call("Write", file_path="@a", content="new\n")

    assert not result.is_error
    assert "not staged with git" in result.text
    assert (caller.project / "a").read_text() == "new\n"


async def test_r_shell_4_nothing_that_the_repository_names_is_run(tmp_path: Path) -> None:
    caller = repository(tmp_path)
    trap = f"touch {tmp_path}/run"
    (caller.project / ".gitattributes").write_text("a filter=evil\n")
    for key in ("filter.evil.clean", "filter.evil.process", "core.fsmonitor"):
        git(caller.project, "config", key, trap)
    hook = caller.project / ".git" / "hooks" / "post-index-change"
    hook.write_text(f"#!/bin/sh\n{trap}\n")
    hook.chmod(0o755)

    filtered = await caller.call("Write", file_path="@a", content="new\n")
    plain = await caller.call("Write", file_path="@*", content="new\n")

    assert "the repository filters this file" in filtered.text
    assert "[staged with git]" in plain.text
    assert not (tmp_path / "run").exists()


async def test_in_review_mode_nothing_is_staged_with_git_before_it_is_written(tmp_path: Path) -> None:
    caller = repository(tmp_path, {"files": {**ON["files"], "review_mode": True}})

    await caller.call("Write", file_path="@a", content="new\n")

    assert staged(caller) == []


async def test_a_file_with_a_merge_conflict_is_left_to_the_user(tmp_path: Path) -> None:
    caller = repository(tmp_path)
    git(caller.project, "checkout", "-qb", "other")
    for branch, text in (("other", "theirs\n"), ("-", "ours\n")):
        git(caller.project, "checkout", "-q", *([] if branch == "other" else ["-"]))
        (caller.project / "a").write_text(text)
        git(caller.project, "commit", "-qam", text)
    with pytest.raises(subprocess.CalledProcessError):
        git(caller.project, "merge", "-q", "other")
    unmerged = git(caller.project, "ls-files", "-u")

    result = await caller.call("Edit", file_path="@a", old_string="theirs", new_string="repaired")

    assert "not staged with git: the file has a merge conflict" in result.text
    assert "repaired" in (caller.project / "a").read_text()
    assert (git(caller.project, "ls-files", "-u"), unmerged.count("\n")) == (unmerged, 3)


async def test_a_file_of_which_the_user_had_staged_a_part_is_left_alone(tmp_path: Path) -> None:
    caller = repository(tmp_path)
    (caller.project / "a").write_text("staged\n")
    git(caller.project, "add", "a")
    (caller.project / "a").write_text("staged\nnot staged\n")

    result = await caller.call("Edit", file_path="@a", old_string="not staged", new_string="edited")

    assert "not staged with git: of this file only a part was staged" in result.text
    assert git(caller.project, "show", ":a") == "staged\n"


async def test_a_file_that_was_wholly_staged_before_is_staged_again_whatever_its_line_ends(tmp_path: Path) -> None:
    caller = repository(tmp_path)
    (caller.project / ".gitattributes").write_text("a text eol=crlf\n")
    (caller.project / "a").write_bytes(b"staged\r\n")
    git(caller.project, "add", "a")

    first = await caller.call("Edit", file_path="@a", old_string="staged", new_string="edited")
    second = await caller.call("Edit", file_path="@a", old_string="edited", new_string="edited again")

    assert [("[staged with git]" in one.text) for one in (first, second)] == [True, True]
    assert git(caller.project, "show", ":a") == "edited again\n"
