"""Read: text by line, images, PDF pages, notebooks. How each kind is shown lives in `goat_mcp.files.documents`."""

from __future__ import annotations

import difflib
import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, TypeVar

import anyio
from pydantic import Field, field_validator
from pydantic.json_schema import SkipJsonSchema

from goat_mcp.core.arguments import ABSENT_TEXTS, ToolInput
from goat_mcp.core.coercion import Problem, coerced, shown_value
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.heartbeat import with_heartbeat
from goat_mcp.core.result import ToolResult, text_block, with_notices
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import Access, BuiltinTool
from goat_mcp.files.changes.call_files import CallFiles, Changes, DirectChanges
from goat_mcp.files.documents.excerpt import excerpt_of_text
from goat_mcp.files.documents.file_type import HEAD_BYTES, binary_type, image_type, is_pdf, size_text
from goat_mcp.files.documents.image import fit_image
from goat_mcp.files.documents.notebook import MAX_FILE_BYTES as MAX_NOTEBOOK_BYTES
from goat_mcp.files.documents.notebook import NotANotebook, show_notebook
from goat_mcp.files.documents.pdf import Deadline, parse_pages, read_pdf
from goat_mcp.files.documents.rendering import (
    Rendering,
    Selection,
    render_image,
    render_notebook,
    render_pdf,
    render_text,
)
from goat_mcp.files.documents.streamed_text import (
    MAX_HASHED_BYTES,
    IndexKey,
    LineIndexes,
    LinesNotReached,
    ReadLimits,
    excerpt_of_stream,
    read_block,
)
from goat_mcp.files.documents.text_encoding import SAMPLE_BYTES, decode_for_reading, looks_binary, require_codec
from goat_mcp.files.settings import FileOptions
from goat_mcp.files.workspace import Files, OpenedFile, Workspace, WorkspacePath
from goat_mcp.files.workspace.opened_file import hash_of
from goat_mcp.state.sessions import ReadRecord, Sessions

DEFAULT_LIMIT = 2_000
MAX_CHARS = 48_000
"""A widely used host diverts results above 50,000 characters into a file."""
MAX_CHARS_LARGE = 200_000
NOTICE_CHARS = 1_000
"""Kept free below the cap for the notices that follow a page."""
WHOLE_FILE_BYTES = 512 * 1024
"""Text up to this size is read and split at once, without a thread: that takes about 2 ms."""
ANSWER_S = 3.0
"""Left at the end of a call's time to put an answer together."""
NEAR_ENOUGH = 0.8

T = TypeVar("T")


class ReadInput(ToolInput):
    aliases: ClassVar[Mapping[str, str]] = {
        "path": "file_path",
        "start_line": "offset",
        "startLine": "offset",
        "max_lines": "limit",
        "maxLines": "limit",
        "end_line": "end_line",
        "endLine": "end_line",
    }

    file_path: str = Field(description="Absolute path")
    offset: int | None = Field(None, description="First line, from 1; negative: the last N lines")
    limit: int | None = Field(None, gt=0, description="Lines, default 2000")
    pages: str | None = Field(None, description='PDF pages, "3" or "1-5", at most 20')
    allow_large: bool = Field(False, description="Up to 200,000 characters instead of 48,000")
    # What goa's read also has; no other model needs to know it.
    max_bytes: SkipJsonSchema[int | None] = Field(None, gt=0)
    default_limit: SkipJsonSchema[int] = Field(DEFAULT_LIMIT, gt=0)

    @classmethod
    def rewrite(cls, arguments: dict[str, Any]) -> Iterable[Problem]:
        pages = arguments.get("pages")
        if isinstance(pages, int) and not isinstance(pages, bool):
            arguments["pages"] = str(pages)
        elif isinstance(pages, str) and pages.strip() in ("", "null", "undefined"):
            del arguments["pages"]
        given = arguments.pop("end_line", None)
        if given is None or (isinstance(given, str) and given in ABSENT_TEXTS):
            return ()
        # What is wrong with the other two is noted where they are validated.
        end_line, start_line, limit = (
            number if type(number := coerced("integer", value)) is int else None
            for value in (given, arguments.get("offset"), arguments.get("limit"))
        )
        if end_line is None:
            return (("end_line", f"wants a line number; got {shown_value(given)}"),)
        if end_line < (start_line := max(1, start_line or 1)):
            return (("end_line", f"{end_line} comes before the first line asked for, {start_line}"),)
        lines = end_line - start_line + 1
        arguments["limit"] = lines if limit is None else min(lines, limit)
        return ()

    @field_validator("pages")
    @classmethod
    def _readable_pages(cls, pages: str | None) -> str | None:
        if pages is not None:
            parse_pages(pages)
        return pages


@dataclass(frozen=True)
class _Request:
    """One call's input, worked out."""

    files: CallFiles
    path: WorkspacePath
    asked: Selection
    default_limit: int
    deadline_s: float
    notices: tuple[str, ...] = ()
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def limit(self) -> int:
        return self.asked.limit or self.default_limit


@dataclass(frozen=True)
class _ReadAnswer:
    """What the client gets, and what its session has seen by that."""

    shown: Rendering
    real_path: str
    seen: ReadRecord


@dataclass(frozen=True)
class Read(
    BuiltinTool[ReadInput],
    side_effect=SideEffect.NONE,
    toolset="core",
    title="Read file",
    always_load=True,
    max_result_chars=MAX_CHARS_LARGE,
):
    """Read a file before you change it: text, image, PDF or Jupyter notebook.

    Text comes as `N<TAB>line`; number and tab are not in the file. A `[PARTIAL: ...]` notice gives the offset to
    continue with. In notebooks offset and limit count cells.
    """

    examples = (
        ToolExample("A whole file", {"file_path": "/home/me/project/main.py"}),
        ToolExample("Ten lines from line 200", {"file_path": "@src/main.py", "offset": 200, "limit": 10}),
    )

    workspace: Workspace
    sessions: Sessions
    options: FileOptions = field(default_factory=FileOptions)
    indexes: LineIndexes = field(default_factory=LineIndexes)
    changes: Changes = field(default_factory=DirectChanges)

    def access(self, input: ReadInput) -> Access:
        path, _ = self._existing(self.workspace, input.file_path)
        return Access(asked=(path.plain,), reads=(str(self.workspace.real_path(path)),))

    async def execute(self, input: ReadInput, ctx: ToolContext) -> ToolResult:
        request = self._request(input, ctx)
        answer = self._small_text(request)
        if answer is None:
            answer = await _in_thread(partial(self._any_file, request), request, ctx)
        self.sessions.of(ctx.session_key).reads.record(answer.real_path, answer.seen)
        shown = answer.shown
        text = text_block(with_notices(shown.text, (*request.notices, *shown.notices)))
        return ToolResult(content=(text, *shown.images), facts=shown.facts)

    def _request(self, input: ReadInput, ctx: ToolContext) -> _Request:
        pages = None if input.pages is None else parse_pages(input.pages)
        files = self.changes.of(self.workspace, ctx, self.spec.name)
        path, near = self._existing(files, input.file_path)
        max_chars = (MAX_CHARS_LARGE if input.allow_large else MAX_CHARS) - NOTICE_CHARS
        return _Request(
            files,
            path,
            Selection(input.offset, input.limit, pages, max_chars, input.max_bytes),
            input.default_limit,
            deadline_s=time.monotonic() + max(ctx.wait_left_s() - ANSWER_S, 0.0),
            notices=(*((near,) if near else ()), *files.notices(path)),
        )

    def _existing(self, files: Files, asked: str) -> tuple[WorkspacePath, str]:
        """The path asked for; with `files.fuzzy_match` the one file nearly called that, and a notice that says so."""
        path = self.workspace.resolve(asked)
        if not self.options.fuzzy_match or files.stat(path) is not None:
            return path, ""
        try:
            self.workspace.open_file(path).__exit__(None, None, None)
        except ToolError as missing:
            near = [name for name in (missing.facts or {}).get("did_you_mean", ()) if _is_near(str(path), name)]
            if missing.code is ErrorCode.NOT_FOUND and len(near) == 1:
                return self.workspace.resolve(near[0]), f"{path} does not exist; this is the near match {near[0]}"
        return path, ""

    def _small_text(self, request: _Request) -> _ReadAnswer | None:
        """The answer for plain text that is quickly read; None for everything else."""
        with request.files.open_file(request.path) as file:
            if file.stat.st_size > WHOLE_FILE_BYTES or _is_notebook(file):
                return None
            data = file.read()
            if image_type(data) or is_pdf(data):
                return None
            return self._text_in_memory(request, file, data)

    def _any_file(self, request: _Request) -> _ReadAnswer:
        # The thread opens its own descriptor: a cancelled call does not wait for it, and must not close it either.
        with request.files.open_file(request.path) as file:
            head = read_block(file.fd, 0, SAMPLE_BYTES)
            if image_type(head):
                return self._image(request, file)
            if is_pdf(head):
                return self._pdf(request, file)
            if _is_notebook(file):
                return self._notebook(request, file)
            return self._streamed_text(request, file, head)

    def _text_in_memory(self, request: _Request, file: OpenedFile, data: bytes) -> _ReadAnswer:
        _refuse_binary(request.path, data, len(data))
        decoded = decode_for_reading(data, legacy_encoding=self.options.legacy_encoding)
        asked = request.asked
        shown = render_text(excerpt_of_text(decoded, asked.offset, request.limit, asked.max_chars), asked)
        return _answer(file, shown, hashlib.sha256(data).hexdigest())

    def _streamed_text(self, request: _Request, file: OpenedFile, head: bytes) -> _ReadAnswer:
        _refuse_binary(request.path, head, file.stat.st_size)
        if self.options.legacy_encoding is not None:
            require_codec(self.options.legacy_encoding)
        found = file.stat
        key = IndexKey(
            str(file.real_path), found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
        )
        index = self.indexes.of(key, head)
        asked = request.asked
        limits = ReadLimits(asked.offset, request.limit, asked.max_chars, request.deadline_s, request.stop)
        try:
            excerpt = excerpt_of_stream(file.fd, index, limits, self.options.legacy_encoding)
        except LinesNotReached:
            raise ToolError(
                ErrorCode.TIMEOUT,
                f"line {asked.offset} of {request.path} was not reached in time: {index.total_lines:,} lines "
                f"counted in {size_text(index.scanned_bytes)} of {size_text(found.st_size)}",
                "Call again: counting goes on from there. Grep finds text in large files faster.",
            ) from None
        return _answer(file, render_text(excerpt, asked), index.sha256)

    def _image(self, request: _Request, file: OpenedFile) -> _ReadAnswer:
        with open(file.fd, "rb", closefd=False) as stream:
            stream.seek(0)
            image = _about(request.path, lambda: fit_image(stream, file.stat.st_size))
        return _answer(file, render_image(image, str(request.path), file.stat.st_size), _hash(file))

    def _pdf(self, request: _Request, file: OpenedFile) -> _ReadAnswer:
        asked = request.asked
        with open(file.fd, "rb", closefd=False) as stream:
            stream.seek(0)
            patience = Deadline(request.deadline_s, request.stop)
            pdf = _about(request.path, lambda: read_pdf(stream, asked.pages, asked.max_chars, patience))
        return _answer(file, render_pdf(pdf, asked), _hash(file))

    def _notebook(self, request: _Request, file: OpenedFile) -> _ReadAnswer:
        if file.stat.st_size > MAX_NOTEBOOK_BYTES:
            raise ToolError(
                ErrorCode.TOO_LARGE,
                f"the notebook {request.path} has {size_text(file.stat.st_size)}; at most 100 MB are read",
                "Clear its outputs (jupyter nbconvert --clear-output --inplace), or search it with Grep.",
            )
        data = file.read()
        asked = request.asked
        try:
            notebook = show_notebook(
                data,
                first_cell=asked.offset or 1,
                limit=request.limit,
                max_chars=asked.max_chars,
                legacy_encoding=self.options.legacy_encoding,
            )
        except NotANotebook as problem:
            answer = self._text_in_memory(request, file, data)
            notice = f"not a readable notebook, so shown as text: {problem}"
            return replace(answer, shown=replace(answer.shown, notices=(notice, *answer.shown.notices)))
        return _answer(file, render_notebook(notebook, asked), hashlib.sha256(data).hexdigest())


def _answer(file: OpenedFile, shown: Rendering, sha256: str) -> _ReadAnswer:
    # The mtime from before reading: a change since then has another one.
    seen = ReadRecord(sha256, file.stat.st_size, file.stat.st_mtime_ns, whole=shown.is_whole)
    return _ReadAnswer(shown, str(file.real_path), seen)


def _hash(file: OpenedFile) -> str:
    return hash_of(file.fd) if file.stat.st_size <= MAX_HASHED_BYTES else ""


async def _in_thread(work: Callable[[], T], request: _Request, ctx: ToolContext) -> T:
    """Run `work` off the event loop; the client gets progress, and a cancelled call ends at once."""
    try:
        with anyio.fail_after(ctx.wait_left_s()):
            in_thread = partial(anyio.to_thread.run_sync, work, abandon_on_cancel=True)
            return await with_heartbeat(in_thread, ctx, f"reading {request.path}")
    except TimeoutError:
        raise ToolError(
            ErrorCode.TIMEOUT, f"reading {request.path} took too long", "Ask for fewer lines or pages at a time."
        ) from None
    finally:
        request.stop.set()


def _about(path: WorkspacePath, work: Callable[[], T]) -> T:
    """Name the file in errors of code that knows none."""
    try:
        return work()
    except ToolError as error:
        raise ToolError(error.code, f"{path}: {error.message}", error.suggestion, facts=error.facts) from None


def _refuse_binary(path: WorkspacePath, head: bytes, size: int) -> None:
    if looks_binary(head):
        raise ToolError(
            ErrorCode.BINARY,
            f"{path} is a binary file {binary_type(head[:HEAD_BYTES])}, {size_text(size)}",
            "Look into it by Bash with a program that knows its format, such as file, xxd or unzip -l.",
            facts={"size": size},
        )


def _is_notebook(file: OpenedFile) -> bool:
    return file.real_path.suffix.lower() == ".ipynb" and file.stat.st_size > 0


def _is_near(asked: str, candidate: str) -> bool:
    return difflib.SequenceMatcher(None, asked.casefold(), candidate.casefold()).ratio() >= NEAR_ENOUGH
