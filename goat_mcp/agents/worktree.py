"""A git worktree for an agent of its own: made before it starts, removed when it has changed nothing.

Worktrees lie in `.worktrees/` of the workspace, so that the file tools reach them like any other file; the folder
holds a `.gitignore` for all of it and nothing of the repository is changed but its list of worktrees and branches.
File tools of the agent write below its worktree only (`Rights.writes_below`); a shell is not bound to it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio
import anyio.to_thread
from anyio.abc import ByteReceiveStream

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.subprocesses.stop_signals import unblocked_for_children
from goat_mcp.workspace import Workspace

FOLDER = ".worktrees"
GIT_LIMIT_S = 120.0
CLEAR_UP_LIMIT_S = 20.0
_SHOWN_CHARS = 300
# What a repository names to be run at a checkout is none of a subagent's business.
_GIT = ("git", "-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false")


class BuildEnvironment(Protocol):
    """Makes the environment that git runs in."""

    async def build(self) -> dict[str, str]: ...


@dataclass(frozen=True)
class Worktree:
    """`directory` is where the agent works: in `top`, as deep as the workspace lies in its repository."""

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
        self._environment = environment
        self._folder_in_use = anyio.Lock()

    async def create(self, name: str) -> Worktree:
        """A new worktree at the last commit, on the new branch `goat/NAME`.

        Raises `ToolError`: NOT_CONFIGURED without git, INPUT where the workspace is no repository or has no commit.
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
                await self._git(
                    root, "worktree", "add", "-q", "-b", worktree.branch, worktree.top, base, why="isolation"
                )
            except BaseException:
                with anyio.move_on_after(CLEAR_UP_LIMIT_S, shield=True):
                    await anyio.to_thread.run_sync(partial(shutil.rmtree, worktree.top, ignore_errors=True))
                    await self._remove(worktree)
                raise
        return worktree

    def kept(self, stored: Mapping[str, str] | None) -> Worktree | None:
        """One of an earlier run that is still there."""
        try:
            worktree = Worktree(**(stored or {}))
        except TypeError:
            return None
        top = Path(worktree.top)
        is_ours = top.parent == self._workspace.primary / FOLDER and Path(worktree.directory).is_relative_to(top)
        return worktree if is_ours and _is_there(worktree) else None

    async def close(self, worktree: Worktree) -> bool:
        """Remove it with its branch, unless something was changed or committed in it. Returns whether it is kept."""
        async with self._folder_in_use:
            if _is_there(worktree):
                top = Path(worktree.top)
                try:
                    changes = await self._git(top, "status", "--porcelain", "--untracked-files=normal", why="worktree")
                    head = await self._git(top, "rev-parse", "HEAD", why="worktree")
                except ToolError:
                    return True  # better one too many than lost work
                if changes or head != worktree.base:
                    return True
            await self._remove(worktree)
        return _is_there(worktree)

    async def _ignore(self, root: Path, folder: Path) -> None:
        """Keep the folder out of the user's status and searches, unless they have seen to that themselves."""
        try:
            await self._git(root, "check-ignore", "-q", str(folder / "x"), why="isolation")
        except ToolError:
            with contextlib.suppress(FileExistsError), (folder / ".gitignore").open("x", encoding="utf-8") as file:
                file.write("*\n")

    async def _check_is_new(self, root: Path, worktree: Worktree) -> None:
        """What a failed start removes must be of its own making."""
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

    async def _git(self, directory: Path, *arguments: str, why: str) -> str:
        """What git prints, without the last line end. Raises `ToolError` that begins with `why` where it fails."""
        environment = {**await self._environment.build(), "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
        try:
            with unblocked_for_children():
                process = await anyio.open_process(
                    [*_GIT, *arguments],
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
                "Mend this, or leave out isolation.",
            )
        return os.fsdecode(bytes(output)).rstrip("\n")


def _exists(path: str) -> bool:
    return os.path.lexists(path)


def _is_there(worktree: Worktree) -> bool:
    return (Path(worktree.top) / ".git").is_file()


async def _read(stream: ByteReceiveStream | None, into: bytearray) -> None:
    if stream is not None:
        async for chunk in stream:
            into += chunk


def _remove_if_empty(folder: Path) -> None:
    """Remove the folder of worktrees where nothing but our own `.gitignore` is in it."""
    with contextlib.suppress(OSError):
        if [path.name for path in folder.iterdir()] == [".gitignore"]:
            (folder / ".gitignore").unlink()
        folder.rmdir()
