"""What a handler may ask of agents. Source: Goondan, `ToolContext.runtime`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class AgentRuntime(Protocol):
    """The agents of one call's caller. Every method answers with JSON values and raises `ToolError`."""

    async def request(
        self, target: str, message: str = "", *, timeout_s: float | None = None, correlation_id: str = ""
    ) -> Mapping[str, Any]:
        """Say something to an agent and wait for its answer: `{"answer": ...}`, or after the wait a
        `{"correlationId": ...}` under which the answer will be: ask again with it alone, or look at that task."""
        ...

    async def send(self, target: str, message: str) -> Mapping[str, Any]:
        """Say something and do not wait."""
        ...

    async def spawn(self, type: str, *, name: str = "", message: str = "") -> Mapping[str, Any]:
        """Start an agent of a type: `{"name": ..., "type": ..., "taskId": ...}`, and the
        `correlationId` of its answer to `message`, if there is one."""
        ...

    async def list(self) -> Sequence[Mapping[str, Any]]:
        """The agents that are there."""
        ...

    async def catalog(self) -> Sequence[Mapping[str, Any]]:
        """The types of agents that can be started."""
        ...
