"""An export of a declared resource as a `Tool` of ours: what a call of it touches, as permission rules see it, and its
run.
"""

from __future__ import annotations

import hashlib
import logging
import os
import posixpath
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from goat_mcp.calls.permissions.mode import changes_something
from goat_mcp.calls.permissions.patterns import text_pattern
from goat_mcp.core.author_errors import handler_failed
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.lazy import Lazy
from goat_mcp.core.result import ToolResult, text_block
from goat_mcp.core.side_effect import Risk
from goat_mcp.core.spec import ToolSpec
from goat_mcp.core.tool import Access, OwnTool
from goat_mcp.files.memory import Memories, slug
from goat_mcp.files.workspace import Workspace, WorkspacePath
from goat_mcp.manifests.entry import HandlerFiles
from goat_mcp.manifests.handler_api import AgentRuntime, HandlerContext
from goat_mcp.manifests.handler_results import write_json
from goat_mcp.manifests.runner import Runner
from goat_mcp.manifests.tool_document import AccessFields, Export
from goat_mcp.manifests.validation import ExportParameters

if TYPE_CHECKING:  # loads the validation library
    from goat_mcp.catalog.schemas.bounded_schema import BoundedSchema

MAX_READ_BYTES = 20_000
"""More than rules look into (R-SHELL-6), so that a longer one is seen to be too long."""
_CHUNK_BYTES = 1 << 20
_SHELLS = re.compile(r"(?:\S*/)?(?:ba|da|z|k|mk|a)?sh(?:-static)?\Z")
_PLAIN = ("bash",)
_READ, _LIST = "read", "list"


def call_access(export: Export, input: Mapping[str, Any], workspace: Workspace) -> Access:
    """What a call touches by its declaration, and whether it only reads. Raises `ToolError`."""
    access = _access(export, input, workspace)
    reads_only = bool(export.read_only_when) and all(
        isinstance(value := input.get(name), str) and any(text_pattern(text)(value) is not None for text in texts)
        for name, texts in export.read_only_when.items()  # (design 0013)
    )
    return replace(access, risk=Risk.NONE) if reads_only else access


def _access(export: Export, input: Mapping[str, Any], workspace: Workspace) -> Access:
    fields = export.access
    if fields.note:
        return _note_access(fields.note, input, workspace, fields.category)
    if fields.own_command:
        changes = any(changes_something(str(input.get(name, ""))) for name in fields.own_command)
        return Access(category=fields.category, risk=None if changes else Risk.NONE)
    reads, writes = _paths(input, fields.reads, workspace), _paths(input, fields.writes, workspace)
    access = Access(
        tuple(map(posixpath.normpath, (*reads, *writes))),
        # Not normalised before: `link/..` is where the link leads, and up from there.
        tuple(map(os.path.realpath, reads)),
        tuple(map(os.path.realpath, writes)),
        fields.category,
    )
    return _with_commands(access, export, input, workspace)


def _paths(input: Mapping[str, Any], names: tuple[str, ...], workspace: Workspace) -> tuple[str, ...]:
    """As the call names them. Relative ones lie below the handler's working directory, as a Goondan tool's do."""
    given = [input[name] for name in names if isinstance(input.get(name), str) and input[name]]
    if any("\0" in text for text in given):
        raise ToolError(ErrorCode.INPUT, "a path holds a NUL character", "Send it without.")
    below = str(workspace.roots[0]) if workspace.roots else "/"
    # `@src/a.py` is `src/a.py` of the workspace.
    return tuple(posixpath.join(below, text[1:].lstrip("/") if text.startswith("@") else text) for text in given)


def _with_commands(access: Access, export: Export, input: Mapping[str, Any], workspace: Workspace) -> Access:
    """With the commands that a call runs. Raises `ToolError` if a script cannot be opened."""
    fields = export.access
    if fields.another_machine:
        return replace(access, runs=tuple(_words(input, fields.another_machine)))
    inside: tuple[str, ...] = ()
    sha256 = ""
    if fields.argv:
        command, folded = shlex.join(_words(input, fields.argv)), (*fields.argv, *fields.stdin)
        if given := "".join(_words(input, fields.stdin)):
            command += f" <<< {shlex.quote(given)}"  # what a shell is given there are commands, too
    elif fields.script:
        asked, *arguments = _words(input, fields.script)
        script = script_file(workspace, asked)
        command, folded = shlex.join(script.argv(tuple(arguments))), fields.script
        inside, sha256 = (script.text,) if script.text else (), script.sha256
    else:
        return access
    if export.spec.canonical_name != "Bash":
        return replace(access, runs=(command, *inside), script_sha256=sha256)
    rest = {name: value for name, value in input.items() if name not in folded}
    return replace(access, judged_arguments={"command": command, **rest}, runs=inside, script_sha256=sha256)


def _words(input: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    words: list[str] = []
    for name in names:
        value: Any = input.get(name, ())
        words += [value] if isinstance(value, str) else [str(one) for one in cast("Sequence[Any]", value)]
    if any("\0" in word for word in words):
        raise ToolError(ErrorCode.INPUT, f"{', '.join(names)}: holds a NUL character", "Remove it.")
    return words


@dataclass(frozen=True)
class ScriptFile:
    """A script in the workspace. `text` is its beginning where a shell runs it, else empty."""

    path: Path
    program: tuple[str, ...]
    text: str
    sha256: str

    def argv(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        return (*self.program, str(self.path), *arguments)


def script_file(workspace: Workspace, asked: str) -> ScriptFile:
    """The script at a path, which may be relative to the workspace. Raises `ToolError` as opening a file does."""
    absolute = asked if asked.startswith(("/", "@")) else f"{workspace.primary}/{asked}"
    with workspace.open_file(workspace.resolve(absolute)) as opened:
        start, sha256 = _read(opened.fd)
        path = opened.real_path
    program = _program(start)
    is_shell = any(_SHELLS.match(word) for words in program for word in words.split())
    return ScriptFile(path, program, start.decode("utf-8", "replace") if is_shell else "", sha256)


def _read(fd: int) -> tuple[bytes, str]:
    """The beginning, and the hash of all: read once, so that it is the beginning of what was hashed."""
    with open(fd, "rb", closefd=False) as file:
        start = file.read(MAX_READ_BYTES)
        digest = hashlib.sha256(start)
        while part := file.read(_CHUNK_BYTES):
            digest.update(part)
    return start, digest.hexdigest()


def _program(start: bytes) -> tuple[str, ...]:
    """The program of a `#!` line and its one argument, if there is any: the kernel splits no further."""
    if not start.startswith(b"#!"):
        return _PLAIN
    line = start[2:].split(b"\n", 1)[0].decode("utf-8", "replace").strip(" \t\r")
    return tuple(line.split(None, 1)) or _PLAIN


def _note_access(names: Sequence[str], input: Mapping[str, Any], workspace: Workspace, category: str) -> Access:
    """`names` are the parameters: action, name, scope, directory. Raises `ToolError` for a note that is a link."""
    action, name, scope, directory = (str(input.get(one, "")) for one in names)
    memories = Memories(workspace)
    if action == _LIST:
        return _listing(memories, scope, directory, category)
    name = slug(name)
    if not name:
        return Access(category=category)  # the tool refuses it
    if scope == "global":
        asked, real = _of_user(memories, f"{name}.md")
    else:
        asked, real = _of_project(workspace, memories.project_file(name, directory))
    if action == _READ:
        return Access(asked=(asked,), reads=(real,), category=category)
    return Access(asked=(asked,), writes=(real,), category=category)


def _listing(memories: Memories, scope: str, directory: str, category: str) -> Access:
    found: list[tuple[str, str]] = []
    if scope != "global":
        with suppress(ToolError):  # nothing is listed where no folder of notes is
            found.append(_of_project(memories.workspace, memories.project_folder(directory)))
    if scope != "project":
        found.append(_of_user(memories, ""))
    return Access(asked=tuple(one for one, _ in found), reads=tuple(one for _, one in found), category=category)


def _of_project(workspace: Workspace, path: WorkspacePath) -> tuple[str, str]:
    return path.plain, str(workspace.real_path(path))


def _of_user(memories: Memories, name: str) -> tuple[str, str]:
    path = os.path.normpath(memories.global_folder() / name)
    return path, os.path.realpath(path)


_TOUCHES_NOTHING = AccessFields()


@dataclass(frozen=True, kw_only=True)
class Resource:
    """What the exports of one resource share. `runner` starts nothing before the first call.

    `file` is the document, `entry` what it says is run, and `files` are those that this means. `declared_now` is the
    export of this name as it stands in the documents at the moment; None where it is gone.
    """

    name: str
    file: Path
    entry: object
    files: HandlerFiles
    declared_now: Callable[[str], ManifestTool | None]
    runner: Callable[[], Runner]
    workspace: Workspace
    agents: Callable[[ToolContext], AgentRuntime | None]
    logger: Callable[[str], logging.Logger]
    config: Callable[[], Mapping[str, Any]]


@dataclass(frozen=True)
class ManifestTool(OwnTool):
    """One export. Equal where its declaration is: a reload that changes nothing is none."""

    export: Export
    resource: Resource

    @property
    def spec(self) -> ToolSpec:
        return self.export.spec

    @cached_property
    def _parameters(self) -> ExportParameters:
        return ExportParameters(self.export.spec.input_schema)

    def validate(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._parameters.read(arguments)

    def definition(self) -> str:
        """As `HasDefinition`. Where the document lies is no part of it."""
        files = self.resource.files.content(self.export.name)
        return f"{self.judged_by!r}\0{self.resource.entry!r}\0{files}"

    def access(self, input: Mapping[str, Any]) -> Access:
        """The files that a call touches by its declaration, as the workspace knows them, and whether it only reads."""
        handler = self.resource.files.state(self.export.name)
        if self.export.access == _TOUCHES_NOTHING and not self.export.read_only_when:
            return Access(handler=handler)
        return replace(call_access(self.export, input, self.resource.workspace), handler=handler)

    async def execute(self, input: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        """Raises `ToolError` where the call was held back - by a person who was asked, by others before it - and its
        declaration or its handler is another one now: it was judged and allowed as it was before (R-PERM-4)."""
        now = self.resource.declared_now(self.export.name)
        if now is self:
            if ctx.handler and ctx.handler != self.resource.files.state(self.export.name):
                raise self._changed("its handler is another file now, or the file holds something else")
            return await self._run(input, ctx)
        if now is None:
            raise ToolError(
                ErrorCode.TOOL_NOT_IN_CATALOG,
                f"{self.spec.name} was taken away while this call waited",
                "Nothing was run. List the tools to see what there is.",
            )
        if (now.resource.file, now.resource.entry, now.judged_by) != (
            self.resource.file,
            self.resource.entry,
            self.judged_by,
        ):
            raise self._changed("its manifest declares something else now")
        return await now.execute(input, ctx)

    def _changed(self, how: str) -> ToolError:
        return ToolError(
            ErrorCode.PERMISSION,
            f"{self.spec.name} was changed while this call waited: {how}",
            "Nothing was run. Look at the tool again, and call it again if it is still what you want.",
            facts={"tool": self.spec.name},
        )

    @property
    def judged_by(self) -> Export:
        """What of the declaration arguments, rules and people go by."""
        return replace(self.export, spec=replace(self.spec, examples=(), long_doc=""), timeout_ms=0, output=None)

    async def _run(self, input: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        if not ctx.wants_progress:
            return self._result(await self._value(input, ctx))
        from goat_mcp.core.heartbeat import filling_silence

        work = partial(self._value, input)
        return self._result(await filling_silence(work, ctx, f"{self.spec.name} is at work"))

    async def _value(self, input: Mapping[str, Any], ctx: ToolContext) -> Any:
        roots = self.resource.workspace.roots
        context = HandlerContext(
            workdir=ctx.rights.writes_below or (str(roots[0]) if roots else ""),
            lazy_logger=Lazy(partial(self.resource.logger, ctx.call_id)),
            tool_call_id=ctx.call_id,
            call=ctx,
            runtime=self.resource.agents(ctx),
            message=ctx.message,
            config=self.resource.config(),
        )
        timeout_s = min(self.export.timeout_ms / 1000, ctx.wait_left_s())
        try:
            return await self.resource.runner().run(self.export, input, context, timeout_s)
        finally:
            context.end()

    def _result(self, value: Any) -> ToolResult:
        """The value as JSON in the text and as structured content; a text is itself, anything but an object is
        wrapped (`result`), since structured content is an object in every revision of the protocol."""
        if isinstance(value, ToolResult):
            return value
        try:
            text = write_json(value)
        except (TypeError, ValueError) as problem:
            raise handler_failed(
                f"{self.spec.name} gave back a {type(value).__name__} that is no JSON value: {problem}",
                "Tell the user: the handler has to give back JSON that every client can read.",
                name="NotJson",
            ) from None
        if isinstance(value, str):
            text = value
        if self.export.output is not None:
            self._check_output(value)
        wrapped: Any = {"result": value}
        return ToolResult(content=(text_block(text),), structured=value if isinstance(value, dict) else wrapped)

    @cached_property
    def _output(self) -> BoundedSchema:
        from goat_mcp.catalog.schemas.bounded_schema import BoundedSchema

        return BoundedSchema(dict(self.export.output or {}), "output")

    def _check_output(self, value: Any) -> None:
        from goat_mcp.catalog.schemas.bounded_schema import Uncheckable

        try:
            mismatch = self._output.mismatch(value)
        except Uncheckable as why:
            what = f"what {self.spec.name} gave back cannot be checked: {why}"
        else:
            if mismatch is None:
                return
            what = f"{self.spec.name} gave back what its manifest does not promise: {mismatch.path}: {mismatch.demand}"
        raise handler_failed(
            what, "Tell the user: handler and `output` of its manifest disagree.", name="OutputMismatch"
        )
