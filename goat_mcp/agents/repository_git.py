"""git in a repository of the user's, with nothing run that the repository's own settings name (R-SHELL-4).

Hooks, filters (also those of LFS, whose files stay pointers then), watchers, and transports of every kind: a blob that
a partial clone lacks is not fetched. Which variables that takes is in `commands.git_environment`.
`GitStager` is `git add` after a tool has written a file (`files.git_stage`). Source of that: goa.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio
import anyio.to_thread
from anyio.abc import ByteReceiveStream

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes.stop_signals import unblocked_for_children

GIT_LIMIT_S = 120.0
_SHOWN_CHARS = 300

LIMIT_S = 5.0
_NO_FILTER = ("unspecified", "unset")
_LITERAL = "--literal-pathspecs"
_MERGED = "0"


class BuildEnvironment(Protocol):
    """Makes the environment that git runs in."""

    async def build(self) -> dict[str, str]: ...


class RepositoryGit:
    """Each run ends within two minutes, and is killed when it is cancelled."""

    def __init__(self, environment: BuildEnvironment) -> None:
        self._environment = environment

    async def run(self, directory: Path, *arguments: str, why: str) -> str:
        """What git prints, without the last line end. Raises `ToolError` that begins with `why` where it fails."""
        return os.fsdecode(await self.output(directory, *arguments, why=why)).rstrip("\n")

    async def output(self, directory: Path, *arguments: str, why: str) -> bytes:
        """As `run`, byte for byte."""
        from goat_mcp.commands.git_environment import LIST_KEYS, repository_keys, variables

        plain = {**await self._environment.build(), "LC_ALL": "C"}
        # Listed in the same directory each time: what is included may depend on the worktree and on its branch.
        listed = os.fsdecode(await _output(directory, LIST_KEYS, plain | _users_system(variables()), why))
        try:
            keys = repository_keys(listed)
        except ValueError as problem:
            raise ToolError(
                ErrorCode.NOT_CONFIGURED,
                f"{why}: {problem}",
                "Ask the user to install git 2.31 or later, or leave out isolation.",
            ) from None
        # The user's own filters do not run either: what they start may read the repository's settings.
        keys += [key for key in listed.split("\0")[1::2] if key.startswith("filter.")]
        return await _output(directory, arguments, plain | _users_system(variables(keys)), why)


def _users_system(given: Mapping[str, str]) -> dict[str, str]:
    """With the machine's own settings, such as `safe.directory`: whoever wrote them may start programs anyway."""
    return {name: value for name, value in given.items() if name != "GIT_CONFIG_NOSYSTEM"}


async def _output(directory: Path, arguments: tuple[str, ...], environment: Mapping[str, str], why: str) -> bytes:
    """Raises `ToolError` if it fails or takes too long."""
    try:
        with unblocked_for_children():
            process = await anyio.open_process(
                ["git", *arguments],
                stdin=subprocess.DEVNULL,
                cwd=directory,
                env=environment,
                start_new_session=True,
            )
    except FileNotFoundError:
        raise ToolError(
            ErrorCode.NOT_CONFIGURED, "isolation: there is no git on PATH", "Ask the user to install git."
        ) from None
    except OSError as problem:
        raise ToolError(ErrorCode.IO, f"{why}: git cannot be started: {problem.strerror}") from None
    output, complaint = bytearray(), bytearray()
    with anyio.move_on_after(GIT_LIMIT_S):
        async with process, anyio.create_task_group() as group:  # a cancelled one is killed
            group.start_soon(_read, process.stdout, output)
            group.start_soon(_read, process.stderr, complaint)
    code = process.returncode
    if code is None or code < 0:
        raise ToolError(ErrorCode.TIMEOUT, f"{why}: git {arguments[0]} was ended after {GIT_LIMIT_S:g} s")
    if code != 0:
        said = " ".join(complaint.decode("utf-8", "replace").split())[:_SHOWN_CHARS]
        raise ToolError(
            ErrorCode.INPUT,
            f"{why}: git {arguments[0]} failed{': ' + said if said else ''}",
            "Fix this, or leave out isolation.",
        )
    return bytes(output)


async def _read(stream: ByteReceiveStream | None, into: bytearray) -> None:
    if stream is not None:
        async for chunk in stream:
            into += chunk


class GitStager:
    """Stages files that their repository tracks. Others are left alone, since whether they belong there, a person says;
    so are those with a merge conflict, and those of which somebody had staged a part."""

    def __init__(self, git: RepositoryGit) -> None:
        self._git = git
        self._turn = asyncio.Lock()
        """One at a time: git's index has one writer."""

    async def stage(self, path: Path, former_sha256: str | None) -> str:
        """Stage this file as it is now; before, its bytes had this hash, or there was none. Returns what its writer
        should know; empty where there is nothing to tell."""
        if not await anyio.to_thread.run_sync(partial(_is_in_repository, path)):
            return ""
        notice = f"not staged with git: it took longer than {LIMIT_S:g} s"
        try:
            with anyio.move_on_after(LIMIT_S):
                async with self._turn:
                    notice = await self._stage(path, former_sha256)
        except ToolError as failed:
            notice = failed.message
        except OSError as problem:
            notice = f"not staged with git: {problem.strerror or problem}"
        return notice

    async def _stage(self, path: Path, former_sha256: str | None) -> str:
        why = "not staged with git"
        entries = await self._git.run(path.parent, _LITERAL, "ls-files", "-s", "-z", "--", path.name, why=why)
        if not entries:
            return ""
        if any(_stage_of(entry) != _MERGED for entry in entries.split("\0") if entry):
            # Adding it would say that the conflict is resolved, and the next commit would hold its markers.
            return f"{why}: the file has a merge conflict; git add says that it is resolved, which is left to the user"
        attribute = await self._git.run(path.parent, "check-attr", "-z", "filter", "--", path.name, why=why)
        if attribute.split("\0")[2:3] not in [[name] for name in _NO_FILTER]:
            # Run without its filter, git would store the bytes that it is there to keep out (LFS, git-crypt).
            return f"{why}: the repository filters this file on its way in, and filters are not run here"
        if await self._was_staged_in_part(path, former_sha256, why):
            return f"{why}: of this file only a part was staged, and what else had changed is left to the user"
        await self._git.run(path.parent, _LITERAL, "add", "--", path.name, why=why)
        return "staged with git"

    async def _was_staged_in_part(self, path: Path, former_sha256: str | None, why: str) -> bool:
        """Whether the index held another change than the file, before it was written (`git add -p`)."""
        changed = ("diff", "--cached", "--name-only", "-z", "--no-ext-diff", "--ignore-submodules", "--", path.name)
        if not await self._git.run(path.parent, _LITERAL, *changed, why=why):
            return False
        # As a checkout would write it, e.g. with other line ends.
        staged = await self._git.output(path.parent, "cat-file", "--filters", f":./{path.name}", why=why)
        return hashlib.sha256(staged).hexdigest() != former_sha256


def _stage_of(entry: str) -> str:
    """Of a line `MODE HASH STAGE<TAB>NAME`."""
    return entry.partition("\t")[0].rpartition(" ")[2]


def _is_in_repository(path: Path) -> bool:
    return any((folder / ".git").exists() for folder in path.parents)
