"""Requests for resources and prompts of upstreams, through the one pipeline: rules, hooks, limits, audit (AGG-1).

Loaded by the first of them. What a client may see is in `resource_catalog`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from goat_mcp.calls.pipeline import Pipeline
from goat_mcp.catalog.resource_catalog import ResourceCatalog
from goat_mcp.catalog.resource_tools import (
    ResourceTool,
    completion_result,
    prompt_result,
    prompt_spec,
    reading_result,
    reading_spec,
)
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import nobody_to_ask
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult
from goat_mcp.core.rights import Rights
from goat_mcp.upstreams.upstreams import Upstreams


@dataclass(frozen=True)
class OneTool:
    """What the pipeline looks names up in, for one request: any name means this resource or prompt, as it is now."""

    find: Callable[[], ResourceTool]

    def resolve(self, name: str) -> ResourceTool:
        return self.find()

    def of(self, rights: Rights) -> OneTool:
        """What it may be about has been narrowed already."""
        return self


@dataclass(eq=False)
class ResourceCalls:
    """Failures are results with `is_error`, as a tool's; `UpstreamError` is raised as it came."""

    pipeline: Pipeline
    catalog_of: Callable[[Rights], ResourceCatalog]
    upstreams: Upstreams
    shown: Callable[[Rights], Callable[[str], bool]]
    """Which servers a client with these rights may know of."""

    async def find_owner(self, uri: str, ctx: ToolContext) -> str | None:
        """The source that is asked for this URI, None where nobody has it that this client may see."""
        await self._look(lambda: self._owner_of(uri, ctx) is not None, ctx)
        return self._owner_of(uri, ctx)

    def _owner_of(self, uri: str, ctx: ToolContext) -> str | None:
        return self.catalog_of(ctx.rights).owner_of(uri, *self._givers(uri, ctx))

    def _owner_of_ref(self, uri: str, ctx: ToolContext) -> str | None:
        return self.catalog_of(ctx.rights).owner_of_ref(uri, *self._givers(uri, ctx))

    def _givers(self, uri: str, ctx: ToolContext) -> tuple[frozenset[str], frozenset[str]]:
        key = ctx.session_key
        return self.upstreams.given.of(key, uri), self.upstreams.given_by_reads.of(key, uri)

    async def _look(self, is_known: Callable[[], bool], ctx: ToolContext) -> None:
        """Wait until the owner is known: what nobody is known to have may belong to a server that was never seen.

        First a short while for all servers, once: who owns a URI must not depend on which server was faster.
        """
        shown = self.shown(ctx.rights)
        await self.upstreams.first_offers(shows=shown)
        if not is_known():
            await self.upstreams.all_offers(ctx.wait_left_s() / 2, shown)

    async def read(self, uri: str, ctx: ToolContext) -> ToolResult:
        await self.find_owner(uri, ctx)

        def find() -> ResourceTool:
            source = self._owner_of(uri, ctx)
            if source is None:
                raise ToolError(ErrorCode.TOOL_NOT_FOUND, f"resource not found: {uri[:200]}")
            server = self.upstreams.upstream(source).requests

            def check(arguments: Mapping[str, Any]) -> None:
                asked = arguments.get("uri")
                if not isinstance(asked, str) or self._owner_of(asked, ctx) != source:
                    raise ToolError(ErrorCode.INPUT, "uri: it is none of the server that was decided about")

            async def run(arguments: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
                result = reading_result(await server.read(arguments["uri"], ctx))
                self.upstreams.given_by_reads.note(ctx.session_key, source, result.content)
                return result

            return ResourceTool(reading_spec(server.server), check, run)

        return await self._call("resources/read", find, {"uri": uri}, ctx)

    async def get_prompt(self, name: str, arguments: Mapping[str, Any] | None, ctx: ToolContext) -> ToolResult:
        await self._look(lambda: self.catalog_of(ctx.rights).has_prompt(name), ctx)

        def find() -> ResourceTool:
            source, prompt = self.catalog_of(ctx.rights).prompt(name)
            server = self.upstreams.upstream(source).requests

            async def run(given: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
                # None and no arguments are two things to some servers.
                answer = await server.get_prompt(prompt.native_name, given or arguments, ctx)
                result = prompt_result(answer)
                self.upstreams.given.note(ctx.session_key, source, result.content)
                return result

            return ResourceTool(prompt_spec(prompt), _check_texts, run)

        return await self._call("prompts/get", find, arguments or {}, ctx)

    async def complete(self, params: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        """`params` as the client sent them. Nobody is asked about one: what needs a person's word is not completed."""
        ref: Mapping[str, Any] = params["ref"]
        name, uri = str(ref.get("name")), str(ref.get("uri"))
        is_prompt = ref.get("type") == "ref/prompt"

        def is_known() -> bool:
            catalog = self.catalog_of(ctx.rights)
            return catalog.has_prompt(name) if is_prompt else self._owner_of_ref(uri, ctx) is not None

        await self._look(is_known, ctx)

        def find() -> ResourceTool:
            if is_prompt:
                source, prompt = self.catalog_of(ctx.rights).prompt(name)
                asked = {**ref, "name": prompt.native_name}
            else:
                source, prompt, asked = self._owner_of_ref(uri, ctx) or "", None, ref
                if not source:
                    raise ToolError(ErrorCode.TOOL_NOT_FOUND, f"no such template: {uri[:200]}")
            server = self.upstreams.upstream(source).requests

            async def run(given: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
                return completion_result(await server.complete({**params, **given, "ref": asked}, ctx))

            spec = reading_spec(server.server) if prompt is None else prompt_spec(prompt)
            return ResourceTool(spec, _check_nothing, run)

        given = {member: params[member] for member in ("argument", "context") if member in params}
        result = await self._call("completion/complete", find, given, replace(ctx, ask=nobody_to_ask))
        return completion_result(None) if result.error_code == ErrorCode.PERMISSION else result

    async def _call(
        self, method: str, find: Callable[[], ResourceTool], arguments: Mapping[str, Any], ctx: ToolContext
    ) -> ToolResult:
        # The name is for the record of a request that is about nothing we have.
        return await replace(self.pipeline, catalog=OneTool(find)).call(method, arguments, ctx)


def _check_nothing(arguments: Mapping[str, Any]) -> None:
    """The upstream is the authority on what it completes."""


def _check_texts(arguments: Mapping[str, Any]) -> None:
    if not all(isinstance(value, str) for value in arguments.values()):
        raise ToolError(ErrorCode.INPUT, "the arguments of a prompt are texts")
