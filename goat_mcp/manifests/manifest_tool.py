"""An export of a declared resource as a `Tool` of ours."""

from __future__ import annotations

import logging
import os
import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goat_mcp.core.agent_runtime import AgentRuntime
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult, text_block
from goat_mcp.core.side_effect import Risk
from goat_mcp.core.spec import ToolSpec
from goat_mcp.core.tool import Access
from goat_mcp.files.workspace import Workspace
from goat_mcp.manifests.arguments import Parameters
from goat_mcp.manifests.failure import handler_failed
from goat_mcp.manifests.handler_context import HandlerContext
from goat_mcp.manifests.handler_files import HandlerFiles
from goat_mcp.manifests.json_values import written_json
from goat_mcp.manifests.runner import Runner
from goat_mcp.manifests.shell_access import shell_access
from goat_mcp.manifests.tool_document import AccessFields, Export

if TYPE_CHECKING:  # loads the validation library
    from goat_mcp.catalog.schemas.bounded_schema import BoundedSchema

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
class ManifestTool:
    """One export. Equal where its declaration is: a reload that changes nothing is none."""

    export: Export
    resource: Resource

    @property
    def spec(self) -> ToolSpec:
        return self.export.spec

    @cached_property
    def _parameters(self) -> Parameters:
        return Parameters(self.export.spec.input_schema)

    def validate(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._parameters.read(arguments)

    def definition(self) -> str:
        """As `HasDefinition`. Where the document lies is no part of it."""
        files = self.resource.files.content(self.export.name)
        return f"{self.judged_by!r}\0{self.resource.entry!r}\0{files}"

    def access(self, input: Mapping[str, Any]) -> Access:
        """The files that a call touches by its declaration, as the workspace knows them, and whether it only reads."""
        handler = self.resource.files.state(self.export.name)
        touches_nothing = self.export.access == _TOUCHES_NOTHING
        access = Access(handler=handler) if touches_nothing else replace(self._access(input), handler=handler)
        if not self.export.read_only_when:
            return access
        from goat_mcp.manifests.reading_calls import only_reads

        return replace(access, risk=Risk.NONE) if only_reads(self.export.read_only_when, input) else access

    def _access(self, input: Mapping[str, Any]) -> Access:
        fields = self.export.access
        if fields.note:
            from goat_mcp.manifests.note_access import note_access

            return note_access(fields.note, input, self.resource.workspace, fields.category)
        if fields.own_command:
            from goat_mcp.calls.permissions.mode import changes_something

            changes = any(changes_something(str(input.get(name, ""))) for name in fields.own_command)
            return Access(category=fields.category, risk=None if changes else Risk.NONE)
        reads, writes = self._paths(input, fields.reads), self._paths(input, fields.writes)
        asked = tuple(map(posixpath.normpath, (*reads, *writes)))
        is_bash = self.spec.canonical_name == "Bash"
        shell = shell_access(fields, input, self.resource.workspace, is_judged_as_bash=is_bash)
        return Access(
            asked,
            _real(reads),
            _real(writes),
            fields.category,
            judged_arguments=shell.seen,
            runs=shell.runs,
            script_sha256=shell.script_sha256,
        )

    def _paths(self, input: Mapping[str, Any], names: tuple[str, ...]) -> tuple[str, ...]:
        """As the call names them. Relative ones lie below the handler's working directory, as a Goondan tool's do."""
        roots = self.resource.workspace.roots
        given = [input[name] for name in names if isinstance(input.get(name), str) and input[name]]
        if any("\0" in text for text in given):
            raise ToolError(ErrorCode.INPUT, "a path holds a NUL character", "Send it without.")
        below = str(roots[0]) if roots else "/"
        return tuple(posixpath.join(below, _below_root(text)) for text in given)

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
        return replace(self.export, spec=replace(self.spec, examples=()), timeout_ms=0, output=None)

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
            make_logger=partial(self.resource.logger, ctx.call_id),
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
            text = written_json(value)
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


def _real(paths: tuple[str, ...]) -> tuple[str, ...]:
    # Not normalised before: `link/..` is where the link leads, and up from there.
    return tuple(os.path.realpath(path) for path in paths)


def _below_root(text: str) -> str:
    """`@src/a.py` is `src/a.py` of the workspace."""
    return text[1:].lstrip("/") if text.startswith("@") else text
