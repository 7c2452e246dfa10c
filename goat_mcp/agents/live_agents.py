"""The agents that run now: their maximum number, and unique names for each principal."""

from __future__ import annotations

from dataclasses import dataclass

from goat_mcp.agents.inbox import Inbox
from goat_mcp.core.errors import ErrorCode, ToolError


@dataclass(frozen=True)
class LiveAgent:
    id: str
    principal: str
    name: str
    title: str
    type: str = ""
    profiles: tuple[str, ...] = ()
    started_by: str = ""
    """The session that started it."""
    inbox: Inbox | None = None
    """None if only its team can write to it, or if it reads nothing."""

    @property
    def display_name(self) -> str:
        return self.name or self.id

    def __str__(self) -> str:
        return f"{self.id} ({self.name or self.title[:40]})"


class LiveAgents:
    """An agent is added before it is started: others may start meanwhile."""

    def __init__(self, max_at_once: int) -> None:
        self._max_at_once = max_at_once
        self._live: dict[str, LiveAgent] = {}

    def add(self, agent: LiveAgent) -> None:
        """Raises `ToolError`: BUSY if too many run or it runs already, INPUT if its name is taken."""
        if agent.id in self._live:
            raise self.still_running(agent.id)
        mine = ", ".join(str(one) for one in self._live.values() if one.principal == agent.principal)
        if len(self._live) >= self._max_at_once:
            raise ToolError(
                ErrorCode.BUSY,
                f"{len(self._live)} agents run already, which is the most there can be (agent.max_at_once)",
                f"Wait for one of yours: {mine}." if mine else "Try again later.",
            )
        if agent.name and self.find(agent.name, agent.principal) is not None:
            raise ToolError(
                ErrorCode.INPUT,
                f"name: a running agent is called {agent.name!r} already",
                f"Choose another name, or none. Running: {mine}.",
            )
        self._live[agent.id] = agent

    def remove(self, agent_id: str) -> None:
        self._live.pop(agent_id, None)

    def of_principal(self, principal: str) -> list[LiveAgent]:
        """Oldest first."""
        return [agent for agent in self._live.values() if agent.principal == principal]

    def find(self, id_or_name: str, principal: str) -> LiveAgent | None:
        return next(
            (
                agent
                for agent in self._live.values()
                if agent.principal == principal and id_or_name in (agent.id, agent.name)
            ),
            None,
        )

    def check_has_ended(self, id_or_name: str, principal: str) -> None:
        """Raises `ToolError(BUSY)` if it runs."""
        if self.find(id_or_name, principal) is not None:
            raise self.still_running(id_or_name)

    def still_running(self, id_or_name: str) -> ToolError:
        return ToolError(
            ErrorCode.BUSY,
            f"agent {id_or_name[:80]} still runs",
            "Wait for it with TaskOutput, or end it with TaskStop.",
        )
