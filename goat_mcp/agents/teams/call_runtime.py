"""The agents as one call may use them (`core.agent_runtime`): who calls stands in the call, and cannot be claimed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from goat_mcp.core.context import ToolContext

if TYPE_CHECKING:  # what runs agents is loaded when somebody asks for them
    from goat_mcp.agents.teams.bus import AgentBus


@dataclass(frozen=True)
class CallRuntime:
    """An `AgentRuntime`."""

    bus: Callable[[], AgentBus]
    ctx: ToolContext

    async def request(
        self, target: str, message: str = "", *, timeout_s: float | None = None, correlation_id: str = ""
    ) -> Mapping[str, Any]:
        if correlation_id:
            return await self.bus().await_answer(correlation_id, self.ctx, timeout_s=timeout_s)
        return await self.bus().request(target, message, self.ctx, timeout_s=timeout_s)

    async def send(self, target: str, message: str) -> Mapping[str, Any]:
        return await self.bus().send(target, message, self.ctx)

    async def spawn(self, type: str, *, name: str = "", message: str = "") -> Mapping[str, Any]:
        return await self.bus().spawn(type, name, message, self.ctx)

    async def list(self) -> Sequence[Mapping[str, Any]]:
        return await self.bus().list(self.ctx)

    async def catalog(self) -> Sequence[Mapping[str, Any]]:
        return await self.bus().catalog()
