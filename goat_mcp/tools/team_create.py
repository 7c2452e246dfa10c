"""TeamCreate: start a team of background agents that write to each other. Teams live in `goat_mcp.agents.teams`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field

from goat_mcp.agents.teams.team import usable_name
from goat_mcp.core.arguments import InputPart, ToolInput, objects_of
from goat_mcp.core.coercion import Problem
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import BuiltinTool

if TYPE_CHECKING:  # the machinery is loaded when the first team is made
    from goat_mcp.agents.teams.coordinator import TeamCoordinator

MAX_MEMBERS = 10


_Name = Annotated[str, AfterValidator(usable_name)]


class WantedMember(InputPart):
    name: _Name
    subagent_type: str = ""
    prompt: str = ""
    model: str = ""


class TeamCreateInput(ToolInput):
    team_name: _Name = Field(description="Letters, digits, - and _")
    description: str = ""
    members: list[WantedMember] = Field(default_factory=list[WantedMember], max_length=MAX_MEMBERS)

    @classmethod
    def problems_together(cls, given: Mapping[str, Any]) -> Iterable[Problem]:
        members = objects_of(given, "members")
        names = [name for member in members if isinstance(name := member.get("name"), str)]
        if len({name.lower() for name in names}) < len(names):
            yield "members", f"names must differ, got {', '.join(names)}"


@dataclass(frozen=True)
class TeamCreate(
    BuiltinTool[TeamCreateInput], side_effect=SideEffect.SPAWNS, toolset="teams", title="Create a team of agents"
):
    """Start a team of background agents; one team at a time. Each works on its `prompt`, then waits for SendMessage.

    What members write to you comes with the results of your next calls. End the team with TeamDelete.
    """

    examples = (
        ToolExample(
            "Two members",
            {
                "team_name": "release",
                "members": [
                    {"name": "tester", "prompt": "Run the tests and tell main what fails."},
                    {"name": "writer", "subagent_type": "general-purpose"},
                ],
            },
        ),
        ToolExample(
            "One member, on a small model",
            {
                "team_name": "watch",
                "description": "Tells when the build breaks",
                "members": [
                    {"name": "watcher", "subagent_type": "explorer", "prompt": "Read the log.", "model": "haiku"}
                ],
            },
        ),
    )

    teams: Callable[[], TeamCoordinator]

    async def execute(self, input: TeamCreateInput, ctx: ToolContext) -> ToolResult:
        from goat_mcp.agents.agent_start import SpawnRequest

        wanted = [
            SpawnRequest(
                name=member.name, prompt=member.prompt, type_name=member.subagent_type, model=member.model, title=""
            )
            for member in input.members
        ]
        created = await self.teams().create(input.team_name, input.description, wanted, ctx)
        lines = [f"Team {created.team.name} is there."]
        members: list[dict[str, str]] = []
        for member in wanted:
            if (reason := created.failed.get(member.name)) is not None:
                lines.append(f"{member.name}: could not be started: {reason}")
                members.append({"name": member.name, "error": reason})
            else:
                agent_id = created.team.members[member.name].agent_id
                lines.append(f"{member.name}: started, agent {agent_id}")
                members.append({"name": member.name, "agent_id": agent_id})
        return text_result("\n".join(lines), facts={"team_name": created.team.name, "members": members})
