"""Below `.git` a command makes what a commit needs; what git would obey later is set aside (R-FILE-9b)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from goat_mcp.commands.sandbox.bubblewrap import Bubblewrap
from goat_mcp.commands.sandbox.git_directories import WatchedFolder
from goat_mcp.commands.sandbox.landlock import ProtectedState
from goat_mcp.commands.sandbox.options import SandboxMode, SandboxOptions
from goat_mcp.commands.sandbox.placeholders import Placeholders
from goat_mcp.commands.sandbox.policy import PolicyPaths, SandboxPolicy
from goat_mcp.commands.sandbox.sandbox import Sandbox
from goat_mcp.commands.sandbox.temporary_folders import SessionFolders
from tests.commands.sandbox.boxes import LIMIT_S, Box, git, names, needs_bubblewrap

IDENTITY = "export GIT_{AUTHOR,COMMITTER}_NAME=t GIT_{AUTHOR,COMMITTER}_EMAIL=t@example.org\n"
STORE = ".git/set-aside-by-goat-mcp"


@pytest.fixture
def box(tmp_path: Path) -> Box:
    """A repository with a branch `side` that is in conflict with `main` in one file, a submodule and a worktree."""
    box = Box(tmp_path)
    git(box.root, "init", "-q", "-b", "main")
    commit(box, "a", "1", "one")
    git(box.root, "branch", "side")
    commit(box, "a", "2", "two")
    commit(box, "b", "2", "three")
    git(box.root, "checkout", "-q", "side")
    commit(box, "a", "3", "sides")
    git(box.root, "checkout", "-q", "main")
    return box


def commit(box: Box, name: str, text: str, message: str) -> None:
    (box.root / name).write_text(text + "\n")
    git(box.root, "add", "-A")
    git(box.root, "commit", "-qm", message)


PLANTED = {
    # what is planted, and the git command of the user that would run it
    "rebase-merge": (
        "mkdir .git/rebase-merge; cd .git/rebase-merge; echo exec touch {out}/ran > git-rebase-todo; : > done; "
        "echo refs/heads/main > head-name; git rev-parse HEAD | tee onto > orig-head; echo 1 > msgnum; echo 1 > end; "
        ": > interactive",
        "rebase --continue",
    ),
    "rebase-apply": (
        "mkdir .git/rebase-apply; cd .git/rebase-apply; echo 1 > next; echo 0 > last; : > applying; : > rebasing; "
        "echo refs/heads/main > head-name; git rev-parse HEAD | tee onto > orig-head",
        "rebase --continue",
    ),
    "sequencer": (
        "mkdir .git/sequencer; git rev-parse HEAD > .git/sequencer/head; "
        "echo pick $(git rev-parse side) x > .git/sequencer/todo; "
        "printf '[options]\\n strategy = evil\\n' > .git/sequencer/opts",
        "cherry-pick --continue",
    ),
    "commondir": (
        "mkdir -p evil/hooks; cp -r .git/objects .git/refs .git/HEAD evil; "
        "printf '[core]\\n fsmonitor = \"touch {out}/ran; false\"\\n' > evil/config; echo ../evil > .git/commondir",
        "status",
    ),
    "config.worktree": (
        "printf '[core]\\n fsmonitor = \"touch {out}/ran; false\"\\n' > .git/config.worktree",
        "status",
    ),
    "config": ("printf '[core]\\n fsmonitor = \"touch {out}/ran; false\"\\n' >> .git/config", "status"),
    "config by renaming": (
        "printf '[core]\\n fsmonitor = \"touch {out}/ran; false\"\\n' > c; mv -f c .git/config",
        "status",
    ),
    "config.lock": ("printf '[core]\\n fsmonitor = \"touch {out}/ran; false\"\\n' > .git/config.lock", "status"),
    "a hook": (
        "printf '#!/bin/sh\\ntouch {out}/ran\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/*",
        "checkout -q side",
    ),
    "hooks moved away": (
        "mv .git/hooks .git/h; mkdir .git/hooks; printf '#!/bin/sh\\ntouch {out}/ran\\n' > .git/hooks/post-checkout; "
        "chmod +x .git/hooks/*",
        "checkout -q side",
    ),
    "info/attributes": ("echo '* filter=evil diff=evil' > .git/info/attributes", "checkout -q side"),
    "info replaced": (
        "mv .git/info .git/i; mkdir evil; echo '* filter=evil diff=evil' > evil/attributes; ln -s ../evil .git/info",
        "checkout -q side",
    ),
    "alternates": ("mkdir -p evil; echo ../../evil > .git/objects/info/alternates", "status"),
    "remotes": ("mkdir -p .git/remotes; echo 'URL: ext::sh -c touch% {out}/ran' > .git/remotes/origin", "fetch origin"),
    "branches": ("mkdir -p .git/branches; echo 'ext::sh -c touch% {out}/ran' > .git/branches/origin", "fetch origin"),
    "modules": (
        "mkdir -p .git/modules/m/hooks; printf '#!/bin/sh\\ntouch {out}/ran\\n' > .git/modules/m/hooks/post-checkout",
        "submodule update --init",
    ),
    "a worktree that leads elsewhere": (
        "mkdir -p .git/worktrees/w evil/refs evil/objects; echo ../../../evil > .git/worktrees/w/commondir; "
        "echo ref: refs/heads/x > .git/worktrees/w/HEAD; cp .git/worktrees/w/HEAD evil; mkdir w; "
        "echo gitdir: $PWD/.git/worktrees/w > w/.git; "
        "printf '[core]\\n fsmonitor = \"touch {out}/ran; false\"\\n' > evil/config",
        "-C w status",
    ),
    "a worktree with a configuration": (
        "git worktree add -q w; printf '[core]\\n fsmonitor = \"touch {out}/ran; false\"\\n' > c; "
        "mv c .git/worktrees/w/config.worktree",
        "-C w status",
    ),
    "bisect names": ("echo \"'; touch {out}/ran; '\" > .git/BISECT_NAMES; : > .git/BISECT_LOG", "bisect visualize"),
    "a name of another program": ("mkdir .git/svn; echo x > .git/svn/config; echo x > .git/gitweb.conf", "status"),
    "another case": ("echo x > .git/COMMONDIR; echo x > .git/Config; mkdir .git/Rebase-Merge", "status"),
}
"""Git is configured to allow `ext` and to read `config.worktree`, as the user may have done."""


@needs_bubblewrap
@pytest.mark.parametrize(("planted", "run_outside"), PLANTED.values(), ids=PLANTED.keys())
def test_f13_06_planted_git_state_runs_nothing(box: Box, planted: str, run_outside: str) -> None:
    git(box.root, "config", "extensions.worktreeConfig", "true")
    for key in ("filter.evil.smudge", "diff.evil.textconv"):
        git(box.root, "config", key, f"sh -c 'touch {box.folder}/ran; cat'")
    git(box.root, "config", "protocol.ext.allow", "always")
    (box.root / ".git/info").mkdir(exist_ok=True)
    before = listed(box.root / ".git")

    box.run(IDENTITY + planted.replace("{out}", str(box.folder)))
    after = listed(box.root / ".git")
    subprocess.run(
        ["git", *run_outside.split()], cwd=box.root, capture_output=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL
    )

    assert not (box.folder / "ran").exists()
    assert after - before <= {"worktrees", "worktrees/w", "remotes"} | {name for name in after if "set-aside" in name}
    assert (after != before) == bool(box.said)


def listed(folder: Path) -> set[str]:
    """What is there, without the insides of what every commit changes."""
    left_out = ("objects/", "refs/", "logs/", "ORIG_HEAD")
    found = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    inside_worktrees = {name for name in found if name.startswith("worktrees/") and name.count("/") > 1}
    inside_store = {name for name in found if name.startswith("set-aside-by-goat-mcp/")}
    return (
        {name for name in found if not name.startswith(left_out) or "alternates" in name}
        - {name for name in inside_worktrees if "config" not in name}
        - inside_store
    )


EVERYDAY = {
    "commit": "echo 4 > c; git add -A && git commit -qm four && git commit -q --amend -m five",
    "commit some files": "echo 4 > b; git commit -qm four b",
    "branch and switch": "git checkout -q -b new && git switch -q side && git branch -D new",
    "stash": "echo 4 > b; git stash -q && git stash list && git stash pop -q",
    "fast-forward": "git checkout -q -b behind HEAD~1 && git merge -q --ff-only main",
    "merge": "git merge -q -X ours side -m merged",
    "merge with a conflict": "git merge -q side; echo 4 > a; git add a && git commit -qm merged",
    "merge that is given up": "git merge -q side; git merge --abort",
    "cherry-pick": "git cherry-pick -X theirs side",
    "cherry-pick two": "git checkout -q side && git cherry-pick -X theirs main~1 main",
    "revert": "git revert --no-edit HEAD",
    "rebase": "git checkout -q side && git rebase -q -X ours main",
    "rebase with exec": "git checkout -q side && git rebase -q -X ours --exec true main",
    "rebase with a conflict": (
        "git checkout -q side && ! git rebase -q main && echo 4 > a && git add a && "
        "GIT_EDITOR=true git rebase --continue"
    ),
    "rebase that is given up": "git checkout -q side && ! git rebase -q main && git rebase --abort",
    "am": "git format-patch -q -1 --stdout > /tmp/p && git reset -q --hard HEAD~1 && git am -q /tmp/p",
    "bisect": "git bisect start HEAD HEAD~2 && git bisect run true; git bisect reset",
    "tag and notes": "git tag -a t -m t && git notes add -m n",
    "reset and restore": "echo 4 > a; git restore a && git reset -q --hard HEAD~1",
    "gc": "git gc -q && git pack-refs --all && git repack -adq && git fsck",
    "worktree": "git worktree add -q -b w ../ws/w && cd w && echo 5 > a && git commit -qam w",
    "a repository inside": "git init -q n && cd n && echo 1 > a && git add a && git commit -qm n",
    "a clone inside": "git clone -q . n && cd n && git checkout -q -b x",
}


@needs_bubblewrap
@pytest.mark.parametrize("script", EVERYDAY.values(), ids=EVERYDAY.keys())
def test_everyday_git_works_and_leaves_nothing_aside(box: Box, script: str) -> None:
    output = box.run(f"{IDENTITY}set -e\n{{ {script}; }} && echo well")

    assert output.endswith("well\n"), output
    assert box.said == ()
    assert not (box.root / STORE).exists()
    git(box.root, "fsck")
    assert "progress" not in git(box.root, "status")


@needs_bubblewrap
def test_a_repository_that_borrows_objects_can_be_used_and_goes_on_borrowing_from_there(box: Box) -> None:
    git(box.root, "clone", "-q", "--shared", ".", "borrower")
    alternates = box.root / "borrower/.git/objects/info/alternates"
    before = alternates.read_text()

    output = box.run(
        f"{IDENTITY}cd borrower; echo 4 > a; git commit -qam four && git gc -q && echo well; "
        "echo /evil > .git/objects/info/alternates; mv .git/objects .git/o"
    )

    assert output.startswith("well\n"), output
    assert alternates.read_text() == before
    assert git(box.root / "borrower", "log", "-1", "--format=%s") == "four\n"


STOPPED = {
    "rebase": ("git checkout -q side; git rebase -q main", "GIT_EDITOR=true git rebase --continue", "rebase-merge"),
    "rebase --apply": (
        "git checkout -q side; git rebase -q --apply main",
        "GIT_EDITOR=true git rebase --continue",
        "rebase-apply",
    ),
    "cherry-pick": (
        "git checkout -q side; git cherry-pick main~1 main",
        "GIT_EDITOR=true git cherry-pick --continue",
        "sequencer",
    ),
    "bisect": ("git bisect start HEAD HEAD~2", "git bisect good && git bisect reset", "BISECT_LOG"),
}


@needs_bubblewrap
@pytest.mark.parametrize(("start", "go_on", "state"), STOPPED.values(), ids=STOPPED.keys())
def test_what_stopped_halfway_goes_on_in_the_next_command_and_is_hidden_from_git_outside(
    box: Box, start: str, go_on: str, state: str
) -> None:
    box.run(f"{IDENTITY}{start}")

    assert len(box.said) == 1 and "The next sandboxed command can go on from there" in box.said[0]
    assert state in names(box.root / STORE)
    assert not (box.root / ".git" / state).exists()

    box.run("true")
    output = box.run(f"{IDENTITY}echo 4 > a; git add a; {go_on} && echo well")

    assert output.endswith("well\n"), output
    assert not (box.root / ".git" / state).exists()
    assert names(box.root / STORE) == []


@needs_bubblewrap
def test_a_merge_with_a_conflict_goes_on_outside(box: Box) -> None:
    box.run(f"{IDENTITY}git merge side")
    (box.root / "a").write_text("4\n")

    git(box.root, "commit", "-qam", "merged")

    assert box.said == ()
    assert git(box.root, "log", "-1", "--format=%s") == "merged\n"


@needs_bubblewrap
def test_a_rebase_of_the_users_own_is_left_alone(box: Box) -> None:
    git(box.root, "checkout", "-q", "side")
    subprocess.run(["git", "rebase", "-q", "main"], cwd=box.root, capture_output=True, timeout=LIMIT_S)
    todo = box.root / ".git/rebase-merge/git-rebase-todo"
    before = todo.read_text()

    output = box.run("echo exec evil >> .git/rebase-merge/git-rebase-todo; mv .git/rebase-merge .git/x; git status")

    assert todo.read_text() == before
    assert "Read-only file system" in output and "busy" in output
    assert "rebase in progress" in output
    assert box.said == ()


@needs_bubblewrap
def test_f13_06_a_rebase_that_begins_after_a_look_is_the_users_own(box: Box) -> None:
    """The walk through the workspace is kept for a moment; what is in a repository is looked at each time."""
    reach_bounds = box.bounds()
    (box.root / ".git/rebase-merge").mkdir()
    (box.root / ".git/rebase-merge/git-rebase-todo").write_text("mine")

    box.run("true", bounds=box.bounds())

    assert reach_bounds.watched
    assert (box.root / ".git/rebase-merge/git-rebase-todo").read_text() == "mine"


@needs_bubblewrap
@pytest.mark.parametrize(
    "prepared",
    [
        "mkdir -p .git/set-aside-by-goat-mcp/commondir; touch .git/set-aside-by-goat-mcp/commondir/x",
        "touch .git/set-aside-by-goat-mcp",
        "mkdir evil; ln -s ../evil .git/set-aside-by-goat-mcp",
        "ln -s /nonexistent .git/set-aside-by-goat-mcp",
        "mkdir -p .git/set-aside-by-goat-mcp; ln -s ../config .git/set-aside-by-goat-mcp/commondir",
        "mkdir .git/commondir.set-aside-by-goat-mcp; touch .git/commondir.set-aside-by-goat-mcp/x",
    ],
)
def test_f13_06_what_lies_where_it_is_set_aside_keeps_nothing_in_place(box: Box, prepared: str) -> None:
    box.run(f"{prepared}; mkdir -p evil; echo ../evil > .git/commondir")

    assert not os.path.lexists(box.root / ".git/commondir")
    assert (box.root / STORE / "commondir").read_text() == "../evil\n"
    assert any("commondir" in line for line in box.said)
    assert (box.root / "evil/commondir").exists() is False


@needs_bubblewrap
def test_f13_06_what_a_second_command_found_is_set_aside_with_the_last_of_both(box: Box) -> None:
    wait = "echo up; until [ -e {} ]; do sleep 0.02; done"
    first, finish_first = box.start(box.job("echo evil > .git/config.worktree; " + wait.format("one")))
    assert first.stdout is not None and first.stdout.readline() == "up\n"
    second, finish_second = box.start(box.job(wait.format("two")))
    assert second.stdout is not None and second.stdout.readline() == "up\n"
    (box.root / "one").touch()
    first.communicate(timeout=LIMIT_S)
    said_first = finish_first()
    (box.root / "two").touch()
    second.communicate(timeout=LIMIT_S)
    said = finish_second()

    assert said_first == ()
    assert len(said) == 1 and "config.worktree" in said[0]
    assert not (box.root / ".git/config.worktree").exists()


def test_f13_06_what_a_killed_gateway_watched_is_set_aside_by_the_next_one(box: Box) -> None:
    watched = {str(box.root / ".git"): ["config", "hooks"]}
    (box.notes / "1-0.json").write_text(json.dumps([[], watched]))
    (box.root / ".git/rebase-merge").mkdir()
    (box.root / ".git/rebase-merge/git-rebase-todo").write_text("exec evil")

    said = Placeholders(box.notes).clean_up()

    assert not (box.root / ".git/rebase-merge").exists()
    assert len(said) == 1


@pytest.mark.anyio
async def test_what_a_killed_gateway_watched_is_reported_with_the_next_command(box: Box) -> None:
    class NoSandbox(Bubblewrap):
        def missing(self) -> str:
            return ""

    placeholders = Placeholders(box.notes)
    paths = PolicyPaths(roots=lambda: (box.root,))
    sandbox = Sandbox(
        SandboxOptions(sandbox=SandboxMode.REQUIRED),
        SandboxPolicy(paths, lambda path: False),
        runs_unasked=lambda session_key, principal: True,
        confinements=lambda: (NoSandbox(placeholders),),
        placeholders=lambda: placeholders,
        temporary=SessionFolders(lambda: box.state),
    )
    (box.notes / "1-0.json").write_text(json.dumps([[], {str(box.root / ".git"): ["config", "hooks"]}]))
    (box.root / ".git/rebase-merge").mkdir()
    (box.root / ".git/rebase-merge/git-rebase-todo").write_text("exec evil")

    first = await sandbox.confine_command(box.root)
    second = await sandbox.confine_command(box.root)

    assert first is not None and second is not None
    assert [line.startswith("set aside ") for line in first.notices] == [True]
    assert second.notices == ()
    await sandbox.close()


def test_what_is_newer_than_the_system_is_not_of_a_command_that_ended_with_the_one_before(box: Box) -> None:
    notes = box.notes / "1-0.json"
    notes.write_text(json.dumps([[], {str(box.root / ".git"): []}]))
    os.utime(notes, (0, 0))
    (box.root / ".git/rebase-merge").mkdir()

    assert Placeholders(box.notes).clean_up() == ()
    assert (box.root / ".git/rebase-merge").exists()


def test_the_notes_of_an_older_version_name_nothing(box: Box) -> None:
    (box.notes / "1-0.json").write_text(json.dumps([[], [str(box.root / ".git/commondir")]]))
    (box.root / ".git/commondir").write_text("x")

    assert Placeholders(box.notes).clean_up() == ()


def test_a_name_that_is_new_is_told_from_one_that_was_there(box: Box) -> None:
    (box.root / ".git/svn").mkdir()

    found = WatchedFolder(box.root / ".git", frozenset({"config", "svn", "hooks"})).new_names()

    assert found == []


@needs_bubblewrap
def test_hooks_that_the_user_adds_while_a_command_runs_stay(box: Box) -> None:
    shutil.rmtree(box.root / ".git/hooks")
    process, finish = box.start(box.job("echo up; until [ -e one ]; do sleep 0.02; done"))
    assert process.stdout is not None and process.stdout.readline() == "up\n"
    (box.root / ".git/hooks/pre-push").write_text("mine")
    (box.root / "one").touch()
    process.communicate(timeout=LIMIT_S)

    assert finish() == ()
    assert (box.root / ".git/hooks/pre-push").read_text() == "mine"


def test_without_mounts_what_is_new_is_reported(box: Box) -> None:
    bounds = box.bounds()
    before = ProtectedState.of((*bounds.read_only, *bounds.absent), bounds.watched)
    (box.root / ".git/rebase-merge").mkdir()

    (line,) = before.changes()

    assert f"{box.root}/.git/rebase-merge" in line


@pytest.mark.parametrize("name", ["repo.git", "plain"])
@needs_bubblewrap
def test_f13_06_a_bare_repository_gets_no_configuration_and_keeps_its_other_directories(box: Box, name: str) -> None:
    git(box.root, "init", "-q", "--bare", name)
    (box.root / name / "config").unlink()
    (box.root / name / "main").mkdir()

    output = box.run(f"cd {name}; echo evil > config; mkdir other; echo x > main/x && echo x > other/x && echo well")

    assert output == "well\n"
    assert not (box.root / name / "config").exists()
    assert (box.root / name / "other/x").exists()
    assert len(box.said) == 1


@needs_bubblewrap
def test_f13_06_mercurials_configuration_cannot_be_planted(box: Box) -> None:
    (box.root / ".hg/store").mkdir(parents=True)
    (box.root / "sub/.hg").mkdir(parents=True)
    (box.root / "sub/.hg/hgrc").write_text("mine")

    output = box.run("echo evil > .hg/hgrc; echo x > .hg/store/data && echo stored; echo evil > sub/.hg/hgrc")

    assert not (box.root / ".hg/hgrc").exists()
    assert (box.root / "sub/.hg/hgrc").read_text() == "mine"
    assert "stored" in output
    assert len(box.said) == 1
