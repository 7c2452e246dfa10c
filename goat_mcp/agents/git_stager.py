"""`git add` after a tool has written a file of a repository (`files.git_stage`). Source: goa, `GitStager`.

Best effort: whatever git says, the file is written. Here because it is git as agents' worktrees have it, which runs
nothing that a repository's settings name.
"""

from __future__ import annotations

import asyncio
import hashlib
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from goat_mcp.agents.repository_git import RepositoryGit
from goat_mcp.core.errors import ToolError

LIMIT_S = 5.0
_NO_FILTER = ("unspecified", "unset")
_LITERAL = "--literal-pathspecs"
_MERGED = "0"


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
