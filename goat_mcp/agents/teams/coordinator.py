"""Makes, addresses and ends teams. Members are background agents; starting one is handed in."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count
from typing import Any, Protocol

import anyio
import anyio.to_thread

from goat_mcp.agents.agent_start import SpawnRequest, agent_session_key
from goat_mcp.agents.agent_types import DEFAULT_TYPE
from goat_mcp.agents.engine import Mail
from goat_mcp.agents.spawner import StartedAgent
from goat_mcp.agents.teams.mailbox import Letter, Mailbox
from goat_mcp.agents.teams.members import MemberMail, post_letter, render_letter
from goat_mcp.agents.teams.team import EVERYONE, LEAD, Member, Team, usable_name
from goat_mcp.commands.tasks import TaskManager
from goat_mcp.commands.tasks.task import Task, TaskStatus
from goat_mcp.core.coercion import input_error
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult, text_block
from goat_mcp.core.rights import LOCAL
from goat_mcp.core.spec import ToolSpec
from goat_mcp.state.directory import StateDirectory

SHUTDOWN_GRACE_S = 10.0
MAX_IDLE_TEXT_CHARS = 4_000


class StartMember(Protocol):
    """Starts a background agent that reads `mail`; without a prompt it waits for some. Raises `ToolError` if it
    cannot."""

    async def __call__(self, request: SpawnRequest, team: Team, mail: Mail, ctx: ToolContext) -> StartedAgent: ...


@dataclass(frozen=True, slots=True)
class Delivery:
    """Who got a message, and who did not and why."""

    delivered: tuple[str, ...]
    failed: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CreatedTeam:
    """A new team; `failed` names the members that could not be started, and why."""

    team: Team
    failed: Mapping[str, str]


class TeamCoordinator:
    """The teams of one process: at most one for each principal."""

    def __init__(
        self,
        state: StateDirectory,
        scope: str,
        tasks: TaskManager,
        start_member: StartMember,
    ) -> None:
        self._state = state
        self._scope = scope
        self._tasks = tasks
        self._start_member = start_member
        self._teams: dict[str, Team] = {}
        self._mail: dict[tuple[str, str], MemberMail] = {}
        self._idle_watchers: dict[tuple[str, str], set[str]] = {}

    def team_of(self, principal: str) -> Team | None:
        return self._teams.get(principal)

    async def create(
        self, name: str, description: str, members: Sequence[SpawnRequest], ctx: ToolContext
    ) -> CreatedTeam:
        """Make a team and start its members, side by side. Raises `ToolError` if there is a team already."""
        if (team := self._teams.get(ctx.principal)) is not None:
            raise ToolError(
                ErrorCode.INPUT, f"team {team.name} is still there; there is one at a time", "Use it, or TeamDelete it."
            )
        check_name(name)
        folder = await anyio.to_thread.run_sync(partial(_new_folder, self._state, self._scope, ctx.principal, name))
        team = Team(name, description, ctx.principal, folder)
        self._teams[ctx.principal] = team
        failed: dict[str, str] = {}

        async def start(member: SpawnRequest) -> None:
            try:
                await self._start(team, member, ctx)
            except ToolError as problem:
                failed[member.name] = f"{problem.message} [{problem.code}]"

        try:
            async with team.roster, anyio.create_task_group() as group:
                for member in members:
                    group.start_soon(start, member)
        finally:
            team.complete.set()
        await anyio.to_thread.run_sync(team.save)
        return CreatedTeam(team, failed)

    async def join(self, team_name: str, request: SpawnRequest, ctx: ToolContext) -> StartedAgent:
        """Start one more member of the team that there is. Without a name it is called after its type.

        Raises `ToolError`: INPUT for another team's name or a name that is taken, PERMISSION for a caller that is no
        member, and what starting an agent raises.
        """
        team = self._teams.get(ctx.principal)
        if team is None or team.name != team_name:
            raise _unknown_team(team_name, team)
        if not ctx.rights.permits("SendMessage"):
            raise ToolError(
                ErrorCode.PERMISSION,
                f"team_name: you are no member of team {team.name}, so you cannot add to it",
                "Leave out team_name.",
            )
        async with team.roster:
            if self._teams.get(ctx.principal) is not team:
                raise _unknown_team(team_name, None)
            name = request.name or _free_name(team, request)
            if (member := team.members.get(name)) is not None and await self._is_live(team, member):
                raise ToolError(
                    ErrorCode.INPUT,
                    f"name: team {team.name} has a member {name!r} already",
                    f"Choose another name. Members: {', '.join(team.members)}.",
                )
            agent = await self._start(team, replace(request, name=name), ctx)
            await anyio.to_thread.run_sync(team.save)
            return agent

    async def _start(self, team: Team, member: SpawnRequest, ctx: ToolContext) -> StartedAgent:
        check_name(member.name)
        key = (team.principal, member.name)
        mail = MemberMail(Mailbox(team.folder, member.name), partial(self._on_idle, team, member.name))
        self._mail[key] = mail
        try:
            started = await self._start_member(member, team, mail, ctx)
        except BaseException:
            del self._mail[key]
            raise
        team.members[member.name] = Member(member.name, started.id, agent_session_key(started.id))
        return started

    async def send(
        self, to: str, letter_of: Callable[[str], Letter], ctx: ToolContext, *, notify_when_idle: bool = False
    ) -> Delivery:
        """Store a letter for each recipient. `letter_of` makes it from the sender's name.

        Raises `ToolError(DELIVERY)` where there is no team or nobody of that name.
        """
        team = self._team(ctx.principal)
        await team.complete.wait()
        sender = next((member.name for member in team.members.values() if member.session_key == ctx.session_key), LEAD)
        letter = letter_of(sender)
        recipients = await self._recipients(team, to, sender)
        delivered: list[str] = []
        failed: dict[str, str] = {}
        for name in recipients:
            problem = await self._deliver(team, name, letter)
            if problem:
                failed[name] = problem
            else:
                delivered.append(name)
                if notify_when_idle and name != LEAD:
                    self._idle_watchers.setdefault((team.principal, name), set()).add(sender)
        return Delivery(tuple(delivered), failed)

    async def delete(self, name: str, ctx: ToolContext, *, force: bool) -> tuple[Team, tuple[str, ...]] | None:
        """End the principal's team. Returns it and the members that had to be stopped; None where there is none.

        Raises `ToolError` for another name, or for live members without `force`.
        """
        team = self._teams.get(ctx.principal)
        if team is None:
            return None
        if name and name != team.name:
            raise ToolError(ErrorCode.INPUT, f"team_name: the team is called {team.name}, not {name}", "Correct it.")
        async with team.roster:
            if self._teams.get(ctx.principal) is not team:
                return None
            live = await self._live(team)
            if live and not force:
                raise ToolError(
                    ErrorCode.BUSY,
                    f"team {team.name} has members that still work or wait: {', '.join(live)}",
                    "Ask them to end with SendMessage (type shutdown_request), or delete with force=true.",
                )
            stopped = await self._end(team, live)
            self._teams.pop(ctx.principal, None)
        for member in team.members:
            self._mail.pop((team.principal, member), None)
            self._idle_watchers.pop((team.principal, member), None)
        return team, stopped

    async def with_letters(self, spec: ToolSpec, result: ToolResult, ctx: ToolContext) -> ToolResult:
        """The result of a call; with that of a lead's built-in call comes what members wrote to the lead."""
        team = self._teams.get(ctx.principal)
        if team is None or ctx.rights.depth or spec.toolset == "upstream":
            return result
        mailbox = Mailbox(team.folder, LEAD)
        if not mailbox.has_unread():
            return result
        letters = await anyio.to_thread.run_sync(mailbox.take)
        blocks = tuple(text_block(render_letter(letter)) for letter in letters)
        # Text that is not in the facts: they must not stand in for it.
        return replace(result, content=(*result.content, *blocks), facts_replace_text=False)

    async def _on_idle(self, team: Team, name: str, text: str) -> None:
        said = text if len(text) <= MAX_IDLE_TEXT_CHARS else text[:MAX_IDLE_TEXT_CHARS] + " [...]"
        letter = Letter(name, "idle", said, summary=f"{name} is idle")
        for reader in {LEAD, *self._idle_watchers.pop((team.principal, name), set())}:
            await self._deliver(team, reader, letter)

    async def _deliver(self, team: Team, name: str, letter: Letter) -> str:
        """Returns why it failed, or nothing."""
        try:
            await post_letter(Mailbox(team.folder, name), letter)
        except OSError as problem:
            return f"could not be stored: {problem.strerror or problem}"
        if (mail := self._mail.get((team.principal, name))) is not None:
            mail.arrived()
        return ""

    async def _recipients(self, team: Team, to: str, sender: str) -> list[str]:
        live = await self._live(team)
        if to == EVERYONE:
            everyone = [name for name in (LEAD, *live) if name != sender]
            if not everyone:
                raise ToolError(ErrorCode.DELIVERY, "there is nobody to write to", "Start members first.")
            return everyone
        if to == LEAD:
            return [LEAD]
        member = team.by_any_name(to)
        if member is None:
            raise ToolError(
                ErrorCode.DELIVERY,
                f"to: nobody in team {team.name} is called {to[:100]!r}",
                f"Members: {', '.join([LEAD, *team.members])}; * is all of them.",
            )
        if member.name not in live:
            raise ToolError(
                ErrorCode.DELIVERY,
                f"{member.name} has ended and reads no more mail",
                f"Go on with it through Agent: resume={member.agent_id}.",
            )
        return [member.name]

    async def _live(self, team: Team) -> list[str]:
        return [name for name, member in team.members.items() if await self._is_live(team, member)]

    async def _is_live(self, team: Team, member: Member) -> bool:
        task = await self._task(team, member)
        return task is not None and task.status is TaskStatus.RUNNING

    async def _task(self, team: Team, member: Member) -> Task | None:
        try:
            return await self._tasks.find(member.agent_id, team.principal)
        except ToolError:
            return None

    async def _end(self, team: Team, live: Sequence[str]) -> tuple[str, ...]:
        """Ask the members to end, wait `SHUTDOWN_GRACE_S` at most, then stop them. Returns those stopped."""
        request = Letter(LEAD, "shutdown_request", "The team is being dissolved.")
        tasks = {name: task for name in live if (task := await self._task(team, team.members[name])) is not None}
        for name in tasks:
            await self._deliver(team, name, request)
        with anyio.move_on_after(SHUTDOWN_GRACE_S):
            async with anyio.create_task_group() as group:
                for task in tasks.values():
                    group.start_soon(task.work.wait, SHUTDOWN_GRACE_S)
        left = {name: task for name, task in tasks.items() if task.status is TaskStatus.RUNNING}
        async with anyio.create_task_group() as group:
            for task in left.values():
                group.start_soon(self._tasks.stop, task)
        return tuple(left)

    def _team(self, principal: str) -> Team:
        team = self._teams.get(principal)
        if team is None:
            raise ToolError(ErrorCode.DELIVERY, "there is no team", "Make one with TeamCreate.")
        return team


def check_name(name: str) -> None:
    """Raises `ToolError(INPUT)` for one that a member cannot have."""
    try:
        usable_name(name)
    except ValueError as problem:
        raise input_error([("name", str(problem))]) from None


def _unknown_team(name: str, team: Team | None) -> ToolError:
    step = f"Your team is called {team.name}." if team else "Make it with TeamCreate, or leave out team_name."
    return ToolError(ErrorCode.INPUT, f"team_name: there is no team called {name[:80]!r}", step)


def _free_name(team: Team, request: SpawnRequest) -> str:
    """The name that a resumed member had; for others the type's, with a number if that is taken."""
    if (earlier := team.by_any_name(request.resume)) is not None:
        return earlier.name
    stem = request.type_name or DEFAULT_TYPE
    numbered = (f"{stem}-{number}" for number in count(2))
    return next(name for name in chain([stem], numbered) if name not in team.members)


def _new_folder(state: StateDirectory, scope: str, principal: str, name: str) -> Any:
    """A folder for a team's mail, below one of the principal's own; what an earlier team of that name left is kept
    beside it."""
    import time

    # No team is called so: names begin with a letter or a digit.
    own = () if principal == LOCAL else (f".{hashlib.sha256(principal.encode('utf-8', 'surrogatepass')).hexdigest()}",)
    folder = state.folder("teams", scope, *own) / name
    if folder.exists():
        folder.rename(folder.with_name(f"{name}.{int(time.time() * 1000)}"))
    return state.folder("teams", scope, *own, name)
