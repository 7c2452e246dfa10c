"""What a gateway sees to before a call enters the pipeline: its caller's step, a decided plan, an unseen upstream.

Loaded by the first call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from goat_mcp.calls.meta_call import definition_of, only_reads, target_name
from goat_mcp.calls.permissions.plan_approval import PlanApproval
from goat_mcp.catalog.catalog import Catalog
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.rights import Rights
from goat_mcp.core.spec import ToolSpec
from goat_mcp.gateway.server_visibility import ServerVisibility
from goat_mcp.state.plans import Presenter
from goat_mcp.upstreams.upstreams import Upstreams

if TYPE_CHECKING:  # most gateways have none
    from goat_mcp.calls.extensions.extension_points import Steps


@dataclass(eq=False)
class Preflight:
    """`steps` are None where no extension looks at them."""

    catalog: Catalog
    plan_approval: PlanApproval
    upstreams: Upstreams
    servers: ServerVisibility
    steps: Steps | None

    def begin_step(self, ctx: ToolContext, listed: Mapping[str, ToolSpec]) -> Mapping[str, ToolSpec]:
        """What a new step of this caller sees: of the list, and besides."""
        if self.steps is None:
            return listed
        permitted = (
            tool.spec
            for tool in self.catalog.of(ctx.rights).tools()
            if ctx.rights.permits(tool.spec.rule_name, tool.spec.name)
        )
        return self.steps.begin(ctx, listed, {spec.name: spec for spec in permitted if spec.name not in listed})

    def target_name(self, name: str, arguments: Mapping[str, Any], rights: Rights) -> str:
        """The tool a call is about: not the one it may come by (DEF-3)."""
        return target_name(self.catalog.of(rights), name, arguments)

    def definition_of(self, name: str, arguments: Mapping[str, Any], rights: Rights) -> str:
        """Stands for what a call would run, as that is now: what a person's word about it is bound to (R-PERM-4)."""
        return definition_of(self.catalog.of(rights), name, arguments)

    def only_reads(self, name: str, arguments: Mapping[str, Any], rights: Rights) -> bool:
        """Whether a call is known to change nothing: not by an upstream's own word alone."""
        return only_reads(self.catalog.of(rights), name, arguments)

    async def get_ready(self, name: str, arguments: Mapping[str, Any], ctx: ToolContext) -> None:
        """Look for what may have happened outside since the last call, and wait for a name nobody knows yet."""
        catalog = self.catalog.of(ctx.rights)
        name = target_name(catalog, name, arguments)
        self.plan_approval.look_for_decision(Presenter(ctx.principal, ctx.session_key))
        if self.steps is not None and not self.steps.has_begun(ctx):
            # Whoever calls without having listed sees what a list would have shown.
            self.begin_step(ctx, {tool.spec.name: tool.spec for tool in catalog.listed(ctx.rights)})
        try:
            catalog.resolve(name)
        except ToolError as unknown:
            if unknown.code in (ErrorCode.TOOL_NOT_FOUND, ErrorCode.UPSTREAM_DOWN):
                await self.upstreams.first_outcome(name, ctx.wait_left_s() / 2, self.servers.shown(ctx.rights))
            if ctx.client is not None:
                await self.upstreams.elicit_first_login(name, ctx, self.servers.shown(ctx.rights))
