"""Write: create a file or replace all of it. Encodings, line counts and read state live in `goat_mcp.files.editing`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import anyio.to_thread
from pydantic import ConfigDict, Field

from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import Hints, SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import Access, BuiltinTool, PreviewsChanges
from goat_mcp.files.changes.call_files import Changes, DirectChanges
from goat_mcp.files.changes.preview import preview_of
from goat_mcp.files.documents.line_ends import Eol, FileText, count_lines, split_lines
from goat_mcp.files.documents.text_encoding import TextFormat, check_insertion, looks_binary
from goat_mcp.files.documents.visible_text import shown_path
from goat_mcp.files.editing.current_file import StoredText, load_text, open_current
from goat_mcp.files.editing.matching import to_bytes, to_text
from goat_mcp.files.editing.numbered_diff import count_changed_lines
from goat_mcp.files.editing.omission_markers import added_placeholders, placeholder_notice, refuse_placeholders
from goat_mcp.files.editing.read_state import ReadState
from goat_mcp.files.settings import FileOptions
from goat_mcp.files.workspace import Files, FileVersion, Workspace, WorkspacePath
from goat_mcp.state.sessions import ReadRecord, Sessions

_EOL_OF: Mapping[bytes | None, Eol] = {b"\n": "lf", b"\r\n": "crlf", b"\r": "cr", b"": "none", None: "mixed"}
_BOM = "\ufeff"


def _hide_create_dirs(schema: dict[str, Any]) -> None:
    schema["properties"].pop("create_dirs", None)


class WriteInput(ToolInput):
    # goa's create_dirs works, but folders are created anyway: no model needs to know it.
    model_config = ConfigDict(json_schema_extra=_hide_create_dirs)

    aliases: ClassVar[Mapping[str, str]] = {"path": "file_path"}
    text_fields: ClassVar[frozenset[str]] = frozenset({"content"})

    file_path: str = Field(description="Absolute path")
    content: str
    create_dirs: bool = True


@dataclass(frozen=True)
class _WriteCall:
    """One call, worked out."""

    files: Files
    path: WorkspacePath
    real_path: Path
    content: str
    create_folders: bool
    state: ReadState


@dataclass(frozen=True)
class _WriteOutcome:
    result: ToolResult
    version: FileVersion


@dataclass(frozen=True)
class Write(
    BuiltinTool[WriteInput],
    PreviewsChanges,
    side_effect=SideEffect.MUTATING,
    toolset="core",
    title="Write file",
    hints=Hints(read_only=False, destructive=True, idempotent=True, open_world=False),
    always_load=True,
):
    """Replace all of a file's content, or create the file and its folders.

    Read an existing file first; to change parts of it use Edit. Text for a CRLF file may come with LF.
    """

    examples = (
        ToolExample("A new file", {"file_path": "@docs/notes.md", "content": "# Notes\n"}),
        ToolExample("An empty one", {"file_path": "/home/me/project/src/__init__.py", "content": ""}),
    )

    workspace: Workspace
    sessions: Sessions
    options: FileOptions = field(default_factory=FileOptions)
    changes: Changes = field(default_factory=DirectChanges)

    def access(self, input: WriteInput) -> Access:
        path = self.workspace.resolve(input.file_path)
        return Access(asked=(path.plain,), writes=(str(self.workspace.real_path(path)),))

    async def execute(self, input: WriteInput, ctx: ToolContext) -> ToolResult:
        path = self.workspace.resolve(input.file_path)
        real_path = self.workspace.real_path(path)
        files = self.changes.of(self.workspace, ctx, self.spec.name)
        reads = self.sessions.of(ctx.session_key).reads
        async with self.workspace.lock(real_path):
            target = self._target(input, ctx, files, path, real_path)
            outcome = await anyio.to_thread.run_sync(partial(self._write, target))
            now = outcome.version
            reads.record(str(real_path), ReadRecord(now.sha256, now.size, now.mtime_ns, whole=True))
        return await files.finish(outcome.result)

    async def preview(self, input: WriteInput, ctx: ToolContext) -> str:
        def prepare(path: WorkspacePath, files: Files) -> Callable[[], object]:
            return partial(self._write, self._target(input, ctx, files, path, self.workspace.real_path(path)))

        files = self.changes.of(self.workspace, ctx, self.spec.name)
        return await preview_of(input.file_path, self.workspace, files, prepare)

    def _target(
        self, input: WriteInput, ctx: ToolContext, files: Files, path: WorkspacePath, real_path: Path
    ) -> _WriteCall:
        seen = self.sessions.of(ctx.session_key).reads.get(str(real_path))
        state = ReadState(self.options.read_before_write, str(path), seen)
        return _WriteCall(files, path, real_path, input.content, input.create_dirs, state)

    def _write(self, target: _WriteCall) -> _WriteOutcome:
        if target.files.stat(target.path) is None:
            return self._create(target)
        return self._replace(target)

    def _create(self, target: _WriteCall) -> _WriteOutcome:
        if not target.create_folders:
            self._require_folder(target.path)
        check_insertion(target.content, TextFormat())
        notices = self._placeholder_notices(target.content, b"")
        content = to_bytes(target.content)
        written = target.files.write_file(target.path, content, expect=None)
        lines = count_lines(content)
        facts = _facts("create", content, TextFormat(), lines, 0)
        text = f"Created {shown_path(target.path)} ({_in_lines(lines)})."
        return _WriteOutcome(text_result(text, facts=facts, notices=notices), written.version)

    def _replace(self, target: _WriteCall) -> _WriteOutcome:
        with open_current(target.files, target.path, target.real_path) as current:
            version = current.version
            target.state.before_overwriting(version)
            old = self._load(current.data, str(target.path))
            content = self._as_the_file_has_it(target.content, old)
            data = old.stored(content)
            is_same = data == current.data
        lines = count_lines(content)
        if is_same:
            text = f"{shown_path(target.path)} is unchanged: it has this content already ({_in_lines(lines)})."
            return _WriteOutcome(text_result(text, facts=_facts("unchanged", content, old.format, 0, 0)), version)
        notices = self._placeholder_notices(target.content, old.content)
        additions, deletions = count_changed_lines(
            old.content.splitlines(keepends=True), content.splitlines(keepends=True)
        )
        written = target.files.write_file(target.path, data, expect=version)
        line_ends = _line_ends_in_words(_eol(old.content), _eol(content))
        text = f"Updated {shown_path(target.path)} ({_in_lines(lines)}, +{additions} -{deletions}{line_ends})."
        facts = _facts("update", content, old.format, additions, deletions)
        return _WriteOutcome(text_result(text, facts=facts, notices=notices), written.version)

    def _load(self, data: bytes, path: str) -> StoredText:
        if looks_binary(data):
            return StoredText(b"", TextFormat())  # no lines to count, no form to keep
        return load_text(data, legacy_encoding=self.options.legacy_encoding, path=path)

    def _as_the_file_has_it(self, content: str, old: StoredText) -> bytes:
        """The content with the old file's line ends, if all of those are CRLF and it has only LF itself."""
        if old.format.bom:
            content = content.removeprefix(_BOM)
        _check_characters(content, old)
        keeps = self.options.write_eol == "keep" and "\r" not in content and _eol(old.content) == "crlf"
        return to_bytes(content.replace("\n", "\r\n") if keeps else content)

    def _require_folder(self, path: WorkspacePath) -> None:
        folder = self.workspace.resolve(str(path.path.parent))
        if self.workspace.stat(folder) is None:
            raise ToolError(
                ErrorCode.NOT_FOUND, f"the folder {folder} does not exist", "Leave out create_dirs to have it created."
            )

    def _placeholder_notices(self, content: str, before: bytes) -> list[str]:
        if self.options.placeholder_check == "off":
            return []
        added = added_placeholders(content, before)
        if added and self.options.placeholder_check == "refuse":
            raise refuse_placeholders(added)
        return [placeholder_notice(added)] if added else []


def _check_characters(content: str, old: StoredText) -> None:
    """Refuse what the codec cannot hold. If nobody knows the codec, lines the file has already may stay."""
    if not old.format.is_guess:
        check_insertion(content, old.format)
        return
    known = {line.rstrip("\r\n") for line in split_lines(to_text(old.content))}
    for line in split_lines(content):
        if line.rstrip("\r\n") not in known:
            check_insertion(line, old.format)


def _facts(
    type: Literal["create", "update", "unchanged"], content: bytes, format: TextFormat, additions: int, deletions: int
) -> dict[str, Any]:
    return {
        "type": type,
        "lines": count_lines(content),
        "additions": additions,
        "deletions": deletions,
        "eol": _eol(content),
        "encoding": format.encoding,
        "staged": False,
    }


def _eol(content: bytes) -> Eol:
    return _EOL_OF[FileText(content).line_end]


def _line_ends_in_words(before: Eol, now: Eol) -> str:
    if now == "none":
        return ""
    name = now if now == "mixed" else now.upper()
    if before == now:
        return f", {name} kept"
    return f", {name}" if before == "none" else f", {name}, before {before if before == 'mixed' else before.upper()}"


def _in_lines(lines: int) -> str:
    return f"{lines} line{'' if lines == 1 else 's'}"
