"""What a gateway wraps around each call, outermost first: its session's events, mail from agents, what the user chose.

Loaded with the pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from goat_mcp.calls.extensions import Extension
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.core.spec import ToolSpec

if TYPE_CHECKING:  # loaded where there are some
    from goat_mcp.calls.extensions.installed import InstalledExtension
    from goat_mcp.calls.hooks.session_events import SessionEvents
    from goat_mcp.gateway.build.agents import GatewayAgents


class Middleware:
    """`agents` is None until a call has needed some: a call before that has nothing of theirs around it."""

    def __init__(self, sessions: SessionEvents | None, chosen: Sequence[InstalledExtension]) -> None:
        self._sessions = (sessions.around,) if sessions is not None else ()
        self._chosen = tuple(extension for extension in chosen if extension.function is not None)
        self.agents: GatewayAgents | None = None

    def layers(self) -> tuple[Extension, ...]:
        """What is wrapped around a call that starts now."""
        letters = (self.agents.with_letters,) if self.agents is not None else ()
        return (*self._sessions, *letters, *self._chosen)

    def with_mail(self, spec: ToolSpec, result: ToolResult, ctx: ToolContext) -> ToolResult:
        """With a result comes what agents wrote to the session they serve; this very call may have started them."""
        return self.agents.with_mail(spec, result, ctx) if self.agents is not None else result
