"""What a gateway wraps around each call, outermost first: its session's events, mail from agents, what the user chose.

Loaded with the pipeline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from goat_mcp.calls.extensions import CallNext, Extension
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.core.spec import ToolSpec

if TYPE_CHECKING:  # loaded where there are some
    from goat_mcp.calls.extensions.installed import InstalledExtension
    from goat_mcp.calls.hooks.session_events import SessionEvents
    from goat_mcp.gateway.build.agents import GatewayAgents


class Middleware:
    """`layers` are the extensions of the pipeline; `agents` is None until a call has needed some."""

    def __init__(self, sessions: SessionEvents | None, chosen: Sequence[InstalledExtension]) -> None:
        begins_sessions = (sessions.around,) if sessions is not None else ()
        wrapping = [extension for extension in chosen if extension.function is not None]
        self.layers: tuple[Extension, ...] = (*begins_sessions, self._bring_mail, *wrapping)
        self.agents: GatewayAgents | None = None

    async def _bring_mail(
        self, spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext, call_next: CallNext
    ) -> ToolResult:
        """With a result comes what agents, and members of a team, wrote to the session they serve."""
        if self.agents is not None:
            result = await self.agents.with_letters(spec, arguments, ctx, call_next)
        else:
            result = await call_next(arguments)
        # Looked for again: this very call may have started the first agent.
        return self.agents.with_mail(spec, result, ctx) if self.agents is not None else result
