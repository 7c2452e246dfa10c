"""What a command makes in a workspace does not use up the protection of what was there before it (R-PROC-3, 5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from goat_mcp.commands.sandbox.protected_paths import ExistingPaths, ProtectedSearch
from tests.commands.sandbox.boxes import Box, git, is_protected, names, needs_bubblewrap


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


DECOYS = {
    "editor folders": "mkdir -p j{1..260}/.vscode",
    "settings at the top": "touch j{1..260}.code-workspace",
    "git directories": "mkdir -p j{1..400}/.git",
    "pointers to git directories": "mkdir j{1..400}; for i in j*; do echo gitdir: x > $i/.git; done",
    "bare repositories": "mkdir -p j{1..400}/{objects,refs}; for i in j*; do touch $i/{HEAD,config}; done",
    "a top that looks like a bare repository": "mkdir objects refs; touch HEAD config",
    "worktrees": "mkdir -p .git/worktrees/w{1..400}; for i in .git/worktrees/*; do touch $i/{gitdir,commondir}; done",
}


@needs_bubblewrap
@pytest.mark.parametrize("decoys", DECOYS.values(), ids=DECOYS.keys())
def test_what_a_command_makes_leaves_an_older_nested_repository_protected(box: Box, decoys: str) -> None:
    git(box.root, "init", "-q")
    (box.root / "vendor/lib/core").mkdir(parents=True)
    git(box.root / "vendor/lib/core", "init", "-q")
    (box.root / "vendor/.envrc").write_text("mine")
    nested = box.root / "vendor/lib/core/.git"
    before = names(nested / "hooks"), (nested / "config").read_text()

    assert box.run(decoys) == ""
    output = box.run(
        "cd vendor; echo evil > lib/core/.git/hooks/post-checkout; echo '[core]' >> lib/core/.git/config\n"
        "mv lib l; echo evil > .envrc; echo up"
    )

    assert output.endswith("up\n")
    assert (names(nested / "hooks"), (nested / "config").read_text()) == before
    assert (box.root / "vendor/.envrc").read_text() == "mine"
    assert output.count("Read-only file system") == 3
    assert output.count("busy") == 1


@needs_bubblewrap
def test_a_new_repository_at_the_top_is_protected_whatever_was_planted_before_it(box: Box) -> None:
    box.run("mkdir -p j{1..400}/.git")
    git(box.root, "init", "-q")

    output = box.run("echo evil > .git/hooks/pre-commit; echo evil >> .git/config")

    assert output.count("Read-only file system") == 2


def test_names_that_are_too_many_are_told(tmp_path: Path) -> None:
    for number in range(400):
        (tmp_path / f"j{number}/.git").mkdir(parents=True)

    found = ProtectedSearch(is_protected).below(tmp_path)

    assert found.missed == [f"there are too many repositories below {tmp_path}"]


def test_a_search_that_could_not_finish_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()

    found = ProtectedSearch(is_protected, scan_s=0.0).below(tmp_path)

    assert found.missed == [f"looking through {tmp_path} takes more than 0 s"]


def test_what_an_earlier_process_found_is_protected_without_time_to_look(tmp_path: Path) -> None:
    top, notes = tmp_path / "ws", tmp_path / "notes"
    notes.mkdir()
    (top / "deep/down").mkdir(parents=True)
    git(top / "deep/down", "init", "-q")
    ProtectedSearch(is_protected, ExistingPaths(lambda: notes)).below(top)

    found = ProtectedSearch(is_protected, ExistingPaths(lambda: notes), scan_s=0.0).below(top)

    assert found.pinned == [top / "deep/down/.git"]


def test_what_is_no_more_or_has_become_a_link_is_forgotten(tmp_path: Path) -> None:
    top, before = tmp_path / "ws", ExistingPaths(lambda: tmp_path)
    for name in ("a", "b", "c"):
        (top / name / ".git").mkdir(parents=True)
    ProtectedSearch(is_protected, before).below(top)

    (top / "a").rename(tmp_path / "moved")
    (top / "b").rename(top / "other")
    (top / "b").symlink_to("other")

    assert before.below(top).git == (top / "c/.git",)


@pytest.mark.parametrize("damage", ["", "[]", "{", '{"x": {"git": 3}}', '{"x": 1}'])
def test_damaged_notes_do_no_harm(tmp_path: Path, damage: str) -> None:
    (tmp_path / "found").write_text(damage)
    top = tmp_path / "ws"
    (top / "a/.git").mkdir(parents=True)

    found = ProtectedSearch(is_protected, ExistingPaths(lambda: tmp_path)).below(top)

    assert found.pinned == [top / "a/.git"]
    assert ExistingPaths(lambda: tmp_path).below(top).git == (top / "a/.git",)


def test_names_that_are_no_utf_8_are_kept(tmp_path: Path) -> None:
    top = tmp_path / "ws"
    path = top / b"\xff\xe4".decode("utf-8", "surrogateescape") / ".git"
    path.mkdir(parents=True)

    ProtectedSearch(is_protected, ExistingPaths(lambda: tmp_path)).below(top)

    assert ExistingPaths(lambda: tmp_path).below(top).git == (path,)


@needs_bubblewrap
def test_a_bare_repository_keeps_its_hooks_and_its_configuration(box: Box) -> None:
    git(box.root, "init", "-q", "--bare", "deep/repos.git")
    config = (box.root / "deep/repos.git/config").read_text()

    output = box.run(
        "cd deep; echo evil > repos.git/hooks/post-update; git -C repos.git config core.fsmonitor evil\n"
        "mv repos.git x; "
        "git init -q new; cd new; git -c user.name=t -c user.email=t commit -q --allow-empty -m one\n"
        "git push -q ../repos.git HEAD:main && echo pushed"
    )

    assert (box.root / "deep/repos.git/config").read_text() == config
    assert "post-update" not in names(box.root / "deep/repos.git/hooks")
    assert output.endswith("pushed\n")


@needs_bubblewrap
@pytest.mark.parametrize("is_there", [False, True], ids=["no submodule yet", "one is there"])
def test_a_submodules_git_directory_cannot_be_prepared(box: Box, is_there: bool) -> None:
    source = box.folder / "source"
    git(box.folder, "init", "-q", str(source))
    git(source, "commit", "-q", "--allow-empty", "-m", "one")
    git(box.root, "init", "-q")
    if is_there:
        git(box.root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(source), "libs/there")

    output = box.run(
        "mkdir -p .git/modules/m/hooks .git/modules/libs/m/hooks; echo evil > .git/modules/m/hooks/post-checkout\n"
        "git status --porcelain; cd libs/there && git -c user.name=t -c user.email=t commit -q --allow-empty -m two "
        "&& echo committed; echo evil > ../../.git/modules/libs/there/hooks/post-checkout"
    )

    assert not (box.root / ".git/modules/m").exists()
    assert not (box.root / ".git/modules/libs/m").exists()
    assert ("committed" in output) == is_there
    assert not (box.root / ".git/modules/libs/there/hooks/post-checkout").exists()
    assert (box.root / ".git/modules").exists() == is_there


def test_a_git_directory_gets_no_placeholders_of_editors(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")

    found = ProtectedSearch(is_protected).in_git(tmp_path / ".git")

    assert found.pinned == [tmp_path / ".git"]
    assert found.absent == [tmp_path / ".git/modules"]


@needs_bubblewrap
def test_a_workspace_made_to_look_like_a_git_directory_keeps_its_placeholders(box: Box) -> None:
    box.run("mkdir objects refs; touch HEAD config")

    output = box.run("echo x > .mcp.json; echo x > .claude/settings.json")

    assert "Is a directory" in output
    assert "Permission denied" in output
    assert names(box.root) == ["HEAD", "config", "objects", "refs"]
