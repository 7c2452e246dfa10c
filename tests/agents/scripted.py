"""A chat model that replies as told, and a gateway whose agents it runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError
from goat_mcp.core.model import ModelMessage, ModelReply, ModelRequest
from goat_mcp.core.result import Block, ToolResult, text_block
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory

BOUND_S = 60.0


def says(text: str, *uses: Block, stop_reason: str = "", tokens: tuple[int, int] | None = (10, 2)) -> ModelReply:
    """A reply of text, tool uses, or both."""
    content = (*([text_block(text)] if text else []), *uses)
    return ModelReply(
        content,
        stop_reason or ("toolUse" if uses else "endTurn"),
        "scripted",
        *(tokens or (None, None)),
    )


def use(name: str, arguments: Any = None, id: str = "") -> Block:
    return {"type": "tool_use", "id": id, "name": name, "input": {} if arguments is None else arguments}


Step = ModelReply | ToolError | Callable[[ModelRequest], ModelReply] | anyio.Event


@dataclass
class ScriptedModel:
    """Replies with its steps in order: a reply, an error, or what a function makes of the request. An event is waited
    for first. Past the end it says `done`."""

    steps: list[Step] = field(default_factory=list[Step])
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])
    takes_tools: bool = True
    asked: anyio.Event = field(default_factory=anyio.Event)

    async def reply(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        self.asked.set()
        step = self.steps.pop(0) if self.steps else says("done")
        while isinstance(step, anyio.Event):
            await step.wait()
            step = self.steps.pop(0) if self.steps else says("done")
        if isinstance(step, ToolError):
            raise step
        return step if isinstance(step, ModelReply) else step(request)


@dataclass
class Conversations:
    """One model for several agents at a time: each conversation, known by its prompt, has a script of its own."""

    scripts: dict[str, ScriptedModel]
    takes_tools: bool = True

    async def reply(self, request: ModelRequest) -> ModelReply:
        return await self.scripts[prompt_of(request)].reply(request)


def prompt_of(request: ModelRequest) -> str:
    return str(request.messages[0].content[0]["text"])


def results_in(message: ModelMessage) -> list[str]:
    """The texts of the tool results in a message."""
    return [
        "\n".join(str(inner.get("text", f"<{inner['type']}>")) for inner in block["content"])
        for block in message.content
        if block["type"] == "tool_result"
    ]


@dataclass
class Ground:
    """A running gateway over a workspace, whose endpoint is a scripted model."""

    gateway: Gateway
    workspace: Path
    ctx: ToolContext

    async def agent(self, prompt: str = "Do it.", ctx: ToolContext | None = None, **fields: Any) -> ToolResult:
        with anyio.fail_after(BOUND_S):
            return await self.call("Agent", {"description": "a task", "prompt": prompt, **fields}, ctx)

    async def call(self, name: str, arguments: Mapping[str, Any], ctx: ToolContext | None = None) -> ToolResult:
        ctx = self.ctx if ctx is None else ctx
        return await self.gateway.call(name, arguments, replace(ctx, started_at_s=fresh_time()))

    def use(self, *models: Any) -> None:
        """Who answers the agents that begin from now on, one after the other; the last one all that follow."""
        answer_with(self.gateway, *models)

    def left_behind(self) -> Sequence[str]:
        """Files in the state directory that belong to agents and tasks."""
        folders = ("agents", "tasks", "spill")
        state = self.gateway.state.path
        return sorted(path.name for folder in folders for path in (state / folder).rglob("*") if path.is_file())


def answer_with(gateway: Gateway, *models: Any) -> None:
    left = list(models)

    def endpoint(overrides: object = None) -> Any:
        return left.pop(0) if len(left) > 1 else left[0]

    gateway.models.endpoint = endpoint


def fresh_time() -> float:
    import time

    return time.monotonic()


@asynccontextmanager
async def ground(
    folder: Path, model: Any = None, *, approval: Approval = Approval.HOST, **settings: Any
) -> AsyncGenerator[Ground]:
    workspace = folder / "ws"
    workspace.mkdir(parents=True, exist_ok=True)
    # Processes that agents start are looked for by the ids they have on this machine: no sandbox around them.
    bare = {
        "workspace": [str(workspace)],
        "mode": "bypassPermissions",
        "sandbox": "off",
        "approval": {"wait_s": 0},
    }
    tree = Settings.model_validate({**bare, **settings})
    gateway = Gateway(tree, approval=approval, state=StateDirectory(folder / "state"))
    if model is not None:
        answer_with(gateway, model)
    async with gateway.running():
        yield Ground(gateway, workspace, ToolContext(call_id="c", session_key="stdio"))
