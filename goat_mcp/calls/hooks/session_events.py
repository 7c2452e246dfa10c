"""Hooks for the start and the end of a session, and for the end of an agent.

A session starts with its first call, on every transport alike, so no start waits for a hook; what hooks say goes with
the first result. It ends with the process. Agents and 2026-07-28 HTTP connections, which have no sessions, have none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from goat_mcp.calls.hooks.answer import HookAnswer
from goat_mcp.calls.hooks.runner import Programs, with_text
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.core.spec import ToolSpec

MAX_SESSIONS = 1000
ALL_ENDS_S = 1.5
"""For all hooks of all sessions, as in Claude Code: a server has to be gone soon after it is told to go."""
AGENT_END_S = 10.0
_NO_SESSION = "principal:"
_STARTUP, _OTHER = "startup", "other"


@dataclass(frozen=True)
class SessionEvents:
    """`around` is an extension: it begins sessions."""

    programs: Programs
    _begun: dict[str, anyio.Event] = field(default_factory=dict[str, anyio.Event])

    async def around(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        ctx: ToolContext,
        call_next: Callable[[Mapping[str, Any]], Awaitable[ToolResult]],
    ) -> ToolResult:
        said = await self._begin(ctx)
        result = await call_next(arguments)
        return with_text(result, said) if said else result

    async def end_all(self) -> None:
        """End every session, within `ALL_ENDS_S`."""
        with anyio.move_on_after(ALL_ENDS_S, shield=True):
            async with anyio.create_task_group() as group:
                for session_key in self._begun:
                    group.start_soon(self._end, session_key)
        self._begun.clear()

    async def agent_ended(self, agent_id: str, agent_type: str, last_words: str, ctx: ToolContext) -> tuple[str, ...]:
        """What hooks of SubagentStop say to the starter of the agent, which has ended in any case."""
        said: list[str] = []
        for hook in self.programs.of("SubagentStop", agent_type):
            data = {
                **self.programs.common("SubagentStop", ctx),
                "agent_id": agent_id,
                "agent_type": agent_type,
                "agent_transcript_path": "",
                "stop_hook_active": False,
                "last_assistant_message": last_words,
            }
            answer = await self.programs.ask(hook, data, timeout_s=AGENT_END_S)
            if not hook.observes:
                said += [text for text in (answer.block, answer.stop, answer.context, answer.message) if text]
        return tuple(said)

    async def _begin(self, ctx: ToolContext) -> str:
        """What hooks of SessionStart say, to the first call of a session. Calls beside it wait for them."""
        if ctx.rights.depth or ctx.session_key.startswith(_NO_SESSION):
            return ""
        if (begun := self._begun.get(ctx.session_key)) is not None:
            await begun.wait()
            return ""
        if len(self._begun) >= MAX_SESSIONS:
            self._begun.pop(next(iter(self._begun)))
        begun = self._begun[ctx.session_key] = anyio.Event()
        try:
            said: list[str] = []
            for hook in self.programs.of("SessionStart", _STARTUP):
                data = {**self.programs.common("SessionStart", ctx), "source": _STARTUP}
                answer = await self.programs.ask(hook, data, timeout_s=ctx.wait_left_s())
                if not hook.observes:
                    said += _texts(answer)
            return "\n".join(said)
        finally:
            begun.set()

    async def _end(self, session_key: str) -> None:
        ctx = ToolContext(call_id="", session_key=session_key)
        for hook in self.programs.of("SessionEnd", _OTHER):
            await self.programs.ask(hook, {**self.programs.common("SessionEnd", ctx), "reason": _OTHER})


def _texts(answer: HookAnswer) -> list[str]:
    return [text for text in (answer.context, answer.text, answer.message) if text]
