"""Agents in a git worktree of their own: what they may write, what is kept, what is removed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from goat_mcp.agents.loop import ToolCall
from goat_mcp.agents.worktree import WorktreeCalls
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.core.rights import NO_LIMITS
from tests.agents.scripted import Ground, ScriptedModel, ground, results_in, says, use
from tests.agents.test_background import ended, gone, id_of, pid_of, sleeper

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")]

GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run([*GIT, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def repository(folder: Path) -> None:
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("committed\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")


def traces(on: Ground) -> tuple[int, str, bool]:
    """Worktrees, branches of ours, and whether the folder is there."""
    listed = git(on.workspace, "worktree", "list").splitlines()
    return len(listed), git(on.workspace, "branch", "--list", "goat/*"), (on.workspace / ".worktrees").exists()


def where(model: ScriptedModel) -> Path:
    """The worktree an agent was told of."""
    return Path(model.requests[0].system.split("You work in ")[1].split(",")[0])


async def test_an_unchanged_worktree_is_removed_without_a_trace(tmp_path: Path) -> None:
    model = ScriptedModel([says("", use("Read", {"file_path": "@a.txt"}, "r"))])
    async with ground(tmp_path, model) as on:
        repository(on.workspace)
        result = await on.agent(isolation="worktree")

        assert traces(on) == (1, "", False)
        assert git(on.workspace, "status", "--porcelain") == ""
    assert results_in(model.requests[1].messages[-1]) == ["1\tcommitted"]
    assert "worktree" not in result.text


async def test_a_changed_worktree_is_kept_and_named_and_the_main_checkout_is_untouched(tmp_path: Path) -> None:
    write = use("Write", {"file_path": "@new.txt", "content": "new\n"}, "w")
    model = ScriptedModel([says("", write)])
    async with ground(tmp_path, model) as on:
        repository(on.workspace)
        result = await on.agent(isolation="worktree", name="fixer")

        kept = where(model)
        assert (kept / "new.txt").read_text() == "new\n"
        assert not (on.workspace / "new.txt").exists()
        assert git(on.workspace, "status", "--porcelain") == ""
        assert traces(on) == (2, f"+ goat/{kept.name}", True)
    assert kept.parent == on.workspace / ".worktrees"
    assert kept.name == f"fixer-{id_of(result)[:8]}"
    assert f"[its changes are in the worktree {kept} on branch goat/{kept.name}]" in result.text


async def test_a_commit_is_a_change_too(tmp_path: Path) -> None:
    commit = "git -c user.name=t -c user.email=t@example.org commit -q --allow-empty -m work"
    model = ScriptedModel([says("", use("Bash", {"command": commit}, "b"))])
    async with ground(tmp_path, model) as on:
        repository(on.workspace)
        result = await on.agent(isolation="worktree")

        assert git(where(model), "log", "-1", "--format=%s") == "work"
        assert git(on.workspace, "log", "-1", "--format=%s") == "first"
    assert "on branch goat/" in result.text


async def test_an_agent_in_a_worktree_writes_nowhere_else_and_is_told_where(tmp_path: Path) -> None:
    async with ground(tmp_path) as on:
        repository(on.workspace)
        outside = str(on.workspace / "a.txt")
        model = ScriptedModel(
            [says("", use("Read", {"file_path": outside}, "r")), says("", use("Write", _x(outside), "w"))]
        )
        on.use(model)
        await on.agent(isolation="worktree")

        assert (on.workspace / "a.txt").read_text() == "committed\n"
    assert results_in(model.requests[1].messages[-1]) == ["1\tcommitted"]
    assert f"it writes below {where(model)} only" in results_in(model.requests[2].messages[-1])[0]


def _x(path: str) -> dict[str, str]:
    return {"file_path": path, "content": "x"}


async def test_searches_and_the_shell_of_an_agent_begin_in_its_worktree(tmp_path: Path) -> None:
    uses = [
        use("Glob", {"pattern": "*.txt"}, "g"),
        use("Grep", {"pattern": "comm"}, "s"),
        use("Bash", {"command": "pwd"}, "b"),
    ]
    model = ScriptedModel([says("", *uses)])
    async with ground(tmp_path, model) as on:
        repository(on.workspace)
        (on.workspace / "untracked.txt").write_text("comm\n")
        await on.agent(isolation="worktree")

    expected = str(where(model))
    assert results_in(model.requests[1].messages[-1]) == [f"{expected}/a.txt", f"{expected}/a.txt", expected]


async def test_the_main_checkouts_searches_do_not_see_worktrees(tmp_path: Path) -> None:
    model = ScriptedModel([says("", use("Write", _x("@b.txt"), "w"))])
    async with ground(tmp_path, model) as on:
        repository(on.workspace)
        await on.agent(isolation="worktree")
        found = await on.call("Glob", {"pattern": "**/*.txt"})

    assert found.text == str(on.workspace / "a.txt")


async def test_a_workspace_below_its_repository_keeps_its_depth(tmp_path: Path) -> None:
    model = ScriptedModel([says("", use("Write", _x("@b.txt"), "w"))])
    async with ground(tmp_path, model) as on:
        repository(tmp_path)
        (on.workspace / "deep.txt").write_text("deep\n")
        git(tmp_path, "add", "ws/deep.txt")
        git(tmp_path, "commit", "-q", "-m", "second")
        await on.agent(isolation="worktree")

        assert (where(model) / "deep.txt").exists() and (where(model) / "b.txt").exists()
        assert where(model).parent.parent == on.workspace / ".worktrees"
        assert ".worktrees" not in git(tmp_path, "status", "--porcelain")


@pytest.mark.parametrize(("is_repository", "reason"), [(False, "no git repository"), (True, "has no commit yet")])
async def test_without_something_to_branch_from_it_is_an_error_and_nothing_stays(
    tmp_path: Path, is_repository: bool, reason: str
) -> None:
    async with ground(tmp_path, ScriptedModel()) as on:
        if is_repository:
            git(on.workspace, "init", "-q")
        result = await on.agent(isolation="worktree")

        assert not (on.workspace / ".worktrees").exists()
        assert on.left_behind() == []
        assert on.gateway.on_demand.agents().spawner.live.find(id_or_name="", principal="local") is None
    assert (result.error_code, reason in result.text) == ("E_INPUT", True)


async def test_a_folder_of_worktrees_that_the_user_ignores_already_is_left_as_it_was(tmp_path: Path) -> None:
    async with ground(tmp_path, ScriptedModel()) as on:
        repository(on.workspace)
        (on.workspace / ".gitignore").write_text(".worktrees/\n")
        (on.workspace / ".worktrees").mkdir()
        (on.workspace / ".worktrees" / "mine").mkdir()
        result = await on.agent(isolation="worktree")

        assert not result.is_error, result.text
        assert [path.name for path in (on.workspace / ".worktrees").iterdir()] == ["mine"]


async def test_an_at_sign_of_other_tools_means_what_it_says(tmp_path: Path) -> None:
    seen: list[ToolCall] = []

    async def call(calls: Sequence[ToolCall]) -> Sequence[ToolResult]:
        seen.extend(calls)
        return []

    ctx = ToolContext(call_id="c", rights=NO_LIMITS.narrowed(allowed=None, writes_below="/ws/w"))
    package = ToolCall("mcp__npm__view", {"path": "@types/node"}, ctx)
    await WorktreeCalls(call)([package, *(ToolCall("read", {"path": path}, ctx) for path in ("@/a.py", "b.py"))])

    assert [made.arguments for made in seen] == [
        {"path": "@types/node"},
        {"path": "/ws/w/a.py"},
        {"path": "/ws/w/b.py"},
    ]


async def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    async with ground(tmp_path, ScriptedModel()) as on:
        repository(on.workspace)
        (tmp_path / "elsewhere").mkdir()
        (on.workspace / ".worktrees").symlink_to(tmp_path / "elsewhere")
        result = await on.agent(isolation="worktree")

        assert list((tmp_path / "elsewhere").iterdir()) == []
    assert result.error_code == "E_PATH_OUTSIDE"


async def test_notes_of_an_agent_in_a_worktree_are_the_projects_and_make_no_change_of_it(tmp_path: Path) -> None:
    notes = [
        use("memento__note", {"action": "write", "name": "Found", "content": "Mind the gap."}, "w"),
        use("memento__note", {"action": "append", "name": "known", "content": "And this."}, "a"),
    ]
    reads = [
        use("memento__note", {"action": "read", "name": "known"}, "r"),
        use("memento__note", {"action": "list", "scope": "project"}, "l"),
        use("memento__note", {"action": "delete", "name": "old"}, "d"),
        use("Write", {"file_path": f"{tmp_path}/ws/.goa/memory/found.md", "content": "x"}, "x"),
    ]
    model = ScriptedModel([says("", *notes), says("", *reads)])
    async with ground(tmp_path, model, catalog={"toolsets": ["core", "agent", "goa"]}) as on:
        repository(on.workspace)
        kept = on.workspace / ".goa" / "memory"
        kept.mkdir(parents=True)
        (kept / "known.md").write_text("This.\n")
        (kept / "old.md").write_text("x")
        result = await on.agent(isolation="worktree")
        told = await on.call("memento__note", {"action": "read", "name": "found"})

        assert {file.name: file.read_text() for file in kept.iterdir()} == {
            "found.md": "Mind the gap.",
            "known.md": "This.\nAnd this.",
        }
        assert traces(on) == (1, "", False), result.text
    read, listed, _, written = results_in(model.requests[2].messages[-1])
    assert json.loads(read)["content"] == "This.\nAnd this."
    assert {memory["name"] for memory in json.loads(listed)["memories"]} >= {"found", "known"}
    assert "it writes below" in written
    assert told.structured is not None and told.structured["content"] == "Mind the gap."


async def test_hooks_of_the_repository_do_not_run(tmp_path: Path) -> None:
    async with ground(tmp_path, ScriptedModel()) as on:
        repository(on.workspace)
        hook = on.workspace / ".git/hooks/post-checkout"
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        hook.chmod(0o755)
        await on.agent(isolation="worktree")

    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("key", ["smudge", "clean", "process"])
@pytest.mark.parametrize("name", ["x", "with.dots=and=signs"])
async def test_filters_of_the_repository_do_not_run(tmp_path: Path, key: str, name: str) -> None:
    read = use("Read", {"file_path": "@a.txt"}, "r")
    # As long as before: git has to look into the file.
    edit = use("Edit", {"file_path": "@a.txt", "old_string": "commit", "new_string": "COMMIT"}, "e")
    async with ground(tmp_path, ScriptedModel([says("", read), says("", edit)])) as on:
        repository(on.workspace)
        filtered(on.workspace, name)
        git(on.workspace, "config", f"filter.{name}.{key}", f"touch {tmp_path}/ran; cat")
        git(on.workspace, "config", f"filter.{name}.required", "true")
        result = await on.agent(isolation="worktree")

    assert "on branch goat/" in result.text
    assert not (tmp_path / "ran").exists()


def filtered(folder: Path, name: str) -> None:
    """Name a filter for all of its text files."""
    (folder / ".gitattributes").write_text(f"*.txt filter={name}\n")
    git(folder, "add", ".gitattributes")
    git(folder, "commit", "-q", "-m", "filtered")


async def test_filters_that_only_an_agents_branch_has_do_not_run(tmp_path: Path) -> None:
    async with ground(tmp_path, ScriptedModel()) as on:
        repository(on.workspace)
        filtered(on.workspace, "x")
        (tmp_path / "included").write_text(f'[filter "x"]\n\tsmudge = touch {tmp_path}/ran; cat\n')
        git(on.workspace, "config", "includeIf.onbranch:goat/**.path", str(tmp_path / "included"))
        result = await on.agent(isolation="worktree")

    assert not result.is_error, result.text
    assert not (tmp_path / "ran").exists()


async def test_nothing_is_fetched_for_a_worktree(tmp_path: Path) -> None:
    async with ground(tmp_path, ScriptedModel()) as on:
        repository(on.workspace)
        blob = git(on.workspace, "rev-parse", "HEAD:a.txt")
        (on.workspace / ".git/objects" / blob[:2] / blob[2:]).unlink()
        for key, value in {
            "core.repositoryFormatVersion": "1",
            "extensions.partialClone": "origin",
            "remote.origin.url": str(on.workspace),
            "remote.origin.promisor": "true",
            "remote.origin.uploadpack": f"touch {tmp_path}/ran; false",
            "protocol.file.allow": "always",
        }.items():
            git(on.workspace, "config", key, value)
        result = await on.agent(isolation="worktree")

        assert traces(on) == (1, "", False)
    assert result.error_code == "E_INPUT"
    assert not (tmp_path / "ran").exists()


async def test_a_worktree_with_a_submodule_checked_out_is_kept_and_not_looked_into(tmp_path: Path) -> None:
    async with ground(tmp_path) as on:
        repository(on.workspace)
        head = git(on.workspace, "rev-parse", "HEAD")
        git(on.workspace, "update-index", "--add", "--cacheinfo", f"160000,{head},sub")
        git(on.workspace, "commit", "-q", "-m", "submodule")
        commands = (
            f"git clone -q {on.workspace} sub && cd sub && git checkout -q {head} && touch a.txt",
            f"git config core.fsmonitor 'touch {tmp_path}/ran; false'",
            # A name that is computed: a command that names such a file is asked about.
            "d=$(printf .git) && printf '*.txt filter=x' > $d/info/attributes",
            f"git config filter.x.clean 'touch {tmp_path}/ran; cat'",
        )
        model = ScriptedModel([says("", use("Bash", {"command": " && ".join(commands)}, "b"))])
        on.use(model)
        result = await on.agent(isolation="worktree")

        assert (where(model) / "sub" / "a.txt").exists()
    assert results_in(model.requests[1].messages[-1])[0].startswith("(")
    assert "on branch goat/" in result.text
    assert not (tmp_path / "ran").exists()


async def test_a_remote_machine_is_not_configured(tmp_path: Path) -> None:
    async with ground(tmp_path, ScriptedModel()) as on:
        result = await on.agent(isolation="remote")

    assert result.error_code == "E_NOT_CONFIGURED"


async def test_a_resumed_agent_goes_on_in_the_worktree_it_has_changed(tmp_path: Path) -> None:
    model = ScriptedModel(
        [says("", use("Write", _x("@b.txt"), "w")), says("one"), says("", use("Read", {"file_path": "@b.txt"}, "r"))]
    )
    async with ground(tmp_path, model) as on:
        repository(on.workspace)
        first = await on.agent(isolation="worktree")
        again = await on.agent(resume=id_of(first))

        assert traces(on)[0] == 2
    assert results_in(model.requests[3].messages[-1]) == ["1\tx"]
    assert f"in the worktree {where(model)}" in again.text


async def test_a_resumed_agent_gets_its_worktree_again_where_it_had_changed_nothing(tmp_path: Path) -> None:
    model = ScriptedModel([says("one"), says("", use("Write", _x("@b.txt"), "w"))])
    async with ground(tmp_path, model) as on:
        repository(on.workspace)
        first = await on.agent(isolation="worktree")
        between = traces(on)
        await on.agent(resume=id_of(first))

        assert (where(model) / "b.txt").exists() and not (on.workspace / "b.txt").exists()
    assert between == (1, "", False)
    assert model.requests[1].system == model.requests[0].system


async def test_agents_of_an_agent_in_a_worktree_work_there_too(tmp_path: Path) -> None:
    nested = use("Agent", {"description": "inner", "prompt": "inner"}, "n")
    apart = use("Agent", {"description": "inner", "prompt": "inner", "isolation": "worktree"}, "n2")
    model = ScriptedModel([says("", nested, apart), says("", use("Write", _x("@b.txt"), "w"))])
    async with ground(tmp_path, model) as on:
        repository(on.workspace)
        await on.agent(isolation="worktree")

        assert (where(model) / "b.txt").exists()
    assert "Leave out isolation" in results_in(model.requests[3].messages[-1])[1]


async def test_a_stopped_agents_worktree_goes_unless_it_was_changed(tmp_path: Path) -> None:
    async with ground(tmp_path) as on:
        repository(on.workspace)
        model = ScriptedModel([says("", sleeper(on))])
        on.use(model)
        started = await on.agent(isolation="worktree", run_in_background=True)
        pid = await pid_of(on)
        await on.call("TaskStop", {"task_id": id_of(started)})
        await gone(pid)

        assert traces(on) == (1, "", False)


async def test_two_agents_have_two_worktrees(tmp_path: Path) -> None:
    go = anyio.Event()
    model = ScriptedModel([go, go, says("ok"), says("ok")])
    async with ground(tmp_path, model) as on:
        repository(on.workspace)
        both = [await on.agent(isolation="worktree", run_in_background=True) for _ in range(2)]
        at_work = traces(on)[0]
        go.set()
        for one in both:
            await ended(on, id_of(one))

        assert traces(on) == (1, "", False)
    assert at_work == 3
