"""`file-system__read` and `__write`: Goondan's way to files, through the same door as Read and Write.

What they add is another face: relative paths, content without line numbers, and adding to a file's end.
"""

from __future__ import annotations

import base64
import codecs
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.files.changes.call_files import CallFiles, Changes
from goat_mcp.files.documents.file_type import HEAD_BYTES, binary_type, size_text
from goat_mcp.files.documents.line_ends import FileText, count_lines
from goat_mcp.files.documents.streamed_text import MAX_HASHED_BYTES
from goat_mcp.files.documents.text_encoding import (
    SAMPLE_BYTES,
    TextFormat,
    check_insertion,
    decode_for_reading,
    looks_binary,
)
from goat_mcp.files.editing.current_file import load_text, open_current
from goat_mcp.files.editing.matching import to_bytes
from goat_mcp.files.editing.omission_markers import added_placeholders, placeholder_notice, refuse_placeholders
from goat_mcp.files.editing.read_state import ReadState
from goat_mcp.files.settings import FileOptions
from goat_mcp.files.workspace import FileVersion, OpenedFile, Workspace, WorkspacePath
from goat_mcp.files.workspace.opened_file import hash_of
from goat_mcp.manifests.handler_api import Handler, HandlerContext, Host
from goat_mcp.state.sessions import ReadRecord, Sessions

DEFAULT_BYTES = 1024 * 1024
_LONGEST_CHARACTER = 4
_WRITE = "file-system__write"
_NODE_NAMES = {"utf16le": "utf-16-le", "ucs2": "utf-16-le", "ucs-2": "utf-16-le", "binary": "latin-1"}
"""Names that Goondan's tools have for codecs and Python has not."""


def build_handlers(host: Host) -> Mapping[str, Handler]:
    write = host.tool("Write")
    changes = _OwnChanges(write.changes)
    files = _Files(host.workspace, host.sessions, write.options, changes)
    return {"read": Reading(files), "write": Writing(files, replace(write, changes=changes))}


@dataclass(frozen=True)
class _OwnChanges:
    """`Changes` that stand under this tool's name in the journal and the review, whichever tool makes them."""

    changes: Changes

    def of(self, workspace: Workspace, ctx: ToolContext, tool: str) -> CallFiles:
        return self.changes.of(workspace, ctx, _WRITE)


@dataclass(frozen=True)
class _Files:
    """What both are built over: that of the built-in tools."""

    workspace: Workspace
    sessions: Sessions
    options: FileOptions
    changes: Changes

    def resolve(self, asked: str, ctx: HandlerContext) -> WorkspacePath:
        if asked and ctx.workdir and not asked.startswith(("/", "@")):
            asked = f"{ctx.workdir}/{asked}"
        return self.workspace.resolve(asked)


@dataclass(frozen=True)
class Reading:
    files: _Files

    async def __call__(self, ctx: HandlerContext, input: Mapping[str, Any]) -> Any:
        path = self.files.resolve(input["path"], ctx)
        files = self.files.changes.of(self.files.workspace, ctx.call, "Read")
        encoding = str(input.get("encoding") or "")
        read = partial(self._read, files, path, encoding, int(input.get("maxBytes", DEFAULT_BYTES)))
        answer, real_path, seen = await anyio.to_thread.run_sync(read)
        self.files.sessions.of(ctx.call.session_key).reads.record(str(real_path), seen)
        return answer

    def _read(
        self, files: CallFiles, path: WorkspacePath, encoding: str, max_bytes: int
    ) -> tuple[Mapping[str, Any], Path, ReadRecord]:
        with files.open_file(path) as file:
            size = file.stat.st_size
            data = _head(file, max_bytes)
            is_cut = size > len(data)
            # The mtime from before reading: a change since then has another one.
            sha256 = hash_of(file.fd) if size <= MAX_HASHED_BYTES else ""
            seen = ReadRecord(sha256, size, file.stat.st_mtime_ns, whole=not is_cut)
            content, name, notices = self._decoded(data, encoding, path, size, is_cut=is_cut)
            answer = {"path": str(path), "content": content, "encoding": name, "size": size, "truncated": is_cut}
            notices = [*notices, *files.notices(path)]
            if is_cut:
                notices.append(f"only the first {len(data):,} of {size:,} bytes; set maxBytes for more")
            return {**answer, "notices": notices} if notices else answer, file.real_path, seen

    def _decoded(
        self, data: bytes, encoding: str, path: WorkspacePath, size: int, *, is_cut: bool
    ) -> tuple[str, str, list[str]]:
        """The content, what it is encoded in, and what is odd about it."""
        wanted = _NODE_NAMES.get(encoding.lower(), encoding.lower())
        if wanted == "base64":
            return base64.b64encode(data).decode("ascii"), "base64", []
        if not wanted and looks_binary(data[:SAMPLE_BYTES]):
            raise ToolError(
                ErrorCode.BINARY,
                f"{path} is a binary file {binary_type(data[:HEAD_BYTES])}, {size_text(size)}",
                "Set encoding to base64 to get its bytes.",
                facts={"size": size},
            )
        if wanted:
            return _decode(data, wanted, path, is_cut=is_cut), wanted, []
        decoded = decode_for_reading(_whole_characters(data) if is_cut else data, **self._legacy())
        odd = [f"shown as {decoded.format.encoding}: it is no UTF-8"] if decoded.format.is_guess else []
        return decoded.text, decoded.format.encoding, odd

    def _legacy(self) -> dict[str, str | None]:
        return {"legacy_encoding": self.files.options.legacy_encoding}


def _head(file: OpenedFile, max_bytes: int) -> bytes:
    with open(file.fd, "rb", closefd=False) as stream:
        return stream.read(max_bytes)


def _whole_characters(data: bytes) -> bytes:
    """UTF-8 without the beginning of a character that was cut through."""
    for length in range(1, min(_LONGEST_CHARACTER, len(data) + 1)):
        first = data[-length]
        if first >= 0xC0:  # the first byte of a character of several; of how many, it says itself
            needed = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
            return data[:-length] if needed > length else data
        if first < 0x80:
            break
    return data


def _decode(data: bytes, encoding: str, path: WorkspacePath, *, is_cut: bool) -> str:
    try:
        "".encode(encoding)  # what is no codec of text says so here
        return codecs.getincrementaldecoder(encoding)().decode(data, final=not is_cut)
    except UnicodeDecodeError as problem:
        raise ToolError(
            ErrorCode.ENCODING,
            f"{path} is no {encoding}: {problem.reason} at byte {problem.start}",
            "Leave encoding out, name another codec, or base64.",
        ) from None
    except (LookupError, ValueError):
        raise ToolError(
            ErrorCode.INPUT,
            f"encoding: {encoding[:60]!r} is no codec of text",
            "Leave it out, or use e.g. utf-8, utf-16, latin-1, cp1252, shift_jis or base64.",
        ) from None


@dataclass(frozen=True)
class Writing:
    """Replacing is Write's business. Adding looks at the file it adds to under the same lock as it writes."""

    files: _Files
    write: Any

    async def __call__(self, ctx: HandlerContext, input: Mapping[str, Any]) -> Any:
        path = self.files.resolve(input["path"], ctx)
        if input.get("append"):
            return _told(path, await self._append(ctx, path, input["content"]))
        asked = self.write.validate({"file_path": path.plain, "content": input["content"]})
        return _told(path, await self.write.execute(asked, ctx.call))

    async def _append(self, ctx: HandlerContext, path: WorkspacePath, content: str) -> ToolResult:
        workspace = self.files.workspace
        real_path = workspace.real_path(path)
        files = self.files.changes.of(workspace, ctx.call, _WRITE)
        reads = self.files.sessions.of(ctx.call.session_key).reads
        async with workspace.lock(real_path):
            seen = reads.get(str(real_path))
            state = ReadState(self.files.options.read_before_write, str(path), seen)
            addition = _Addition(files, path, real_path, content, state, self.files.options)
            result, version = await anyio.to_thread.run_sync(addition.make)
            if version is not None:
                whole = seen is None or seen.whole
                reads.record(str(real_path), ReadRecord(version.sha256, version.size, version.mtime_ns, whole))
        return await files.finish(result)


@dataclass(frozen=True)
class _Addition:
    """One call that adds to a file's end."""

    files: CallFiles
    path: WorkspacePath
    real_path: Path
    content: str
    state: ReadState
    options: FileOptions

    def make(self) -> tuple[ToolResult, FileVersion | None]:
        """The result, and what the session knows by it of the file. Blocking; hold the file's lock."""
        if self.files.stat(self.path) is None:
            check_insertion(self.content, TextFormat())
            data = to_bytes(self.content)
            written = self.files.write_file(self.path, data, expect=None)
            return self._result("create", data, self._placeholders(b"")), written.version
        with open_current(self.files, self.path, self.real_path) as current:
            if current.data:
                self.state.before_editing()
            old = load_text(current.data, legacy_encoding=self.options.legacy_encoding, path=str(self.path))
            version = current.version
        added = to_bytes(self._with_line_ends_of(old.content))
        if not added:
            return self._result("unchanged", b"", []), None
        check_insertion(self.content, old.format)
        notices = self._placeholders(old.content)
        if self.state.is_changed(version):
            notices.append("the file had changed since you read it; its present content was added to")
        written = self.files.write_file(self.path, old.stored(old.content + added), expect=version)
        is_known = self.state.seen is not None or not version.size
        return self._result("append", added, notices), written.version if is_known else None

    def _with_line_ends_of(self, old: bytes) -> str:
        keeps = self.options.write_eol == "keep" and "\r" not in self.content and FileText(old).line_end == b"\r\n"
        return self.content.replace("\n", "\r\n") if keeps else self.content

    def _placeholders(self, before: bytes) -> list[str]:
        if self.options.placeholder_check == "off":
            return []
        added = added_placeholders(self.content, before)
        if added and self.options.placeholder_check == "refuse":
            raise refuse_placeholders(added)
        return [placeholder_notice(added)] if added else []

    def _result(self, type: str, added: bytes, notices: list[str]) -> ToolResult:
        lines = count_lines(added)
        words = {"create": "Created", "append": "Added to", "unchanged": "Nothing to add to"}
        text = f"{words[type]} {self.path} ({lines} line{'' if lines == 1 else 's'})."
        facts = {"type": type, "lines": lines, "additions": lines, "deletions": 0, "staged": False}
        return text_result(text, facts=facts, notices=notices)


def _told(path: WorkspacePath, result: ToolResult) -> Mapping[str, Any]:
    """What Write says in words comes along: it may hold notices, or that a person has yet to decide."""
    return {
        "path": str(path),
        "written": not (result.facts or {}).get("staged"),
        **(result.facts or {}),
        "message": result.text,
    }
