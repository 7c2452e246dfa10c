"""A git worktree for one agent: created before it starts, removed if it changed nothing.

Worktrees lie in `.worktrees/` of the workspace, so that the file tools reach them like any other file; the folder
holds a `.gitignore` for all of it and nothing of the repository is changed but its list of worktrees and branches.
File tools of the agent write below its worktree only (`Rights.writes_below`); a shell is not bound to it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from goat_mcp.agents.loop import CallTools, ToolCall
from goat_mcp.agents.repository_git import BuildEnvironment, RepositoryGit
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.names import GOA_ALIASES, TOOL_ALIASES
from goat_mcp.core.result import ToolResult
from goat_mcp.files.workspace import Workspace

FOLDER = ".worktrees"
CLEAR_UP_LIMIT_S = 20.0
_SUBMODULE = "160000 "

_FILE_TOOLS = frozenset({"Read", "Write", "Edit", "NotebookEdit", "Glob", "Grep", "Bash"})
_RELATIVE_TOOLS = frozenset({"file-system__read", "file-system__write"})
"""Those that take relative paths."""
_PATH_FIELDS = frozenset({"file_path", "notebook_path", "path", "directory", "workdir", "cwd", "filePath"})
_SEARCHES = frozenset({"Glob", "Grep"})


@dataclass(frozen=True)
class Worktree:
    """`directory` is where the agent works: below `top`, as deep as the workspace is in its repository."""

    top: str
    directory: str
    branch: str
    base: str

    def stored(self) -> dict[str, str]:
        return asdict(self)


class Worktrees:
    """Makes and removes worktrees of the repository that the workspace's first directory belongs to."""

    def __init__(self, workspace: Workspace, environment: BuildEnvironment) -> None:
        self._workspace = workspace
        self._git = RepositoryGit(environment).run
        self._folder_in_use = anyio.Lock()

    async def create(self, name: str) -> Worktree:
        """A new worktree at the last commit, on the new branch `goat/NAME`.

        Raises `ToolError`: NOT_CONFIGURED without git, INPUT if the workspace is no repository or has no commit.
        """
        root = self._workspace.primary
        prefix = await self._git(
            root, "rev-parse", "--show-prefix", why="isolation: the workspace is no git repository"
        )
        base = await self._git(
            root, "rev-parse", "--verify", "-q", "HEAD^{commit}", why="isolation: the repository has no commit yet"
        )
        async with self._folder_in_use:
            folder = self._folder(root)
            worktree = Worktree(str(folder / name), str(folder / name / prefix), f"goat/{name}", base)
            await self._check_is_new(root, worktree)
            await self._ignore(root, folder)
            try:
                added = ("worktree", "add", "-q", "--no-checkout", "-b", worktree.branch, worktree.top, base)
                await self._git(root, *added, why="isolation")
                # In the worktree, where git knows which settings hold for it.
                await self._git(Path(worktree.top), "reset", "-q", "--hard", why="isolation")
            except BaseException:
                with anyio.move_on_after(CLEAR_UP_LIMIT_S, shield=True):
                    await anyio.to_thread.run_sync(partial(shutil.rmtree, worktree.top, ignore_errors=True))
                    await self._remove(worktree)
                raise
        return worktree

    def existing(self, stored: Mapping[str, str] | None) -> Worktree | None:
        """The worktree of an earlier run, if it still exists."""
        try:
            worktree = Worktree(**(stored or {}))
        except TypeError:
            return None
        top = Path(worktree.top)
        is_ours = top.parent == self._workspace.primary / FOLDER and Path(worktree.directory).is_relative_to(top)
        return worktree if is_ours and _is_there(worktree) else None

    async def close(self, worktree: Worktree) -> bool:
        """Remove it with its branch, unless it has changes or commits. Returns whether it is kept."""
        async with self._folder_in_use:
            if _is_there(worktree):
                top = Path(worktree.top)
                try:
                    # git looks into a submodule with the settings of the submodule.
                    status = ("status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=dirty")
                    changes = await self._git(top, *status, why="worktree")
                    head = await self._git(top, "rev-parse", "HEAD", why="worktree")
                    files = await self._git(top, "ls-files", "-z", "--stage", why="worktree")
                except ToolError:
                    return True  # better one too many than lost work
                if changes or head != worktree.base or _has_submodule(top, files):
                    return True
            await self._remove(worktree)
        return _is_there(worktree)

    async def _ignore(self, root: Path, folder: Path) -> None:
        """Keep the folder out of the user's status and searches, unless the user ignores it already."""
        try:
            await self._git(root, "check-ignore", "-q", str(folder / "x"), why="isolation")
        except ToolError:
            with contextlib.suppress(FileExistsError), (folder / ".gitignore").open("x", encoding="utf-8") as file:
                file.write("*\n")

    async def _check_is_new(self, root: Path, worktree: Worktree) -> None:
        """A failed start may only remove what it created."""
        branches = await self._git(root, "branch", "--list", worktree.branch, why="isolation")
        if branches or _exists(worktree.top):
            raise ToolError(
                ErrorCode.INPUT,
                f"isolation: {worktree.top} or the branch {worktree.branch} is there already",
                "Call again with another name.",
            )

    async def _remove(self, worktree: Worktree) -> None:
        root = self._workspace.primary
        for arguments in (
            ("worktree", "remove", "--force", worktree.top),
            ("worktree", "prune"),
            ("branch", "-q", "-D", worktree.branch),
        ):
            with contextlib.suppress(ToolError):  # what is not there need not be removed
                await self._git(root, *arguments, why="worktree")
        _remove_if_empty(Path(worktree.top).parent)

    def _folder(self, root: Path) -> Path:
        folder = root / FOLDER
        folder.mkdir(exist_ok=True)
        if os.path.realpath(folder) != str(folder):
            raise ToolError(
                ErrorCode.PATH_OUTSIDE,
                f"isolation: {folder} is a link, and worktrees must lie in the workspace",
                "Remove the link, or leave out isolation.",
            )
        return folder


def _exists(path: str) -> bool:
    return os.path.lexists(path)


def _is_there(worktree: Worktree) -> bool:
    return (Path(worktree.top) / ".git").is_file()


def _has_submodule(top: Path, files: str) -> bool:
    """Whether a submodule of the index is checked out."""
    paths = (line.partition("\t")[2] for line in files.split("\0") if line.startswith(_SUBMODULE))
    return any(_exists(str(top / path / ".git")) for path in paths)


def _remove_if_empty(folder: Path) -> None:
    """Remove the folder of worktrees if it holds nothing but our `.gitignore`."""
    with contextlib.suppress(OSError):
        if [path.name for path in folder.iterdir()] == [".gitignore"]:
            (folder / ".gitignore").unlink()
        folder.rmdir()


@dataclass(frozen=True)
class WorktreeCalls:
    """A `CallTools` around another one: `@`, and a search that names no directory, mean the agent's worktree.

    The worktree is where the call's rights allow it to write.
    """

    call: CallTools

    async def __call__(self, calls: Sequence[ToolCall]) -> Sequence[ToolResult]:
        return await self.call([_moved(call) if call.ctx.rights.writes_below else call for call in calls])


def _moved(call: ToolCall) -> ToolCall:
    name = TOOL_ALIASES.get(call.name, call.name)
    if name not in _FILE_TOOLS and name not in _RELATIVE_TOOLS:
        return call  # elsewhere `@` has another meaning: @scope/package
    directory = call.ctx.rights.writes_below
    takes_relative = name in _RELATIVE_TOOLS or call.name in GOA_ALIASES
    arguments: dict[str, Any] = {
        key: _path(value, directory, takes_relative) if key in _PATH_FIELDS and isinstance(value, str) else value
        for key, value in call.arguments.items()
    }
    if name in _SEARCHES and not arguments.get("path") and not arguments.get("directory"):
        arguments["path"] = directory
    return replace(call, arguments=arguments)


def _path(path: str, directory: str, takes_relative: bool) -> str:
    if path.startswith("@"):
        return f"{directory}/{path[1:].lstrip('/')}".rstrip("/")
    return f"{directory}/{path}" if takes_relative and path and not path.startswith("/") else path
