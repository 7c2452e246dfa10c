"""An export of a declared resource as a `Tool` of ours."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goat_mcp.core.agent_runtime import AgentRuntime
from goat_mcp.core.author_errors import handler_failed
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.lazy import Lazy
from goat_mcp.core.result import ToolResult, text_block
from goat_mcp.core.spec import ToolSpec
from goat_mcp.core.tool import Access, OwnTool
from goat_mcp.files.workspace import Workspace
from goat_mcp.manifests.handler_api import HandlerContext
from goat_mcp.manifests.handler_files import HandlerFiles
from goat_mcp.manifests.handler_results import write_json
from goat_mcp.manifests.runner import Runner
from goat_mcp.manifests.tool_document import AccessFields, Export
from goat_mcp.manifests.validation import Parameters

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
class ManifestTool(OwnTool):
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
        if self.export.access == _TOUCHES_NOTHING and not self.export.read_only_when:
            return Access(handler=handler)
        from goat_mcp.manifests.call_access import call_access

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
