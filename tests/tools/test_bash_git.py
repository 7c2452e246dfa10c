"""Git commands that only read, in a repository that plants a logging program wherever git can be made to run one.

R-SHELL-4, last sentence: no pager, fsmonitor, hooks, external diff, prompts, system config.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from goat_mcp.core.result import ToolResult
from tests.tools.hostile_repository import HostileRepository
from tests.tools.shell_bench import ShellBench

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("git") is None, reason="needs git"),
]

_KEYS = (
    *("core.fsmonitor", "core.pager", "pager.log", "core.sshCommand", "core.askPass", "core.editor", "gpg.program"),
    *("credential.helper", "diff.external", "diff.evil.command", "diff.evil.textconv", "alias.status"),
    *("filter.evil.clean", "filter.evil.smudge"),
)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[ShellBench]:
    bench = ShellBench(tmp_path)
    yield bench
    await bench.close()


@pytest.fixture
def hostile(bench: ShellBench, tmp_path: Path) -> HostileRepository:
    repository = HostileRepository(bench.root, tmp_path)
    repository.add_submodule()
    repository.configure(*_KEYS)
    repository.git("config", "format.pretty", "%h %G? %s")
    return repository


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
        *("filter.evil.clean", "filter.evil.smudge", "diff.evil.command", "diff.evil.textconv", "core.fsmonitor"),
        *("gpg.program", "hook-post-index-change", "submodule filter.inner.clean", "submodule core.fsmonitor"),
    }


async def test_a_diff_is_still_shown_where_the_repository_has_its_own(
    bench: ShellBench, hostile: HostileRepository
) -> None:
    hostile.make_dirty()

    result = await bench.run("git diff f.txt")

    assert "-five\n+six" in result.text


async def test_missing_objects_are_not_fetched_by_programs_of_the_repository(
    bench: ShellBench, hostile: HostileRepository
) -> None:
    blob = hostile.git("rev-parse", "HEAD~2:f.txt")
    hostile.git("config", "remote.origin.url", f"ext::{hostile.program('fetches', answers=False)}")
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
    assert "fetches" in hostile.ran()


async def test_a_commit_still_runs_the_hooks_of_the_repository(bench: ShellBench, hostile: HostileRepository) -> None:
    hostile.make_dirty()

    await bench.run("git -c user.name=n -c user.email=n@example.invalid commit -q -a --no-gpg-sign -m x")

    assert "hook-pre-commit" in hostile.ran()
