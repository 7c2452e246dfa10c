"""`git add` after a tool has written a file of a repository (`files.git_stage`). Source: goa, `GitStager`.

Best effort: whatever git says, the file is written. Here because it is git as agents' worktrees have it, which runs
nothing that a repository's settings name.
"""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from goat_mcp.agents.repository_git import RepositoryGit
from goat_mcp.core.errors import ToolError

LIMIT_S = 5.0
_NO_FILTER = ("unspecified", "unset")
_LITERAL = "--literal-pathspecs"


class GitStager:
    """Stages files that their repository tracks. Others are left alone: whether they belong there, a person says."""

    def __init__(self, git: RepositoryGit) -> None:
        self._git = git
        self._turn = asyncio.Lock()
        """One at a time: git's index has one writer."""

    async def stage(self, path: Path) -> str:
        """Stage this file as it is now. Returns what its writer should know; empty where there is nothing to tell."""
        if not await anyio.to_thread.run_sync(partial(_is_in_repository, path)):
            return ""
        told = f"not staged with git: it took longer than {LIMIT_S:g} s"
        try:
            with anyio.move_on_after(LIMIT_S):
                async with self._turn:
                    told = await self._stage(path)
        except ToolError as failed:
            told = failed.message
        except OSError as problem:
            told = f"not staged with git: {problem.strerror or problem}"
        return told

    async def _stage(self, path: Path) -> str:
        why = "not staged with git"
        if not await self._git.run(path.parent, _LITERAL, "ls-files", "-z", "--", path.name, why=why):
            return ""
        attribute = await self._git.run(path.parent, "check-attr", "-z", "filter", "--", path.name, why=why)
        if attribute.split("\0")[2:3] not in [[name] for name in _NO_FILTER]:
            # Run without its filter, git would store the bytes that it is there to keep out (LFS, git-crypt).
            return f"{why}: the repository filters this file on its way in, and filters are not run here"
        await self._git.run(path.parent, _LITERAL, "add", "--", path.name, why=why)
        return "staged with git"


def _is_in_repository(path: Path) -> bool:
    return any((folder / ".git").exists() for folder in path.parents)
