"""Members as background agents: how one is started, and how it reads its mail (`agents.engine.Mail`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import anyio
import anyio.to_thread

from goat_mcp.agents.agent_start import EXCLUDED_TOOLS, SpawnRequest
from goat_mcp.agents.engine import Mail
from goat_mcp.agents.inbox import mark_untrusted
from goat_mcp.agents.spawner import Spawner, StartedAgent
from goat_mcp.agents.teams.mailbox import Letter, Mailbox
from goat_mcp.agents.teams.team import LEAD, Team
from goat_mcp.core.context import ToolContext

_MEMBERSHIP = (
    "You are {name}, a member of the team {team}{purpose}. Write to others with SendMessage: a member's name, {lead} "
    "(who leads the team) or * for all. Mail reaches you between your turns. When you have said your last word you "
    "wait for mail, and {lead} is told what you said."
)
_MEMBER_TOOLS = frozenset({"SendMessage"})
_NOTHING_YET = "There is nothing to do yet: answer `ready`, and work will come by mail."
_ASKED_TO_END = (
    "You are asked to end: finish what you must, tell {sender} with SendMessage (type shutdown_response) what is done "
    "and what is not, and stop."
)


@dataclass(frozen=True)
class AgentMembers:
    """The `StartMember` of a gateway."""

    spawner: Spawner

    async def __call__(self, request: SpawnRequest, team: Team, mail: Mail, ctx: ToolContext) -> StartedAgent:
        purpose = f" ({team.description})" if team.description else ""
        membership = _MEMBERSHIP.format(name=request.name, team=team.name, purpose=purpose, lead=LEAD)
        member = replace(
            request,
            title=f"{team.name}: {request.title or request.name}",
            prompt=f"{membership}\n\n{request.prompt or _NOTHING_YET}",
            background=True,
            excluded_tools=EXCLUDED_TOOLS - _MEMBER_TOOLS,
            granted_tools=_MEMBER_TOOLS,
            mail=mail,
        )
        return await self.spawner.start(member, ctx)


class MemberMail:
    """One member's side of its mailbox. `on_idle` is called each time the member has nothing left to do."""

    def __init__(self, mailbox: Mailbox, on_idle: Callable[[str], Awaitable[None]]) -> None:
        self._mailbox = mailbox
        self._on_idle = on_idle
        self._has_mail = anyio.Event()
        self._is_ending = False

    def arrived(self) -> None:
        """A letter was stored."""
        self._has_mail.set()

    async def between_turns(self) -> Sequence[str]:
        if not self._has_mail.is_set():
            return ()
        return await self._read()

    async def when_idle(self, text: str) -> Sequence[str]:
        """Waits for mail. Returns nothing if the member was asked to end."""
        if mail := await self.between_turns():
            return mail
        if self._is_ending:
            return ()
        await self._on_idle(text)
        while True:
            await self._has_mail.wait()
            if mail := await self._read():
                return mail

    async def _read(self) -> Sequence[str]:
        self._has_mail = anyio.Event()
        letters = await anyio.to_thread.run_sync(self._mailbox.take)
        self._is_ending = self._is_ending or any(letter.kind == "shutdown_request" for letter in letters)
        return [render_letter(letter) for letter in letters]


def render_letter(letter: Letter) -> str:
    """A letter between marks that its text cannot forge; they name its author. It has none of the user's authority."""
    what = {"broadcast": " to everyone", "shutdown_request": " (a request to end)", "idle": " (is waiting for work)"}
    about = f"from {letter.sender}{what.get(letter.kind, '')}; a team member, not the user"
    body = _ASKED_TO_END.format(sender=letter.sender) if letter.kind == "shutdown_request" else ""
    return mark_untrusted("mail", about, letter.text, body)


async def post_letter(mailbox: Mailbox, letter: Letter) -> None:
    """Post off the event loop. Raises `OSError`."""
    await anyio.to_thread.run_sync(partial(mailbox.post, letter))
