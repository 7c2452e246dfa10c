"""Members as background agents: what each is told of its team, and the one tool it has that other agents have not."""

from __future__ import annotations

from dataclasses import dataclass

from goat_mcp.agents.engine import Mail
from goat_mcp.agents.request import WITHHELD, AgentRequest
from goat_mcp.agents.spawner import Spawner
from goat_mcp.agents.teams.team import LEAD, Member, NewMember, Team
from goat_mcp.core.context import ToolContext

_MEMBERSHIP = (
    "You are {name}, a member of the team {team}{purpose}. Write to others with SendMessage: a member's name, {lead} "
    "(who leads the team) or * for all. Mail reaches you between your turns. When you have said your last word you "
    "wait for mail, and {lead} is told what you said."
)
_OF_A_MEMBER = frozenset({"SendMessage"})
_NOTHING_YET = "There is nothing to do yet: answer `ready`, and work will come by mail."


@dataclass(frozen=True)
class AgentMembers:
    """The `StartMember` of a gateway."""

    spawner: Spawner

    async def __call__(self, member: NewMember, team: Team, mail: Mail, ctx: ToolContext) -> Member:
        purpose = f" ({team.description})" if team.description else ""
        told = _MEMBERSHIP.format(name=member.name, team=team.name, purpose=purpose, lead=LEAD)
        agent = await self.spawner.start(
            AgentRequest(
                title=f"{team.name}: {member.name}",
                prompt=f"{told}\n\n{member.prompt or _NOTHING_YET}",
                type_name=member.subagent_type,
                model=member.model,
                name=member.name,
                background=True,
                withheld=WITHHELD - _OF_A_MEMBER,
                granted=_OF_A_MEMBER,
                mail=mail,
            ),
            ctx,
        )
        return Member(member.name, agent.id, f"agent:{agent.id}")
