"""Edit: replace text in a file. `goat_mcp.files.editing` finds and changes the text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import anyio.to_thread
from pydantic import Field, model_validator

from goat_mcp.core.arguments import InputPart, ToolInput
from goat_mcp.core.coercion import Problem
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import Access, BuiltinTool, PreviewsChanges
from goat_mcp.files.changes.call_files import Changes, DirectChanges
from goat_mcp.files.changes.preview import preview_of
from goat_mcp.files.documents.line_ends import count_lines
from goat_mcp.files.documents.text_encoding import TextFormat
from goat_mcp.files.documents.visible_text import shown_path
from goat_mcp.files.editing.current_file import StoredText, load_text, open_current
from goat_mcp.files.editing.edit_list import Edited, TextEdit, apply_edits
from goat_mcp.files.editing.matching import Tier
from goat_mcp.files.editing.numbered_diff import NumberedDiff, diff
from goat_mcp.files.editing.omission_markers import added_placeholders, placeholder_notice, refuse_placeholders
from goat_mcp.files.editing.read_state import ReadState
from goat_mcp.files.settings import EditOptions, FileOptions
from goat_mcp.files.workspace import Files, FileVersion, Workspace, WorkspacePath
from goat_mcp.state.sessions import ReadRecord, Sessions

_TIER_NOTICES: dict[Tier, str] = {
    2: "old_string matched only with blanks at line ends ignored",
    3: "old_string matched only with indentation, quotes and dashes ignored; new_string was re-indented to fit",
}


class EditItem(InputPart):
    old_string: str
    new_string: str
    replace_all: bool = Field(False, strict=False)

    @model_validator(mode="before")
    @classmethod
    def _camel_case(cls, item: Any) -> Any:
        if not isinstance(item, dict):
            return item
        names = {"oldString": "old_string", "newString": "new_string", "replaceAll": "replace_all"}
        given: dict[str, Any] = {str(key): value for key, value in item.items()}  # type: ignore[reportUnknownVariableType]  # JSON
        return {names.get(key, key) if names.get(key) not in given else key: value for key, value in given.items()}


class EditInput(ToolInput):
    aliases: ClassVar[Mapping[str, str]] = {"path": "file_path"}
    text_fields: ClassVar[frozenset[str]] = frozenset({"old_string", "new_string"})

    file_path: str = Field(description="Absolute path")
    old_string: str | None = None
    new_string: str | None = Field(None, description="Literal; may be empty")
    replace_all: bool = False
    edits: list[EditItem] | None = Field(None, description="Instead of the three above: applied in order, all or none")

    @classmethod
    def rewrite(cls, arguments: dict[str, Any]) -> Iterable[Problem]:
        """Models that fill in every field send empty ones for the form they do not mean."""
        if arguments.get("edits") in ([], "[]", ""):
            del arguments["edits"]
        elif arguments.get("edits") is not None and not arguments.get("old_string") and not arguments.get("new_string"):
            arguments.pop("old_string", None)
            arguments.pop("new_string", None)
        return ()

    @classmethod
    def problems_together(cls, given: Mapping[str, Any]) -> Iterable[Problem]:
        missing = [name for name in ("old_string", "new_string") if given.get(name) is None]
        if "edits" not in given:
            if missing:
                yield " and ".join(missing), "required, unless edits is sent"
        elif len(missing) < 2 or given.get("replace_all"):
            yield "edits", "send it instead of old_string, new_string and replace_all, not beside them"

    def in_order(self) -> list[TextEdit]:
        if self.edits is None:
            return [TextEdit(self.old_string or "", self.new_string or "", self.replace_all)]
        return [TextEdit(item.old_string, item.new_string, item.replace_all) for item in self.edits]


@dataclass(frozen=True)
class _EditCall:
    """One call, worked out."""

    files: Files
    path: WorkspacePath
    real_path: Path
    edits: Sequence[TextEdit]
    state: ReadState
    allow_fuzz: bool


@dataclass(frozen=True)
class _EditOutcome:
    result: ToolResult
    version: FileVersion
    is_known: bool
    """The session knows the file: it has read it before, or wrote all of it just now."""


@dataclass(frozen=True)
class Edit(
    BuiltinTool[EditInput],
    PreviewsChanges,
    side_effect=SideEffect.MUTATING,
    toolset="core",
    title="Edit file",
    always_load=True,
):
    """Replace text in a file you have read. Answers with a numbered diff.

    old_string must occur exactly once: copy it without Read's line numbers, with lines around it if need be, or set
    replace_all. An empty old_string creates a file.
    """

    examples = (
        ToolExample("One place", {"file_path": "@a.py", "old_string": "x = 1", "new_string": "x = 2"}),
        ToolExample(
            "Everywhere", {"file_path": "@a.py", "old_string": "foo", "new_string": "bar", "replace_all": True}
        ),
    )

    workspace: Workspace
    sessions: Sessions
    options: FileOptions = field(default_factory=FileOptions)
    edit_options: EditOptions = field(default_factory=EditOptions)
    changes: Changes = field(default_factory=DirectChanges)

    def access(self, input: EditInput) -> Access:
        path = self.workspace.resolve(input.file_path)
        return Access(asked=(path.plain,), writes=(str(self.workspace.real_path(path)),))

    async def execute(self, input: EditInput, ctx: ToolContext) -> ToolResult:
        path = self.workspace.resolve(input.file_path)
        real_path = self.workspace.real_path(path)
        files = self.changes.of(self.workspace, ctx, self.spec.name)
        reads = self.sessions.of(ctx.session_key).reads
        async with self.workspace.lock(real_path):
            target = self._target(input, ctx, files, path, real_path)
            seen = target.state.seen
            outcome = await anyio.to_thread.run_sync(partial(self._edit, target))
            if outcome.is_known:
                now = outcome.version
                whole = seen is None or seen.whole
                reads.record(str(real_path), ReadRecord(now.sha256, now.size, now.mtime_ns, whole))
        return await files.finish(outcome.result)

    async def preview(self, input: EditInput, ctx: ToolContext) -> str:
        def prepare(path: WorkspacePath, files: Files) -> Callable[[], object]:
            return partial(self._edit, self._target(input, ctx, files, path, self.workspace.real_path(path)))

        files = self.changes.of(self.workspace, ctx, self.spec.name)
        return await preview_of(input.file_path, self.workspace, files, prepare)

    def _target(
        self, input: EditInput, ctx: ToolContext, files: Files, path: WorkspacePath, real_path: Path
    ) -> _EditCall:
        seen = self.sessions.of(ctx.session_key).reads.get(str(real_path))
        state = ReadState(self.options.read_before_write, str(path), seen)
        allow_fuzz = ctx.setting("edit.allow_fuzz", self.edit_options.allow_fuzz)
        return _EditCall(files, path, real_path, input.in_order(), state, allow_fuzz)

    def _edit(self, target: _EditCall) -> _EditOutcome:
        if not target.edits[0].old and target.files.stat(target.path) is None:
            return self._create(target)
        with open_current(target.files, target.path, target.real_path) as current:
            if current.data:
                target.state.before_editing()
            stored = load_text(current.data, legacy_encoding=self.options.legacy_encoding, path=str(target.path))
            try:
                edited = self._applied(stored, target)
            except ToolError as refusal:
                if refusal.code in (ErrorCode.NO_MATCH, ErrorCode.AMBIGUOUS):
                    target.state.require_current(current.version)
                raise
            version = current.version
        target.state.before_applying(version, exact_and_unique=edited.every_match_exact_and_unique)
        notices = self._notices(stored, edited, target, version)
        shown = diff(stored.content, edited.content, edited.changes)
        written = target.files.write_file(target.path, stored.stored(edited.content), expect=version)
        is_known = target.state.seen is not None or not version.size
        return _EditOutcome(_edited_result(target, edited, shown, notices), written.version, is_known)

    def _create(self, target: _EditCall) -> _EditOutcome:
        stored = StoredText(b"", TextFormat())
        edited = self._applied(stored, target)
        notices = self._placeholder_notices(stored, target.edits)
        shown = diff(b"", edited.content, edited.changes)
        written = target.files.write_file(target.path, edited.content, expect=None)
        lines = count_lines(edited.content)
        text = f"Created {shown_path(target.path)} ({lines} line{'' if lines == 1 else 's'})."
        return _EditOutcome(text_result(text, facts=_facts(edited, shown), notices=notices), written.version, True)

    def _applied(self, stored: StoredText, target: _EditCall) -> Edited:
        for edit in target.edits:
            stored.check_insertion(edit.old, edit.new)
        return apply_edits(stored.content, target.edits, path=str(target.path), allow_fuzz=target.allow_fuzz)

    def _notices(self, stored: StoredText, edited: Edited, target: _EditCall, version: FileVersion) -> list[str]:
        notices = [notice for tier, notice in _TIER_NOTICES.items() if tier in edited.tiers]
        if target.state.is_changed(version):
            notices.append("the file had changed since you read it; the edit went into its present content")
        return notices + self._placeholder_notices(stored, target.edits)

    def _placeholder_notices(self, stored: StoredText, edits: Sequence[TextEdit]) -> list[str]:
        if self.options.placeholder_check == "off":
            return []
        added = [line for edit in edits for line in added_placeholders(edit.new, stored.content)]
        if added and self.options.placeholder_check == "refuse":
            raise refuse_placeholders(added)
        return [placeholder_notice(added)] if added else []


def _edited_result(target: _EditCall, edited: Edited, shown: NumberedDiff, notices: Sequence[str]) -> ToolResult:
    total = sum(edited.counts)
    replacements = f"{total} replacement{'' if total == 1 else 's'}"
    if len(target.edits) > 1:
        replacements += f" by {len(target.edits)} edits"
    tiers = sorted({*edited.tiers})
    tier = f"tier{'' if len(tiers) == 1 else 's'} {', '.join(map(str, tiers))}"
    text = f"Edited {shown_path(target.path)}: {replacements} ({tier}).\n{shown.text()}"
    return text_result(text, facts=_facts(edited, shown), notices=notices)


def _facts(edited: Edited, shown: NumberedDiff) -> dict[str, Any]:
    return {
        "replacements": sum(edited.counts),
        "tier": max(edited.tiers),
        "additions": shown.additions,
        "deletions": shown.deletions,
        "start_lines": list(shown.start_lines),
        "patch": shown.patch(),
    }
