"""TeamDelete: end the team. Teams live in `goat_mcp.agents.teams`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import Hints, SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import BuiltinTool

if TYPE_CHECKING:  # the machinery is loaded when the first team is made
    from goat_mcp.agents.teams.coordinator import TeamCoordinator


class TeamDeleteInput(ToolInput):
    team_name: str = ""
    force: bool = False


@dataclass(frozen=True)
class TeamDelete(
    BuiltinTool[TeamDeleteInput],
    side_effect=SideEffect.MUTATING,
    toolset="teams",
    title="End the team",
    hints=Hints(read_only=False, destructive=True, idempotent=True, open_world=False),
):
    """End your team. Fails while members work or wait; with `force` they are asked to end, and stopped after 10 s."""

    examples = (
        ToolExample("Once its members have ended", {}),
        ToolExample("Whatever its members do", {"team_name": "release", "force": True}),
    )

    teams: Callable[[], TeamCoordinator]

    async def execute(self, input: TeamDeleteInput, ctx: ToolContext) -> ToolResult:
        ended = await self.teams().delete(input.team_name, ctx, force=input.force)
        if ended is None:
            return text_result("There is no team.", facts={"team_name": None, "stopped": []})
        team, stopped = ended
        text = f"Team {team.name} is gone."
        notices = [f"stopped, for they did not end in time: {', '.join(stopped)}"] if stopped else []
        if team.members:
            notices.append("what its members wrote stays readable with TaskOutput")
        return text_result(text, facts={"team_name": team.name, "stopped": list(stopped)}, notices=notices)
