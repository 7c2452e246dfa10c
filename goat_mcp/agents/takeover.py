"""How an agent goes on at another replica when its own has ended: after its last recorded turn.

What a turn is about to do is recorded before it is done, so the next replica's model knows that it was begun: it may
have taken effect, and only the model can look. An agent that had not asked its model yet starts again.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import anyio
from pydantic import TypeAdapter

from goat_mcp.agents.agent_start import SpawnRequest
from goat_mcp.agents.records import AgentRecord, packed
from goat_mcp.commands.tasks.held_work import KEPT_S, RETRY_S, WAIT_S, HeldWork
from goat_mcp.commands.tasks.team_tasks import Sealed
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.rights import Rights
from goat_mcp.state.replicas.lease import Scripts

MAX_BYTES = 4 * 1024 * 1024
"""Of a transcript. A longer one is not shared, and its agent does not go on elsewhere."""
RESUME_PROMPT = (
    "The server that ran you has ended, and another one goes on with you. Calls without a result may have taken "
    "effect: look before you repeat one. What you started in the background is gone. Now go on with your task."
)
_TOO_LONG = "-"
_REQUEST = ("title", "prompt", "type_name", "model", "effort", "mode", "name", "isolation", "max_turns")
_RIGHTS = TypeAdapter(Rights)


class AgentTakeover:
    """`mode_of` is the permission mode of a session: the agent gets no wider one at a replica that does not know it."""

    def __init__(self, state: Scripts, held: HeldWork, seal: Sealed, mode_of: Callable[[str], str]) -> None:
        self._state = state
        self._held = held
        self._seal = seal
        self._mode_of = mode_of
        self._newest: dict[str, AgentRecord] = {}

    def restart_data(self, request: SpawnRequest, ctx: ToolContext) -> Mapping[str, Any]:
        """What another replica needs to start or resume it, as JSON."""
        rights = ctx.rights
        rights = replace(rights, modes=(*rights.modes, self._mode_of(ctx.client_session)))
        return {
            "request": {name: getattr(request, name) for name in _REQUEST},
            "session_key": ctx.session_key,
            "client_name": ctx.client_name,
            "rights": _RIGHTS.dump_python(rights, mode="json"),
        }

    def put(self, agent_id: str, record: AgentRecord | None) -> None:
        """Its newest state; recorded with the next calls, or at its end."""
        if record is not None and self._held.is_held(agent_id):
            self._newest[agent_id] = record

    async def begin_calls(self, agent_id: str) -> None:
        """Record that the calls of this turn begin. Raises `ToolError` if this replica may not make them."""
        if self._held.tasks:  # else no other replica can go on with it, or with the one that started it
            await self._held.check()
        if self._held.is_handed_over(agent_id):
            raise _taken(agent_id)
        if (record := self._newest.pop(agent_id, None)) is not None:
            await self._record(record)

    async def end(self, record: AgentRecord) -> None:
        """Record its last state, also for a resume at another replica."""
        self._newest.pop(record.facts.id, None)
        if self._held.is_held(record.facts.id):
            try:
                await self._record(record, wait_s=0)
            except ToolError:
                return  # its file here has it

    async def fetch(self, agent_id: str) -> bytes | None:
        """What is shared of it. Raises `ToolError`."""
        key = _key(agent_id)
        sealed: str | None = await self._state.run_script("return redis.call('GET', KEYS[1])", [key], [])
        text = None if sealed is None else self._seal.opened(key, sealed)
        if text == _TOO_LONG:
            raise ToolError(
                ErrorCode.IO,
                f"the transcript of agent {agent_id} is longer than {MAX_BYTES >> 20} MB, which replicas do not share",
                "Start a new agent, and tell it what this one was asked to do.",
            )
        return None if text is None else text.encode("ascii")

    async def _record(self, record: AgentRecord, wait_s: float = WAIT_S) -> None:
        agent_id = record.facts.id
        data = await anyio.to_thread.run_sync(packed, record, MAX_BYTES)
        text = _TOO_LONG if len(data) > MAX_BYTES else data.decode("ascii")
        sealed = self._seal.sealed(_key(agent_id), text)
        until_s = time.monotonic() + wait_s
        while True:
            try:
                is_ours = await self._held.write(agent_id, _key(agent_id), sealed, lasts_s=KEPT_S)
                break
            except ToolError:
                if time.monotonic() > until_s:
                    raise
                await anyio.sleep(RETRY_S)
        if not is_ours:
            raise _taken(agent_id)


def read_restart_data(data: Mapping[str, Any], principal: str) -> tuple[SpawnRequest, ToolContext]:
    """The start that `AgentTakeover.restart_data` has described, for this replica."""
    given = {name: value for name, value in data["request"].items() if name in _REQUEST}
    request = SpawnRequest(**given, background=True)
    ctx = ToolContext(
        call_id=secrets.token_hex(8),
        session_key=data["session_key"],
        principal=principal,
        client_name=data["client_name"],
        rights=_RIGHTS.validate_python(data["rights"]),
    )
    return request, ctx


def _taken(agent_id: str) -> ToolError:
    return ToolError(
        ErrorCode.CANCELLED, f"another replica goes on with agent {agent_id}", "Read it there with TaskOutput."
    )


def _key(agent_id: str) -> str:
    return f"agent:{agent_id}"
