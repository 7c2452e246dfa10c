"""Grep: search file contents."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, cast

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.coercion import Problem, coerced, shown_value
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import BuiltinTool
from goat_mcp.files.documents.visible_text import visible_line
from goat_mcp.files.search.content import ContentMatches, Page, count_ignored, find
from goat_mcp.files.search.deadline import SearchDeadline, in_thread
from goat_mcp.files.search.engine import Search, SearchEngine
from goat_mcp.files.search.glob_pattern import BadGlob, slashed
from goat_mcp.files.search.path_rules import rules_of_globs
from goat_mcp.files.search.priority import SearchPriority
from goat_mcp.files.search.query import Query, ResultLine, Target
from goat_mcp.files.settings import SearchLimits
from goat_mcp.files.workspace import OpenedDirectory, OpenedFile, Workspace, WorkspacePath

_MAX_PATTERN_CHARS = 32_768
_NOTHING = "No matches found"
_NO_MORE = "No more results"


class GrepInput(ToolInput):
    pattern: str = Field(description="regular expression (ripgrep)")
    path: str | None = Field(None, description="file or directory, default workspace root")
    glob: str | None = Field(None, description='files to search, e.g. "*.{ts,tsx}, !*.test.ts"')
    output_mode: Literal["files_with_matches", "content", "count"] = "files_with_matches"
    after: int | None = Field(None, ge=0, alias="-A")
    before: int | None = Field(None, ge=0, alias="-B")
    around: int | None = Field(None, ge=0, alias="-C")
    context: int | None = Field(None, ge=0)
    line_numbers: bool = Field(True, alias="-n")
    ignore_case: bool = Field(False, alias="-i")
    only_matching: bool = Field(False, alias="-o")
    type: str | None = Field(None, description="e.g. py, js, rust")
    head_limit: int = Field(250, ge=0, description="lines or files shown, 0 = all")
    offset: int = Field(0, ge=0)
    multiline: bool = Field(False, description="let matches span lines")
    include_ignored: bool = False
    rank: Literal["mtime", "priority"] = Field("mtime", description="priority: source code first, then most matches")
    # goa's search counts matches and not the lines around them, and has no offset.
    is_goas: SkipJsonSchema[bool] = False

    aliases: ClassVar[Mapping[str, str]] = {
        "after_context": "-A",
        "before_context": "-B",
        "context_lines": "context",
        "case_insensitive": "-i",
        "case_sensitive": "case_sensitive",
        "max_results": "head_limit",
        "recursive": "recursive",
        "exclude": "exclude",
        "no_ignore": "include_ignored",
    }

    @classmethod
    def rewrite(cls, arguments: dict[str, Any]) -> Iterable[Problem]:
        """goa's `case_sensitive`, `recursive` and `exclude`, in terms of `-i` and `glob`."""
        case_sensitive = coerced("boolean", arguments.pop("case_sensitive", None))
        if isinstance(case_sensitive, bool):
            if coerced("boolean", arguments.get("-i")) is case_sensitive:
                yield "", "case_sensitive and -i contradict each other; send one"
            arguments["-i"] = not case_sensitive
        elif case_sensitive is not None:
            yield "case_sensitive", f"wants true or false; got {shown_value(case_sensitive)}"
        globs = [arguments["glob"]] if isinstance(arguments.get("glob"), str) else []
        for excluded in cast("list[Any]", coerced("list", arguments.pop("exclude", None) or [])):
            if isinstance(excluded, str):
                globs.append("!{" + excluded + "}" if " " in excluded or "," in excluded else "!" + excluded)
            else:
                yield "exclude", f"wants a list of globs; got {shown_value(excluded)} in it"
        recursive = coerced("boolean", arguments.pop("recursive", None))
        if recursive is False:
            globs.append("!/*/")
        elif recursive not in (None, True):
            yield "recursive", f"wants true or false; got {shown_value(recursive)}"
        if globs:
            arguments["glob"] = " ".join(globs)


@dataclass(frozen=True)
class Grep(
    BuiltinTool[GrepInput], side_effect=SideEffect.NONE, toolset="core", title="Search file contents", always_load=True
):
    """Search file contents with a regular expression. Newest files come first, paths are absolute.

    output_mode: paths only, content (path:line:text; context lines path-line-text) or count. Ignored files
    (.gitignore) are searched only with include_ignored or when path names one.
    """

    workspace: Workspace
    engine: SearchEngine
    limits: SearchLimits = field(default_factory=SearchLimits)
    priority: SearchPriority = field(default_factory=SearchPriority)

    examples = (
        ToolExample(
            "Where a function is defined", {"pattern": r"def main\b", "glob": "*.py", "output_mode": "content"}
        ),
        ToolExample("Which files speak of it, in any case", {"pattern": "deprecated", "path": "@src", "-i": True}),
        ToolExample(
            "With two lines around each match", {"pattern": "TODO", "output_mode": "content", "-C": 2, "head_limit": 50}
        ),
    )

    async def execute(self, input: GrepInput, ctx: ToolContext) -> ToolResult:
        if "head_limit" not in input.model_fields_set:
            limit = ctx.setting("search.grep_head_limit", self.limits.grep_head_limit)
            input = input.model_copy(update={"head_limit": limit})
        root = self.workspace.resolve(input.path or str(self.workspace.primary))
        query = _query(input, str(root))
        return await in_thread(lambda deadline: self._search(root, query, input, deadline))

    def _search(self, root: WorkspacePath, query: Query, input: GrepInput, deadline: SearchDeadline) -> ToolResult:
        with self._open(root) as opened:
            place = opened.directory if isinstance(opened, OpenedDirectory) else opened.fd
            target = Target(place, str(root), str(opened.real_path))
            search = self.engine.search(target, deadline)
            order = self.priority.order() if input.rank == "priority" else None
            page = Page(input.offset, input.head_limit, counts_matches=input.is_goas)
            found = find(search, query, input.output_mode, order, page)
            ignored: tuple[int, bool] = (0, True)
            if not found.num_files and target.is_directory and not input.include_ignored and not deadline.is_over:
                ignored = count_ignored(search, query)
            return _GrepAnswer(search, input, found, ignored, order.problem if order else "").result()

    def _open(self, root: WorkspacePath) -> AbstractContextManager[OpenedDirectory | OpenedFile]:
        found = self.workspace.stat(root)
        if found is not None and stat.S_ISDIR(found.st_mode):
            return self.workspace.open_directory(root)
        return self.workspace.open_file(root)


@dataclass(frozen=True)
class _GrepAnswer:
    """One answer in words."""

    search: Search
    input: GrepInput
    found: ContentMatches
    ignored: tuple[int, bool]
    problem: str

    def result(self) -> ToolResult:
        lines = self._lines()
        found = self.found
        notices: list[str] = []
        if lines:
            text = "\n".join(lines)
        elif found.total or (self.input.offset and found.num_files):
            text = _NO_MORE
            notices.append(f"offset={self.input.offset} is past the end: {found.total} {self._unit()} in all")
        else:
            text = _NOTHING
        notices += self._notices()
        # A match is a line that matches; with -o, and counted with multiline, each match by itself
        facts = {
            "mode": self.input.output_mode,
            "num_files": found.num_files,
            "num_lines": self._num_lines(),
            "num_matches": found.num_matches,
            "truncated": self._is_truncated(),
            "timed_out": found.timed_out,
            "engine": "ripgrep",
        }
        return text_result(text, facts=facts, notices=notices)

    def _lines(self) -> list[str]:
        shown = self.search.shown
        if self.input.output_mode == "content":
            return [self._line(line) if isinstance(line, ResultLine) else "--" for line in self.found.lines]
        if self.input.output_mode == "count":
            return [f"{visible_line(shown(file.path))}:{file.count}" for file in self.found.files]
        return [visible_line(shown(file.path)) for file in self.found.files]

    def _line(self, line: ResultLine) -> str:
        mark = ":" if line.is_match else "-"
        number = f"{line.number}{mark}" if self.input.line_numbers and line.number else ""
        return f"{visible_line(self.search.shown(line.path))}{mark}{number}{visible_line(line.text)}"

    def _num_lines(self) -> int:
        """The lines shown, or those that were counted; 0 if only files were asked for."""
        shown = sum(isinstance(line, ResultLine) for line in self.found.lines)
        by_mode = {"content": shown, "count": self.found.num_matches}
        return by_mode.get(self.input.output_mode, 0)

    def _num_shown(self) -> int:
        """Of what pages count."""
        if self.input.is_goas:
            return self.found.num_matches
        if self.input.output_mode == "content":
            return sum(isinstance(line, ResultLine) for line in self.found.lines)
        return len(self.found.files)

    def _unit(self) -> str:
        return "lines" if self.input.output_mode == "content" else "files"

    def _is_truncated(self) -> bool:
        is_cut = self.input.offset + self._num_shown() < self.found.total
        return is_cut or not self.found.is_total_exact or self.search.is_partial

    def _notices(self) -> list[str]:
        found = self.found
        notices: list[str] = []
        if found.terms:
            terms = ", ".join(visible_line(term) for term in found.terms)
            notices.append(f"nothing matches the whole pattern; searched each term by itself: {terms}")
        if self.input.output_mode == "count" and found.num_files:
            notices.append(f"{found.num_matches} matches in {found.num_files} files")
        shown = self._num_shown()
        following = self.input.offset + shown
        if self.input.is_goas and self._is_truncated():
            notices.append(f"the first {found.num_matches} matches; narrow the search, or raise max_results")
        elif shown and (following < found.total or not (found.is_total_exact or found.timed_out)):
            more = "" if found.is_total_exact else "+"
            notices.append(f"{shown} of {found.total}{more}; continue with offset={following}")
        if found.timed_out:
            notices.append("timed out, results incomplete; narrow path, glob or type")
        if self.problem:
            notices.append(self.problem)
        if self.search.is_partial:
            notices.append("some files could not be searched, results incomplete")
        count, is_all = self.ignored
        if count:
            notices.append(f"{count}{'' if is_all else '+'} ignored files match; set include_ignored")
        return notices


def _query(input: GrepInput, root: str) -> Query:
    if "\0" in input.pattern or len(input.pattern) > _MAX_PATTERN_CHARS:
        problem = "holds a NUL character" if "\0" in input.pattern else f"is over {_MAX_PATTERN_CHARS} characters long"
        raise ToolError(ErrorCode.PATTERN, f"the pattern {problem}", "Send a shorter pattern of plain text.")
    around = input.around if input.around is not None else input.context or 0
    try:
        rules = rules_of_globs(slashed(input.glob or ""), below=slashed(root))
    except BadGlob as bad:
        message = f"glob: {bad}: {cut_middle(input.glob or '', 200)}"
        raise ToolError(ErrorCode.PATTERN, message, 'Send globs such as "*.py" or "src/**/*.{ts,tsx}".') from None
    return Query(
        patterns=(input.pattern,),
        ignore_case=input.ignore_case,
        multiline=input.multiline,
        only_matching=input.only_matching,
        before=around if input.before is None else input.before,
        after=around if input.after is None else input.after,
        file_type=input.type,
        path_rules=rules,
        include_ignored=input.include_ignored,
    )
