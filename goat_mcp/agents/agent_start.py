"""One start of an agent: the request, and the result of merging it with type, settings and an earlier run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from goat_mcp.agents.agent_task import AgentTask
from goat_mcp.agents.agent_types import AgentType
from goat_mcp.agents.engine import AgentJob, AgentState, Mail
from goat_mcp.agents.engines import EngineChoice
from goat_mcp.agents.inbox import Inbox
from goat_mcp.agents.options import MAX_DEPTH, AgentOptions
from goat_mcp.agents.records import AgentFacts, AgentRecord
from goat_mcp.agents.worktree import Worktree
from goat_mcp.catalog.registry import AnyTool
from goat_mcp.core.context import ToolContext, no_progress
from goat_mcp.core.model import ModelTool
from goat_mcp.core.rights import Rights

_TITLE_CHARS = 200
_SESSION_PREFIX = "agent:"
EXCLUDED_TOOLS = frozenset({"AskUserQuestion", "ExitPlanMode", "TodoWrite", "TeamCreate", "SendMessage", "TeamDelete"})
"""Only whoever talks with the user may use these; the to-do list is the user's own, and an agent would overwrite it."""
_ANSWER = (
    "You work on your own: nobody answers questions. Whoever started you sees your last message and nothing else, so "
    "it has to hold all they asked for: what you found or did, absolute paths, and what did not work."
)


def agent_session_key(agent_id: str) -> str:
    """The session key of an agent's own calls."""
    return _SESSION_PREFIX + agent_id


def agent_id_of(session_key: str) -> str:
    """The id of the agent that a call comes from; empty for a client's own call."""
    return session_key.removeprefix(_SESSION_PREFIX) if session_key.startswith(_SESSION_PREFIX) else ""


@dataclass(frozen=True, kw_only=True)
class SpawnRequest:
    """Empty fields leave the choice to the type and the settings.

    `resume` is the id or name of an agent that has ended. With `background` it outlives its call. It never has the
    `excluded_tools`; it has the `granted_tools` whatever its type says, and nobody is asked about them. `mail` is what
    others send it while it works.
    """

    title: str
    prompt: str
    type_name: str = ""
    model: str = ""
    effort: str = ""
    mode: str = ""
    name: str = ""
    isolation: str = ""
    resume: str = ""
    agent_id: str = ""
    """Of one that another replica had accepted, and not begun."""
    max_turns: int | None = None
    background: bool = False
    excluded_tools: frozenset[str] = EXCLUDED_TOOLS
    granted_tools: frozenset[str] = frozenset()
    mail: Mail | None = None
    inbox: Inbox | None = None
    """Messages and requests of others, if the agent has no mail of a team."""


@dataclass(frozen=True, kw_only=True)
class AgentStart:
    """`ctx` is the context of the call that starts the agent. `record` is None unless the agent is resumed."""

    request: SpawnRequest
    ctx: ToolContext
    type: AgentType
    chosen: EngineChoice
    agent_id: str
    record: AgentRecord | None
    options: AgentOptions

    @property
    def name(self) -> str:
        return self.request.name or (self.record.facts.name if self.record is not None else "")

    @property
    def isolation(self) -> str:
        earlier = self.record.facts.isolation if self.record is not None else ""
        return self.request.isolation or earlier or self.type.isolation

    @property
    def session_key(self) -> str:
        """The same after each resume, so the files it has read and the directory of its shell stay known."""
        return agent_session_key(self.agent_id)

    @property
    def model(self) -> str:
        return self.request.model or self.type.model or self.chosen.default_model

    @property
    def notices(self) -> tuple[str, ...]:
        """For whoever starts the agent."""
        other = self.chosen.stands_in_for(self.model)
        return (
            (f"model {self.model}: agent.models.{self.model} is not set, so {other} (agent.model) ran it",)
            if other
            else ()
        )

    def rights(self, worktree: Worktree | None) -> Rights:
        """The rights of the call, narrowed."""
        callers = self.ctx.rights
        too_deep: frozenset[str] = frozenset({"Agent", "agents__spawn"} if callers.depth + 1 >= MAX_DEPTH else ())
        return callers.narrowed(
            allowed=self.type.tools,
            denied=self.type.denied | self.request.excluded_tools | too_deep,
            modes=(self.type.mode, self.request.mode),
            client_session=self.ctx.session_key,
            writes_below=worktree.directory if worktree is not None else "",
            granted=self.request.granted_tools,
        )

    def job(
        self,
        work: AgentTask,
        worktree: Worktree | None,
        primary: Path,
        tools: Callable[[Rights], Sequence[AnyTool]],
        tools_of_turn: Callable[[ToolContext], Sequence[AnyTool]] | None = None,
    ) -> AgentJob:
        """`primary` is the workspace's first directory; `tools` lists the tools that rights permit."""
        rights = self.rights(worktree)
        directory = Path(rights.writes_below) if rights.writes_below else primary
        host = self.chosen.host
        ctx = replace(
            self.ctx,
            session_key=self.session_key,
            progress=no_progress,
            wants_progress=False,
            ask=work.elicit_while_attended(self.ctx.ask if host is None else host.ask),
            host_model=host,
            rights=rights,
            meta={},
            message=None,
            restart=None,
            client_waits_since_s=None,
        )
        return AgentJob(
            agent_id=self.agent_id,
            prompt=self.request.prompt,
            system=system_prompt(self.type, directory, worktree),
            directory=directory,
            ctx=ctx,
            max_turns=self._max_turns(),
            title=self.request.title,
            tools=_for_model(tools(rights)),
            tools_of_turn=None if tools_of_turn is None else lambda: _for_model(tools_of_turn(ctx)),
            model=self.model,
            effort=self.request.effort or self.type.effort,
            earlier=self.record.messages if self.record is not None else (),
            resume_token=self.record.facts.resume_token if self.record is not None else "",
            mail=self.request.mail or self.request.inbox,
        )

    def to_record(self, state: AgentState, worktree: Worktree | None, workspace: str) -> AgentRecord | None:
        """What a resume needs; None if the agent has done nothing to continue from."""
        if not state.messages and not state.resume_token:
            return None
        facts = AgentFacts(
            id=self.agent_id,
            principal=self.ctx.principal,
            workspace=workspace,
            type=self.type.name,
            title=self.request.title[:_TITLE_CHARS],
            name=self.name,
            resume_token=state.resume_token,
            isolation="worktree" if self.isolation == "worktree" else "",
            worktree=worktree.stored() if worktree is not None else None,
        )
        return AgentRecord(facts, state.messages)

    def _max_turns(self) -> int:
        limits = (self.request.max_turns, self.type.max_turns, self.options.max_turns)
        return min(limit for limit in limits if limit is not None)


def _for_model(tools: Sequence[AnyTool]) -> tuple[ModelTool, ...]:
    return tuple(ModelTool(tool.spec.name, tool.spec.description, tool.spec.input_schema) for tool in tools)


def system_prompt(type: AgentType, directory: Path, worktree: Worktree | None) -> str:
    """The prompt of the type, then where the agent works and who reads its answer."""
    where = f"You work in {directory}. File tools take absolute paths."
    if worktree is not None:
        where = (
            f"You work in {directory}, a git worktree of its own on branch {worktree.branch}, made from the last "
            "commit. Write absolute paths below it, and run commands there; files elsewhere can be read, not changed. "
            "A path that you were given in the main checkout stands for the same file in your worktree."
        )
    return "\n\n".join(part for part in (type.prompt, where, _ANSWER) if part)
