"""`memento__note`: what a model writes down for later. Project notes go the way of every change of a file (jail,
journal, review); global ones lie with the user's settings, where no workspace reaches."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from goat_mcp.core.coercion import Problem, input_error
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.resources import Announcements
from goat_mcp.core.result import text_result
from goat_mcp.core.rights import USERS
from goat_mcp.files.changes.staged_files import FileChanges
from goat_mcp.files.memory import MAX_NAME_CHARS, MEMORY_URI, Memories, Memory, Scope, slug
from goat_mcp.files.workspace import Workspace, WorkspacePath
from goat_mcp.manifests.handler_api import Handler, HandlerContext, Host
from goat_mcp.state.private_file import write_private

MAX_BYTES = 1024 * 1024
_AROUND_CHARS = 100
"""What the list has beside its entries."""
_TOOL = "memento__note"
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "read": ("name",),
    "write": ("name", "content"),
    "append": ("name", "content"),
    "delete": ("name",),
    "list": (),
}


def build_handlers(host: Host) -> Mapping[str, Handler]:
    changes: FileChanges = host.tool("Write").changes
    memories = Memories(host.workspace, host.hides, changes.waiting_of)
    return {"note": Note(host.workspace, memories, changes, host.announcements, host.max_chars)}


@dataclass(frozen=True)
class Note:
    workspace: Workspace
    memories: Memories
    changes: FileChanges
    announcements: Announcements
    max_chars: int

    async def __call__(self, ctx: HandlerContext, input: Mapping[str, Any]) -> Any:
        action, scope = str(input["action"]), input.get("scope", "project")
        name, directory = _checked(action, input), str(input.get("directory", ""))
        if scope == "global" and ctx.call.principal not in USERS:
            raise ToolError(
                ErrorCode.PERMISSION, "global memories are the user's own; this client has a profile", "Use project."
            )
        if action == "list":
            scopes: tuple[Scope, ...] = (scope,) if "scope" in input else ("project", "global")
            found = await self._newest_first(scopes, directory, ctx)
            return _page(found, input.get("offset", 0), ctx.call.setting("output.max_chars", self.max_chars))
        content = str(input.get("content", ""))
        place: _ProjectNote | _GlobalNote
        if scope == "global":
            place = _GlobalNote(self.workspace, self.memories.global_folder(), name)
        else:
            path = self.memories.project_file(name, directory)
            place = _ProjectNote(self.workspace, self.memories, self.changes, path, ctx, name, directory)
        if action == "read":
            data = await place.read()
            if data is None:
                raise await self._missing(name, scope, directory, ctx)
            return {"name": name, "scope": scope, "content": data.decode("utf-8", "replace"), "size": len(data)}
        if action == "delete":
            deleted = await place.delete()
            if deleted is None:
                raise await self._missing(name, scope, directory, ctx)
            answer: dict[str, Any] = {"name": name, "scope": scope, **deleted}
        else:
            asked = str(input["name"]).removesuffix(".md")
            # Several names are one file's: who writes `my_note` may not know of `my-note`.
            is_others = action == "write" and asked != name and await place.read() is not None
            answer = {"name": name, "scope": scope, **await place.write(content.encode(), append=action == "append")}
            if is_others:
                answer["replaced"] = f"there was a note {name}, which {asked} means too: its content was replaced"
        self.announcements.changed(MEMORY_URI)
        return answer

    async def _newest_first(self, scopes: Sequence[Scope], directory: str, ctx: HandlerContext) -> list[Memory]:
        find = partial(self.memories.newest_first, ctx.call.principal, ctx.call.session_key, scopes, directory)
        return await anyio.to_thread.run_sync(find)

    async def _missing(self, name: str, scope: Scope, directory: str, ctx: HandlerContext) -> ToolError:
        found = await self._newest_first((scope,), directory, ctx)
        if leaving := next((memory for memory in found if memory.is_leaving and memory.name == name), None):
            hint = f"Change {leaving.change}, which waits for the user, deletes it; write makes it again."
            return ToolError(ErrorCode.NOT_FOUND, f"there is no {scope} memory {name!r} any more", hint)
        names = [memory.name for memory in found if not memory.is_leaving]
        near = difflib.get_close_matches(name, names, n=3) or names[:8]
        hint = f"There are {', '.join(near)}." if near else "There is none yet; write makes one."
        return ToolError(ErrorCode.NOT_FOUND, f"there is no {scope} memory {name!r}", hint)


def _page(found: Sequence[Memory], offset: int, max_chars: int) -> Mapping[str, Any]:
    """As many, from there on, as can be shown whole; and how many are left."""
    shown: list[Mapping[str, Any]] = []
    used = _AROUND_CHARS
    for memory in found[offset:]:
        described = memory.described()
        used += len(json.dumps(described, ensure_ascii=False)) + len(", ")
        if shown and used > max_chars:
            break
        shown.append(described)
    next_offset = offset + len(shown)
    if next_offset >= len(found):
        return {"memories": shown}
    return {"memories": shown, "left": len(found) - next_offset, "nextOffset": next_offset}


def _checked(action: str, input: Mapping[str, Any]) -> str:
    """The name as files have it. Raises `ToolError(INPUT)` with all that is missing or wrong."""
    problems: list[Problem] = []
    for field in _NEEDS[action]:
        if field not in input:
            problems.append((field, f"is required by {action}"))
    name = slug(str(input.get("name", "")))
    if "name" in input and "name" in _NEEDS[action]:
        if not name:
            problems.append(("name", "has no letter or digit to make a file's name of"))
        elif len(name.encode()) > MAX_NAME_CHARS:
            problems.append(("name", f"is longer than {MAX_NAME_CHARS} bytes; shorten it"))
    if len(str(input.get("content", "")).encode()) > MAX_BYTES:
        problems.append(("content", f"is longer than {MAX_BYTES:,} bytes"))
    if problems:
        raise input_error(problems)
    return name


def _joined(old: bytes, content: bytes, *, append: bool) -> bytes:
    if not append:
        return content
    gap = b"" if not old or old.endswith(b"\n") else b"\n"
    whole = old + gap + content
    if len(whole) > MAX_BYTES:
        raise ToolError(
            ErrorCode.TOO_LARGE,
            f"the memory would have {len(whole):,} bytes; {MAX_BYTES:,} are the most",
            "Start another.",
        )
    return whole


@dataclass(frozen=True)
class _ProjectNote:
    workspace: Workspace
    memories: Memories
    changes: FileChanges
    path: WorkspacePath
    ctx: HandlerContext
    name: str
    directory: str

    def _check(self) -> None:
        """Raises where it has become a link since the call was judged: a person may have been asked meanwhile."""
        self.memories.project_file(self.name, self.directory)

    async def read(self) -> bytes | None:
        files = self.changes.of(self.workspace, self.ctx.call, _TOOL)

        def read() -> bytes | None:
            self._check()
            if files.stat(self.path) is None:
                return None
            with files.open_file(self.path) as file:
                return file.read()

        return await anyio.to_thread.run_sync(read)

    async def write(self, content: bytes, *, append: bool) -> Mapping[str, Any]:
        files = self.changes.of(self.workspace, self.ctx.call, _TOOL)

        def write() -> int:
            self._check()
            if files.stat(self.path) is None:
                files.write_file(self.path, content, expect=None)
                return len(content)
            with files.open_file(self.path) as file:
                old = file.read()
                version = file.version(old)
            whole = _joined(old, content, append=append)
            files.write_file(self.path, whole, expect=version)
            return len(whole)

        async with self.workspace.lock(self.workspace.real_path(self.path)):
            size = await anyio.to_thread.run_sync(write)
        result = await files.finish(text_result(f"Wrote {self.path} ({size:,} bytes).", facts={"staged": False}))
        return {"path": str(self.path), "size": size, **(result.facts or {}), "message": result.text}

    async def delete(self) -> Mapping[str, Any] | None:
        files = self.changes.of(self.workspace, self.ctx.call, _TOOL)

        def delete() -> bool:
            self._check()
            if files.stat(self.path) is None:
                return False
            with files.open_file(self.path) as file:
                version = file.version(file.read())
            files.remove_file(self.path, expect=version)
            return True

        async with self.workspace.lock(self.workspace.real_path(self.path)):
            if not await anyio.to_thread.run_sync(delete):
                return None
        done = text_result(f"Deleted {self.path}.", facts={"staged": False})
        result = await files.finish(done)
        facts = result.facts or {}
        message = {} if result.text == done.text else {**facts, "message": result.text}
        return {"deleted": not facts.get("staged"), **message}


@dataclass(frozen=True)
class _GlobalNote:
    """In the user's own folder, which holds what this tool wrote and nothing that a link leads to."""

    workspace: Workspace
    folder: Path
    name: str

    @property
    def file(self) -> Path:
        return self.folder / f"{self.name}.md"

    async def read(self) -> bytes | None:
        return await anyio.to_thread.run_sync(self._read)

    def _read(self) -> bytes | None:
        if self.file.is_symlink():
            raise ToolError(ErrorCode.NOT_REGULAR, f"{self.file} is a link", "Ask the user about it.")
        try:
            return self.file.read_bytes() if self.file.is_file() else None
        except OSError as problem:
            raise _failed(self.file, problem) from None

    async def write(self, content: bytes, *, append: bool) -> Mapping[str, Any]:
        def write() -> int:
            whole = _joined(self._read() or b"", content, append=append)
            try:
                self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                write_private(self.file, whole)
            except OSError as problem:
                raise _failed(self.file, problem) from None
            return len(whole)

        async with self.workspace.lock(self.file):
            size = await anyio.to_thread.run_sync(write)
        return {"path": str(self.file), "size": size}

    async def delete(self) -> Mapping[str, Any] | None:
        def delete() -> bool:
            if self._read() is None:
                return False
            os.unlink(self.file)  # noqa: PTH108 - what is there was looked at as a file of this very name
            return True

        async with self.workspace.lock(self.file):
            return {"deleted": True} if await anyio.to_thread.run_sync(delete) else None


def _failed(file: Path, problem: OSError) -> ToolError:
    reason = (problem.strerror or str(problem)).lower()
    return ToolError(ErrorCode.IO, f"{file}: {reason}", "Ask the user about it; a project memory works meanwhile.")
