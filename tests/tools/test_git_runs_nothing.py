"""R-SHELL-4b: whatever a repository configures, git commands that only read run none of it, or they are refused.

A repository with a program behind each key of git's whose value is one; each program writes its name to a log.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

import pytest

from goat_mcp.commands import git_hardening
from goat_mcp.commands.git_environment import variables
from goat_mcp.tools.bash import Given
from tests.tools.hostile_repository import HostileRepository
from tests.tools.shell_bench import ShellBench, context

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("git") is None, reason="needs git"),
]

_COMMAND_KEYS = (
    *("core.fsmonitor", "core.pager", "core.askPass", "core.sshCommand", "core.editor", "core.gitProxy"),
    *("core.alternateRefsCommand", "sequence.editor", "interactive.diffFilter", "uploadpack.packObjectsHook"),
    *("diff.external", "diff.evil.command", "diff.evil.textconv", "merge.evil.driver", "merge.other.driver"),
    *("filter.evil.clean", "filter.evil.smudge", "filter.two.process", "filter.a.b=c.clean", "filter.sp ace.clean"),
    *("difftool.evil.cmd", "mergetool.evil.cmd", "difftool.evil.path", "mergetool.evil.path", "guitool.evil.cmd"),
    *("credential.helper", "credential.https://x.helper", "gpg.program", "gpg.ssh.program", "gpg.x509.program"),
    *("gpg.openpgp.program", "gpg.ssh.defaultKeyCommand", "pager.log", "pager.diff", "alias.whatchanged", "alias.log"),
    *("alias.show.command", "man.evil.cmd", "man.evil.path", "browser.evil.cmd", "browser.evil.path", "web.browser"),
    *("trailer.evil.command", "trailer.evil.cmd", "tar.evil.command", "remote.origin.uploadpack", "help.browser"),
    *("remote.origin.receivepack", "hook.evil.command", "sendemail.smtpserver", "sendemail.toCmd", "imap.tunnel"),
    *("sendemail.headerCmd", "instaweb.httpd", "instaweb.browser", "lfs.extension.evil.clean", "newtool.evil.helper"),
    *("lfs.customtransfer.evil.path", "submodule.sub.update", "sendemail.evil.sendmailCmd"),
)
_READING = [
    *(
        "git status",
        "git status -sb --ignored",
        "git status -v -v",
        "git diff",
        "git diff HEAD --stat",
        "git diff -p --cached",
    ),
    *("git diff HEAD~2 HEAD~1", "git diff -M --word-diff HEAD~2", "git diff --ext-diff --textconv HEAD~2 HEAD~1"),
    *("git log", "git log -p", "git log -m -p", "git log -c -p", "git log --cc", "git log --remerge-diff -p"),
    *("git log --diff-merges=remerge -p", "git log --diff-merges=on -p", "git log --diff-merges remerge -p"),
    *("git log -p --full-diff f.txt", "git log --follow -p f.txt", "git log -S six -p --textconv", "git log -G o -p"),
    *("git log -L 1,1:f.txt", "git log --format='%G? %GS %(trailers)'", "git log --show-signature -1"),
    *("git log --all --graph --stat", "git log --alternate-refs", "git show", "git show -m", "git show --cc HEAD^"),
    *("git show --remerge-diff merged", "git show --diff-merges=r merged", "git show --textconv HEAD:f.txt"),
    *("git show HEAD~1:f.txt", "git show -p merged", "git whatchanged -p", "git whatchanged --diff-merges=remerge -p"),
    *("git blame f.txt", "git blame --textconv f.txt", "git blame -M -C HEAD -- f.txt"),
    *("git shortlog HEAD", "git branch -avv", "git branch --contains HEAD", "git tag -l -n", "git tag --contains HEAD"),
    *("git remote -v", "git remote get-url origin", "git stash list -p --textconv", "git stash list", "git reflog"),
    *("git reflog show -p", "git worktree list", "git rev-parse HEAD", "git rev-list --all --objects"),
    *("git rev-list --alternate-refs HEAD", "git ls-files -mdo", "git ls-files -s --eol", "git ls-tree -r HEAD"),
    *("git cat-file -p HEAD", "git cat-file --textconv HEAD:f.txt", "git cat-file --filters HEAD:f.txt"),
    *("git describe --dirty --always", "git show-ref", "git for-each-ref --format='%(objectname) %(describe)'"),
    *("git name-rev HEAD", "git merge-base HEAD HEAD~1", "git count-objects -v", "git check-ignore -v f.txt"),
    *("git check-attr -a f.txt", "git grep o", "git grep --textconv o HEAD", "git grep -W o", "git --no-pager log -p"),
    *(
        "git diff-tree -p HEAD~1",
        "git diff-tree --remerge-diff -p merged",
        "git diff-index -p HEAD",
        "git diff-files -p",
    ),
    *("git annotate f.txt", "git reflog -p", "git reflog main -p", "git cherry -v main side", "git fsck"),
    *("git range-diff HEAD~2..HEAD~1 HEAD~1..HEAD", "git reflog --patch -2"),
    *("git -P diff", "git diff | wc -l", "git status && git diff; git log -p -1 || true", '"git" diff', "git version"),
]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[ShellBench]:
    bench = ShellBench(tmp_path)
    yield bench
    await bench.close()


@pytest.fixture
def hostile(bench: ShellBench, tmp_path: Path) -> HostileRepository:
    return HostileRepository(bench.root, tmp_path)


_VARIANTS: Mapping[str, tuple[str, ...]] = {
    "all": (),
    # These stand before others.
    "without-those-in-front": ("filter.two.process", "diff.external", "diff.evil.command", "alias.whatchanged"),
}


@pytest.mark.parametrize("without", _VARIANTS.values(), ids=_VARIANTS)
async def test_f13_03_hostile_keys_no_reading_command_runs_what_a_repository_configures(
    bench: ShellBench, hostile: HostileRepository, without: tuple[str, ...]
) -> None:
    hostile.add_submodule()
    hostile.configure(*(key for key in _COMMAND_KEYS if key not in without))
    hardened: set[str] = set()
    live: set[str] = set()
    for at in range(0, len(_READING), 12):
        commands = "\n".join(_READING[at : at + 12])
        hostile.make_dirty()
        result = await bench.run(commands)
        assert result.error_code != "E_BLOCKED", result.text
        hardened |= {f"{name}: {commands}" for name in hostile.ran()}

        hostile.make_dirty()
        # Not plain, so not hardened: shows that the programs are reached.
        await bench.run(f"true > /dev/null; {commands}")
        live |= hostile.ran()

    assert hardened == set()
    assert live >= {"core.fsmonitor", "merge.evil.driver", "filter.evil.clean", "submodule filter.inner.clean"}
    assert live & {"diff.external", "diff.evil.textconv"}


@pytest.mark.parametrize("key", _COMMAND_KEYS)
def test_f13_03_hostile_keys_each_key_whose_value_is_a_command_gets_a_harmless_one(key: str) -> None:
    section, _, last = key.rpartition(".")
    head, dot, rest = section.partition(".")
    # As git lists it: section and last part are in lower case, what stands between is not.
    listed = f"{head.lower()}{dot}{rest}.{last.lower()}"

    given = variables([listed])

    keys = {value.lower(): name for name, value in given.items() if name.startswith("GIT_CONFIG_KEY_")}
    if last in ("update", "ignore"):
        assert f"{section}.ignore" in keys
    value = given[keys[listed.lower()].replace("_KEY_", "_VALUE_")]
    assert value in ("false", "true", "cat", "", "none", "version", "/dev/null") or value.startswith("f() { diff")
    assert len(keys) == int(given["GIT_CONFIG_COUNT"])


@pytest.mark.parametrize("place", ["worktree", "index", "HEAD"])
async def test_f13_03_gitmodules_of_the_index_and_of_head_count_as_those_of_the_work_tree(
    bench: ShellBench, hostile: HostileRepository, place: str
) -> None:
    hostile.add_submodule()
    if place != "worktree":
        hostile.root.joinpath(".gitmodules").unlink()
    if place == "HEAD":
        hostile.git("rm", "-q", "--cached", ".gitmodules")
    ran: set[str] = set()

    for command in ("git status", "git diff", "git diff HEAD", "git status -s", "git describe --dirty --always"):
        hostile.make_dirty()
        await bench.run(command)
        ran |= hostile.ran()
    hostile.make_dirty()
    await bench.run("true > /dev/null; git status")

    assert ran == set()
    assert hostile.ran() >= {"submodule filter.inner.clean"}


async def test_f13_03_cut_listing_more_configuration_than_is_read_refuses_the_command(
    bench: ShellBench, hostile: HostileRepository
) -> None:
    hostile.configure("filter.evil.clean")
    with (hostile.root / ".git" / "config").open("a") as config:
        config.write("[x]\n" + "".join(f"\tkey{number} = 1\n" for number in range(80_000)))
        config.write(f'[filter "evil"]\n\tclean = {hostile.program("late")}\n')
    hostile.make_dirty()

    result = await bench.run("git status")

    assert (result.error_code, hostile.ran()) == ("E_BLOCKED", set())
    assert "printed more than 1024 KiB" in result.text and "ask the user" in result.text


async def test_f13_03_cut_listing_more_programs_than_variables_hold_refuses_the_command(
    bench: ShellBench, hostile: HostileRepository
) -> None:
    program = hostile.program("many")
    with (hostile.root / ".git" / "config").open("a") as config:
        for number in range(4_000):
            config.write(f'[filter "{number}"]\n\tclean = {program}\n')

    result = await bench.run("git status")

    assert result.error_code == "E_BLOCKED" and "too many programs" in result.text


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("[core\n", "bad config line"),
        ("[include]\n\tpath = missing-is-fine\n[core]\n\trepositoryformatversion = 99\n", "repo version"),
        ('[filter "\udce4"]\n\tclean = x\n', "UTF-8"),
    ],
)
async def test_f13_03_failed_listing_refuses_the_command(
    bench: ShellBench, hostile: HostileRepository, config: str, reason: str
) -> None:
    with (hostile.root / ".git" / "config").open("a", errors="surrogateescape") as file:
        file.write(config)

    result = await bench.run("git log")

    assert result.error_code == "E_BLOCKED" and reason in result.text, result.text


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ('case "$*" in *--list*) exec sleep 60;; esac', "did not end in"),
        ('case "$1" in cat-file) exec sleep 60;; esac', "did not end in"),
        ('case "$1" in rev-parse) echo no >&2; exit 3;; esac', "git rev-parse failed: no"),
        ("unset GIT_CONFIG_COUNT", "older than 2.31"),
    ],
)
async def test_f13_03_failed_listing_a_git_that_does_not_answer_refuses_the_command(
    bench: ShellBench, hostile: HostileRepository, monkeypatch: pytest.MonkeyPatch, broken: str, reason: str
) -> None:
    git = shutil.which("git")
    fake = hostile.bin / "git"
    fake.write_text(f'#!/bin/sh\n{broken}\nexec {git} "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setattr(git_hardening, "_TIMEOUT_S", 1.0)

    result = await bench.run("git status", env={"PATH": f"{hostile.bin}:{os.environ['PATH']}"})

    assert result.error_code == "E_BLOCKED" and reason in result.text, result.text


async def test_outside_of_a_repository_and_in_a_bare_one_git_speaks_for_itself(bench: ShellBench) -> None:
    outside = await bench.run("git status")
    await bench.run("git init -q --bare > /dev/null")
    bare = await bench.run("git count-objects")

    assert "not a git repository" in outside.text and outside.error_code == "E_EXIT"
    assert "0 objects" in bare.text


_MIXED = [
    "git diff HEAD~2 HEAD~1; git commit -qam x --no-gpg-sign",
    "git commit -qam x --no-gpg-sign && git log -p -3",
    "git log -p -2 | cat; git commit -qam x --no-gpg-sign; git show",
    "git show HEAD~1\n'git' commit -qam x --no-gpg-sign\n\"git\" show HEAD~1 # look",
    "git commit -qam x --no-gpg-sign;git show HEAD~1|cat;git diff HEAD~1",
    "/usr/bin/env true; git stash list -p; git commit -qam 'git show' --no-gpg-sign",
]


@pytest.mark.parametrize("command", _MIXED)
async def test_f13_22_mixed_scripts_commit_with_the_hooks_of_the_repository_and_read_without(
    bench: ShellBench, hostile: HostileRepository, command: str
) -> None:
    hostile.git("config", "user.name", "n")
    hostile.git("config", "user.email", "n@example.invalid")
    hostile.configure("diff.external", "diff.evil.textconv", "merge.evil.driver")
    hostile.make_dirty()

    result = await bench.run(command)

    assert not result.is_error, result.text
    assert {name for name in hostile.ran() if not name.startswith("hook-")} == set()
    assert hostile.git("log", "-1", "--no-show-signature", "--format=%s") in ("x", "git show")


async def test_f13_22_mixed_scripts_leave_the_environment_of_other_commands_alone(
    bench: ShellBench, hostile: HostileRepository
) -> None:
    (bench.root / "run.sh").write_text("#!/bin/sh\nenv | grep -c GIT_CONFIG_\necho line $0\n")
    (bench.root / "run.sh").chmod(0o755)

    result = await bench.run("git status -s; ./run.sh; git rev-parse --is-inside-work-tree; nonsense-of-mine")

    assert "\n0\nline ./run.sh\ntrue\n" in f"\n{result.text}"
    assert "line 1: nonsense-of-mine" in result.text


async def test_f13_03_hostile_keys_a_program_that_is_started_without_a_shell_of_its_own_is_git_that_only_reads(
    bench: ShellBench, hostile: HostileRepository
) -> None:
    """As `bg_exec__start` does: what is run is not what is judged."""
    hostile.configure("core.fsmonitor", "diff.external", "filter.evil.clean")
    hostile.make_dirty()
    asked = bench.bash.validate({"command": "git diff"})

    result = await bench.bash.run(asked, context(), Given(script="exec -- git diff"))

    assert (hostile.ran(), result.is_error) == (set(), False), result.text
