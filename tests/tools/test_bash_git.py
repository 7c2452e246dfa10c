"""Git commands that only read, in a repository that plants a logging program wherever git can be made to run one.

R-SHELL-4, last sentence: no pager, fsmonitor, hooks, external diff, prompts, system config.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from goat_mcp.core.result import ToolResult
from tests.tools.shell_bench import ShellBench

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("git") is None, reason="needs git"),
]

_HOOKS = ("post-index-change", "fsmonitor-watchman", "pre-commit", "post-checkout", "reference-transaction")


class HostileRepository:
    """A repository at `root` whose programs write a line with their name to `log`."""

    def __init__(self, root: Path, log: Path) -> None:
        self.root = root
        self.log = log
        self._env = {
            "PATH": os.environ["PATH"],
            "HOME": str(log.parent),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "n",
            "GIT_AUTHOR_EMAIL": "n@example.invalid",
            "GIT_COMMITTER_NAME": "n",
            "GIT_COMMITTER_EMAIL": "n@example.invalid",
        }
        self._commits()
        self._submodule()
        self._plant()

    def git(self, *arguments: str, at: Path | None = None, data: str = "") -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=at or self.root,
            env=self._env,
            input=data,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def ran(self) -> set[str]:
        """Which planted programs have run since the last question."""
        lines = self.log.read_text().split() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return set(lines)

    def make_dirty(self) -> None:
        """Git has to look into the files again: equal in size, newer in time."""
        self.root.joinpath("f.txt").write_text("six\n")
        for name in ("f.txt", "sub/a"):
            stat = self.root.joinpath(name).stat()
            os.utime(self.root / name, ns=(stat.st_atime_ns, stat.st_mtime_ns + 5_000_000_000))

    def _program(self, name: str, then: str) -> str:
        return f"echo {name} >> {self.log}; {then}"

    def _commits(self) -> None:
        self.git("init", "-q")
        self.root.joinpath(".gitattributes").write_text("*.txt filter=evil diff=evil\n")
        for text in ("one\n", "two\n"):
            self.root.joinpath("f.txt").write_text(text)
            self.git("add", "-A")
            self.git("commit", "-qm", text.strip())
        signed = (
            f"tree {self.git('rev-parse', 'HEAD^{tree}')}\nparent {self.git('rev-parse', 'HEAD')}\n"
            "author n <n@example.invalid> 1700000000 +0000\ncommitter n <n@example.invalid> 1700000000 +0000\n"
            "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n"
        )
        self.git("update-ref", "HEAD", self.git("hash-object", "-t", "commit", "-w", "--stdin", data=signed))

    def _submodule(self) -> None:
        other = self.log.parent / "other"
        other.mkdir()
        self.git("init", "-q", at=other)
        other.joinpath("a").write_text("a\n")
        other.joinpath(".gitattributes").write_text("* filter=inner\n")
        self.git("add", "-A", at=other)
        self.git("commit", "-qm", "a", at=other)
        self.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub")
        self.git("config", "-f", ".gitmodules", "submodule.sub.ignore", "none")
        self.git("commit", "-qam", "sub")
        # Known by .gitmodules alone: its name is then not among the repository's own keys.
        self.git("config", "--remove-section", "submodule.sub")
        self.git("config", "filter.inner.clean", self._program("submodule-clean", "cat"), at=self.root / "sub")
        self.git("config", "core.fsmonitor", self._program("submodule-fsmonitor", "false"), at=self.root / "sub")

    def _plant(self) -> None:
        gpg = self.log.parent / "gpg"
        gpg.write_text(f"#!/bin/sh\necho gpg >> {self.log}\n")
        gpg.chmod(0o755)
        for key, value in {
            "core.fsmonitor": self._program("fsmonitor", "false"),
            "core.pager": self._program("pager", "cat"),
            "pager.log": self._program("pager", "cat"),
            "core.sshCommand": self._program("ssh", "false"),
            "core.askPass": str(gpg),
            "core.editor": self._program("editor", "true"),
            "credential.helper": f"!{self._program('credential', 'true')}",
            "diff.external": self._program("external-diff", "true"),
            "diff.evil.command": self._program("diff-driver", "true"),
            "diff.evil.textconv": "sh -c '" + self._program("textconv", 'cat "$0"') + "'",
            "filter.evil.clean": self._program("clean", "cat"),
            "filter.evil.smudge": self._program("smudge", "cat"),
            "filter.evil.required": "true",
            "gpg.program": str(gpg),
            "log.showSignature": "true",
            "format.pretty": "%h %G? %s",
            "alias.status": f"!{self._program('alias', 'true')}",
            "protocol.ext.allow": "always",
        }.items():
            self.git("config", key, value)
        for hook in _HOOKS:
            path = self.root / ".git" / "hooks" / hook
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"#!/bin/sh\necho hook-{hook} >> {self.log}\n")
            path.chmod(0o755)
        self.log.unlink(missing_ok=True)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[ShellBench]:
    bench = ShellBench(tmp_path)
    yield bench
    await bench.close()


@pytest.fixture
def hostile(bench: ShellBench, tmp_path: Path) -> HostileRepository:
    return HostileRepository(bench.root, tmp_path / "log")


_READING = [
    "git status",
    "git status -v",
    "git diff",
    "git diff HEAD --stat",
    "git diff HEAD~2 HEAD~1",
    "git log",
    "git log -p",
    "git log --stat --format='%h %G? %GS'",
    "git show",
    "git show HEAD~1:f.txt",
    "git blame f.txt",
    "git ls-files -m",
    "git describe --dirty --always",
    "git grep o",
    "git branch -a",
    "git shortlog HEAD",
    "git --no-pager status; git diff | wc -l",
]


@pytest.mark.parametrize("command", _READING)
async def test_a_reading_git_command_runs_nothing_that_the_repository_names(
    bench: ShellBench, hostile: HostileRepository, command: str
) -> None:
    hostile.make_dirty()

    result = await bench.run(command)

    assert hostile.ran() == set()
    assert not result.is_error, result.text


async def test_the_repository_would_run_them_all(bench: ShellBench, hostile: HostileRepository) -> None:
    # Not plain, so not hardened: shows that the traps above are live.
    for command in _READING:
        hostile.make_dirty()
        await bench.run(f"true > /dev/null; {command}")

    assert hostile.ran() >= {
        *("clean", "diff-driver", "fsmonitor", "gpg", "hook-post-index-change", "smudge", "submodule-clean"),
        *("submodule-fsmonitor", "textconv"),
    }


async def test_a_diff_is_still_shown_where_the_repository_has_its_own(
    bench: ShellBench, hostile: HostileRepository
) -> None:
    hostile.make_dirty()

    result = await bench.run("git diff f.txt")

    assert "-two\n+six" in result.text


async def test_missing_objects_are_not_fetched_by_programs_of_the_repository(
    bench: ShellBench, hostile: HostileRepository
) -> None:
    blob = hostile.git("rev-parse", "HEAD~2:f.txt")
    hostile.git("config", "remote.origin.url", f"ext::{hostile.log.parent / 'gpg'}")
    hostile.git("config", "remote.origin.promisor", "true")
    hostile.git("config", "remote.origin.partialclonefilter", "blob:none")
    hostile.git("config", "extensions.partialClone", "origin")
    hostile.git("config", "core.repositoryFormatVersion", "1")
    hostile.root.joinpath(".git", "objects", blob[:2], blob[2:]).unlink()
    hostile.ran()

    result: ToolResult = await bench.run("git show HEAD~2:f.txt")
    hardened = hostile.ran()
    await bench.run("true > /dev/null; git show HEAD~2:f.txt")

    assert (result.is_error, hardened) == (True, set())
    # The remote's program is the one called gpg here.
    assert "gpg" in hostile.ran()


async def test_a_commit_still_runs_the_hooks_of_the_repository(bench: ShellBench, hostile: HostileRepository) -> None:
    hostile.make_dirty()

    await bench.run("git -c user.name=n -c user.email=n@example.invalid commit -q -a --no-gpg-sign -m x")

    assert "hook-pre-commit" in hostile.ran()
