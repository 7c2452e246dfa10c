"""Read: text by line, images, PDF pages, notebooks. How each kind is shown lives in `goat_mcp.documents`."""

from __future__ import annotations

import difflib
import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, TypeVar

import anyio
from pydantic import ConfigDict, Field

from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult, image_block, text_block, text_result, with_notices
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.tool import Access, BuiltinTool
from goat_mcp.documents.excerpt import Excerpt, excerpt_of_text, number_lines
from goat_mcp.documents.file_type import HEAD_BYTES, binary_type, image_type, in_words, is_pdf
from goat_mcp.documents.image import fit_image
from goat_mcp.documents.line_index import MAX_HASHED_BYTES, IndexKey, LineIndexes, read_block
from goat_mcp.documents.notebook import MAX_FILE_BYTES as MAX_NOTEBOOK_BYTES
from goat_mcp.documents.notebook import NotANotebook, show_notebook
from goat_mcp.documents.pdf import PageRange, parse_pages, read_pdf
from goat_mcp.documents.streamed_text import Bounds, LinesNotReached, excerpt_of_stream
from goat_mcp.documents.text_encoding import SAMPLE_BYTES, decode_for_reading, looks_binary, require_codec
from goat_mcp.editing.options import FileOptions
from goat_mcp.state.sessions import FileSeen, Sessions
from goat_mcp.workspace import OpenedFile, Workspace, WorkspacePath
from goat_mcp.workspace.opened import hash_of

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
HEARTBEAT_S = 4.0
NEAR_ENOUGH = 0.8

T = TypeVar("T")


def _hide_max_bytes(schema: dict[str, Any]) -> None:
    schema["properties"].pop("max_bytes", None)


class ReadInput(ToolInput):
    # goa's max_bytes has no field it could turn into; it works, but no model needs to be told of it.
    model_config = ConfigDict(json_schema_extra=_hide_max_bytes)

    aliases: ClassVar[Mapping[str, str]] = {
        "path": "file_path",
        "start_line": "offset",
        "max_lines": "limit",
        "end_line": "end_line",
    }

    file_path: str = Field(description="Absolute path")
    offset: int | None = Field(None, description="First line, from 1; negative: the last N lines")
    limit: int | None = Field(None, gt=0, description="Lines, default 2000")
    pages: str | None = Field(None, description='PDF pages, "3" or "1-5", at most 20')
    allow_large: bool = Field(False, description="Up to 200,000 characters instead of 48,000")
    max_bytes: int | None = Field(None, gt=0)

    @classmethod
    def rewrite(cls, arguments: dict[str, Any]) -> None:
        pages = arguments.get("pages")
        if isinstance(pages, int) and not isinstance(pages, bool):
            arguments["pages"] = str(pages)
        elif isinstance(pages, str) and pages.strip() in ("", "null", "undefined"):
            del arguments["pages"]
        end_line = _line_number(arguments.pop("end_line", None), "end_line")
        if end_line is None:
            return
        start_line = max(1, _line_number(arguments.get("offset"), "start_line") or 1)
        if end_line < start_line:
            raise ValueError(f"end_line: {end_line} comes before the first line asked for, {start_line}")
        limit = _line_number(arguments.get("limit"), "limit")
        lines = end_line - start_line + 1
        arguments["limit"] = lines if limit is None else min(lines, limit)


@dataclass(frozen=True)
class _Request:
    """One call's input, worked out."""

    input: ReadInput
    path: WorkspacePath
    pages: PageRange | None
    max_chars: int
    deadline_s: float
    stop: threading.Event = field(default_factory=threading.Event)
    notices: tuple[str, ...] = ()

    @property
    def limit(self) -> int:
        return self.input.limit or DEFAULT_LIMIT


@dataclass(frozen=True)
class _Answer:
    """What the client gets, and what its session has seen by that."""

    result: ToolResult
    real_path: str
    seen: FileSeen


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

    workspace: Workspace
    sessions: Sessions
    options: FileOptions = field(default_factory=FileOptions)
    indexes: LineIndexes = field(default_factory=LineIndexes)

    def access(self, input: ReadInput) -> Access:
        path, _ = self._existing(input.file_path)
        return Access(reads=(str(self.workspace.real_path(path)),))

    async def execute(self, input: ReadInput, ctx: ToolContext) -> ToolResult:
        request = self._request(input, ctx)
        answer = self._small_text(request)
        if answer is None:
            answer = await _in_thread(partial(self._any_file, request), request, ctx)
        self.sessions.of(ctx.session_key).reads.record(answer.real_path, answer.seen)
        return answer.result

    def _request(self, input: ReadInput, ctx: ToolContext) -> _Request:
        pages: PageRange | None = None
        if input.pages is not None:
            try:
                pages = parse_pages(input.pages)
            except ValueError as problem:
                raise ToolError(
                    ErrorCode.INPUT, f"pages: {problem}", "Correct this field and call the tool again."
                ) from None
        path, near = self._existing(input.file_path)
        return _Request(
            input,
            path,
            pages,
            max_chars=(MAX_CHARS_LARGE if input.allow_large else MAX_CHARS) - NOTICE_CHARS,
            deadline_s=time.monotonic() + max(ctx.wait_left_s() - ANSWER_S, 0.0),
            notices=(near,) if near else (),
        )

    def _existing(self, asked: str) -> tuple[WorkspacePath, str]:
        """The path asked for; with `files.fuzzy_match` the one file nearly called that, and a notice that says so."""
        path = self.workspace.resolve(asked)
        if not self.options.fuzzy_match or self.workspace.stat(path) is not None:
            return path, ""
        try:
            self.workspace.open_file(path).__exit__(None, None, None)
        except ToolError as missing:
            near = [name for name in (missing.facts or {}).get("did_you_mean", ()) if _is_near(str(path), name)]
            if missing.code is ErrorCode.NOT_FOUND and len(near) == 1:
                return self.workspace.resolve(near[0]), f"{path} does not exist; this is the near match {near[0]}"
        return path, ""

    def _small_text(self, request: _Request) -> _Answer | None:
        """The answer for plain text that is quickly read; None for everything else."""
        with self.workspace.open_file(request.path) as file:
            if file.stat.st_size > WHOLE_FILE_BYTES or _is_notebook(file):
                return None
            data = file.read()
            if image_type(data) or is_pdf(data):
                return None
            return self._text_in_memory(request, file, data)

    def _any_file(self, request: _Request) -> _Answer:
        # The thread opens its own descriptor: a cancelled call does not wait for it, and must not close it either.
        with self.workspace.open_file(request.path) as file:
            head = read_block(file.fd, 0, SAMPLE_BYTES)
            if image_type(head):
                return self._image(request, file)
            if is_pdf(head):
                return self._pdf(request, file)
            if _is_notebook(file):
                return self._notebook(request, file)
            return self._streamed_text(request, file, head)

    def _text_in_memory(self, request: _Request, file: OpenedFile, data: bytes) -> _Answer:
        _refuse_binary(request.path, data, len(data))
        decoded = decode_for_reading(data, legacy_encoding=self.options.legacy_encoding)
        excerpt = excerpt_of_text(decoded, request.input.offset, request.limit)
        return _text_answer(request, file, excerpt, hashlib.sha256(data).hexdigest(), len(data))

    def _streamed_text(self, request: _Request, file: OpenedFile, head: bytes) -> _Answer:
        _refuse_binary(request.path, head, file.stat.st_size)
        if self.options.legacy_encoding is not None:
            require_codec(self.options.legacy_encoding)
        found = file.stat
        key = IndexKey(
            str(file.real_path), found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
        )
        index = self.indexes.of(key, head)
        bounds = Bounds(request.input.offset, request.limit, request.max_chars, request.deadline_s, request.stop)
        try:
            excerpt = excerpt_of_stream(file.fd, index, bounds, self.options.legacy_encoding)
        except LinesNotReached:
            raise ToolError(
                ErrorCode.TIMEOUT,
                f"line {request.input.offset} of {request.path} was not reached in time: {index.total_lines:,} lines "
                f"counted in {in_words(index.scanned_bytes)} of {in_words(found.st_size)}",
                "Call again: counting goes on from there. Grep finds text in large files faster.",
            ) from None
        return _text_answer(request, file, excerpt, index.sha256, found.st_size)

    def _image(self, request: _Request, file: OpenedFile) -> _Answer:
        with open(file.fd, "rb", closefd=False) as stream:
            stream.seek(0)
            image = _about(request.path, lambda: fit_image(stream, file.stat.st_size))
        size = f"{image.original_width} x {image.original_height}"
        text = f"{request.path}: {image.original_type}, {size}, {in_words(file.stat.st_size)}"
        notices = list(request.notices)
        if image.is_changed:
            shown = f"{image.mime_type}, {image.width} x {image.height}, {in_words(len(image.data))}"
            notices.append(f"shown smaller, as {shown}")
        result = ToolResult(
            content=(text_block(with_notices(text, notices)), image_block(image.data, image.mime_type)),
            facts={
                "type": "image",
                "mime_type": image.mime_type,
                "width": image.original_width,
                "height": image.original_height,
                "truncated": False,
            },
        )
        return _answer(file, result, whole=True)

    def _pdf(self, request: _Request, file: OpenedFile) -> _Answer:
        with open(file.fd, "rb", closefd=False) as stream:
            stream.seek(0)
            pdf = _about(request.path, lambda: read_pdf(stream, request.pages, request.max_chars))
        notices = list(request.notices)
        if request.input.offset is not None or request.input.limit is not None:
            notices.append("offset and limit do not apply to PDF; use pages")
        if request.pages is not None and request.pages.last > pdf.total_pages:
            notices.append(f"the PDF has {pdf.total_pages} pages")
        is_partial = pdf.last_shown < pdf.asked.last
        if is_partial:
            rest = PageRange(pdf.last_shown + 1, pdf.asked.last)
            shown = PageRange(pdf.asked.first, pdf.last_shown)
            notices.append(f'PARTIAL: pages {shown} of {pdf.total_pages}; continue with pages="{rest}"')
        facts = {
            "type": "pdf",
            "first_page": pdf.asked.first,
            "last_page": pdf.last_shown,
            "total_pages": pdf.total_pages,
            "truncated": is_partial or pdf.parts.is_cut,
        }
        is_whole = pdf.asked == PageRange(1, pdf.total_pages) and not facts["truncated"]
        return _answer(file, text_result(pdf.parts.text, facts=facts, notices=notices), whole=is_whole)

    def _notebook(self, request: _Request, file: OpenedFile) -> _Answer:
        size = file.stat.st_size
        if size > MAX_NOTEBOOK_BYTES:
            raise ToolError(
                ErrorCode.TOO_LARGE,
                f"the notebook {request.path} has {in_words(size)}; at most 100 MB are read",
                "Clear its outputs (jupyter nbconvert --clear-output --inplace), or search it with Grep.",
            )
        data = file.read()
        try:
            shown = show_notebook(
                data, first_cell=request.input.offset or 1, limit=request.limit, max_chars=request.max_chars
            )
        except NotANotebook as problem:
            notice = f"not a readable notebook, so shown as text: {problem}"
            as_text = replace(request, notices=(*request.notices, notice))
            return self._text_in_memory(as_text, file, data)
        notices = [*request.notices, *_pages_notice(request)]
        is_partial = shown.last_shown < shown.total_cells and len(shown.parts.texts) != request.input.limit
        if not shown.parts.texts:
            past_end = f"offset {request.input.offset} is past the end: the notebook has {shown.total_cells} cells"
            notices.append(past_end if shown.total_cells else "The notebook has no cells")
        elif is_partial:
            cells = f"{shown.first_cell}-{shown.last_shown} of {shown.total_cells}"
            notices.append(f"PARTIAL: cells {cells}; continue with offset={shown.last_shown + 1}")
        facts = {
            "type": "notebook",
            "first_cell": shown.first_cell,
            "last_cell": shown.last_shown,
            "total_cells": shown.total_cells,
            "language": shown.language,
            "truncated": is_partial or shown.parts.is_cut,
        }
        text = text_block(with_notices(shown.parts.text, notices))
        is_whole = len(shown.parts.texts) == shown.total_cells and not shown.parts.is_cut
        return _answer(file, ToolResult(content=(text, *shown.images), facts=facts), whole=is_whole)


def _text_answer(request: _Request, file: OpenedFile, excerpt: Excerpt, sha256: str, size: int) -> _Answer:
    page = number_lines(excerpt, request.max_chars, request.input.max_bytes)
    end_line = excerpt.start_line + page.lines_shown - 1
    total = excerpt.total_lines
    is_partial = page.lines_shown > 0 and end_line < total and page.lines_shown != request.input.limit
    counted = str(total) if excerpt.is_counted else f"at least {total}"
    notices = [*request.notices, *_pages_notice(request)]
    if page.has_escapes:
        notices.append("control and invisible characters are shown escaped, as in \\x1b or \\u202e")
    if excerpt.format.is_guess:
        notices.append(
            "not UTF-8, encoding unknown: shown as latin-1; only ASCII can be added unless files.legacy_encoding is set"
        )
    if size == 0 or not total:
        notices.append("The file exists but is empty")
    elif not excerpt.lines:
        notices.append(f"offset {request.input.offset} is past the end: the file has {total} lines")
    elif is_partial:
        lines = f"lines {excerpt.start_line}-{end_line} of {counted}"
        notices.append(f"PARTIAL: {lines}; continue with offset={end_line + 1}")
    facts = {
        "start_line": excerpt.start_line,
        "end_line": end_line,
        "total_lines": total if excerpt.is_counted else None,
        "truncated": is_partial or bool(excerpt.cut_lengths),
        "encoding": excerpt.format.encoding,
        "eol": excerpt.eol,
    }
    is_whole = excerpt.is_whole and page.lines_shown == len(excerpt.lines)
    seen = FileSeen(sha256, size, file.stat.st_mtime_ns, whole=is_whole)
    return _Answer(text_result(page.text, facts=facts, notices=notices), str(file.real_path), seen)


def _answer(file: OpenedFile, result: ToolResult, *, whole: bool) -> _Answer:
    size = file.stat.st_size
    sha256 = hash_of(file.fd) if size <= MAX_HASHED_BYTES else ""
    return _Answer(result, str(file.real_path), FileSeen(sha256, size, file.stat.st_mtime_ns, whole=whole))


async def _in_thread(work: Callable[[], T], request: _Request, ctx: ToolContext) -> T:
    """Run `work` where it holds up nobody; the client hears from it, and a cancelled call ends at once."""
    failed: ToolError | None = None
    done: list[T] = []
    async with anyio.create_task_group() as group:
        if ctx.wants_progress:
            group.start_soon(_heartbeat, request.path, ctx)
        try:
            with anyio.fail_after(ctx.wait_left_s()):
                done.append(await anyio.to_thread.run_sync(work, abandon_on_cancel=True))
        except ToolError as error:
            # Leaving the group with it would wrap it into an exception group.
            failed = error
        except TimeoutError:
            failed = ToolError(
                ErrorCode.TIMEOUT, f"reading {request.path} took too long", "Ask for fewer lines or pages at a time."
            )
        finally:
            request.stop.set()
        group.cancel_scope.cancel()
    if failed is not None:
        raise failed
    return done[0]


async def _heartbeat(path: WorkspacePath, ctx: ToolContext) -> None:
    started_s = time.monotonic()
    while True:
        await anyio.sleep(HEARTBEAT_S)
        await ctx.progress(time.monotonic() - started_s, None, f"reading {path}")


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
            f"{path} is a binary file {binary_type(head[:HEAD_BYTES])}, {in_words(size)}",
            "Look into it by Bash with a program that knows its format, such as file, xxd or unzip -l.",
            facts={"size": size},
        )


def _pages_notice(request: _Request) -> list[str]:
    return [] if request.pages is None else ["pages applies to PDF only"]


def _is_notebook(file: OpenedFile) -> bool:
    return file.real_path.suffix.lower() == ".ipynb" and file.stat.st_size > 0


def _is_near(asked: str, candidate: str) -> bool:
    return difflib.SequenceMatcher(None, asked.casefold(), candidate.casefold()).ratio() >= NEAR_ENOUGH


def _line_number(value: Any, name: str) -> int | None:
    """A line number that may come as text, as rewriting runs before arguments are converted."""
    if value is None or value in ("null", "undefined"):
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: wants a line number; got {value!r:.60}") from None
