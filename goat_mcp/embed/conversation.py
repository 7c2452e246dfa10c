"""goat-mcp inside your own program: tool definitions for a model, and its tool calls run. No MCP is spoken here.

What OpenAI's format looks like is `goat_mcp.catalog.openai_format`'s business.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from goat_mcp.calls.batch import INTERRUPTED
from goat_mcp.calls.hooks import Hooks
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.calls.pipeline import CallRequest
from goat_mcp.catalog.openai_format import assistant_message, definitions, read_tool_calls, tool_message
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Ask, nobody_to_ask
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.model import ChatModel
from goat_mcp.core.progress import RisingProgress
from goat_mcp.core.result import ToolResult, error_result
from goat_mcp.embed.toolbox import ToolBox
from goat_mcp.gateway.build.program_tools import ProgramTools
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import Settings, settings_of
from goat_mcp.state.directory import StateDirectory


@dataclass(frozen=True)
class ToolMessages:
    """The answers to one reply's `tool_calls`, one message for each, in the order of the calls.

    `stopped_by`: `interrupted` where a person refused a call (hand over to them instead of going on), `cancelled`
    where you did, else None.
    """

    messages: list[dict[str, Any]]
    stopped_by: str | None = None

    @property
    def interrupted(self) -> bool:
        return self.stopped_by == INTERRUPTED


@dataclass(frozen=True)
class CallProgress:
    """How far a call is. `done` rises with each report of a call; `total`, if it is known, is what `done` will come to.

    `call_id` is the model's id of the call in `EmbeddedTools.run`, empty in `call`. The first report says that the tool
    has started, the last that it has ended, and after how many seconds; a call that is refused has none.
    """

    call_id: str
    tool: str
    done: float
    total: float | None
    message: str


OnProgress = Callable[[CallProgress], Awaitable[None]]


@dataclass(frozen=True)
class EmbeddedTools:
    """The tools of one running gateway for one conversation; `open_tools` makes it.

    Calls share what a client's session shares: what was read, the shell's directory, approvals.
    """

    gateway: Gateway
    ask: Ask = nobody_to_ask
    host_model: ChatModel | None = None
    on_progress: OnProgress | None = None
    session_key: str = field(default_factory=lambda: f"embedded:{secrets.token_hex(8)}")

    async def definitions(self) -> list[dict[str, Any]]:
        """The catalog for the `tools` parameter of a chat completion.

        Upstreams that were never seen are waited for, 3 s at most.
        """
        await self.gateway.upstreams.first_list()
        listed = {tool.spec.name: tool.spec for tool in self.gateway.catalog.for_models()}
        return definitions(self.gateway.on_demand.preflight().begin_step(self._context(), listed).values())

    async def run(
        self,
        tool_calls: Sequence[Any] | None,
        *,
        message: Mapping[str, Any] | None = None,
        cancelled: anyio.Event | None = None,
    ) -> ToolMessages:
        """Run the `tool_calls` of a model's message: in parallel where they do not conflict.

        Tools and hooks see the `message` as `ctx.message`; without it, one that holds the calls and nothing else.

        A failed call is a message whose text begins with `Error: `. Where a person refuses one, those that have not
        begun are not run and say so; setting `cancelled` ends all that is left. Every call gets its message.
        Raises `ToolError(INPUT)` before anything runs where a call could not be answered, having no id.
        """
        calls = read_tool_calls(tool_calls)
        shown = message if message is not None else assistant_message(tool_calls)
        requests = [
            CallRequest(call.name, call.arguments, self._context(call.name, message=shown, model_call_id=call.id))
            for call in calls
            if call.problem is None
        ]
        outcome = await self.gateway.call_all(requests, cancelled=cancelled)
        results = iter(outcome.results)
        return ToolMessages(
            [
                tool_message(call.id, next(results) if call.problem is None else error_result(call.problem))
                for call in calls
            ],
            outcome.stopped_by,
        )

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Run one call. A failure is a result with `is_error`, whatever its cause."""
        try:
            return await self.gateway.call(name, arguments, self._context(name))
        except UpstreamError as refused:
            return error_result(ToolError(ErrorCode.UPSTREAM, f"{refused.message} (JSON-RPC {refused.code})"))

    def _context(self, tool: str = "", **known: Any) -> ToolContext:
        ctx = ToolContext(
            call_id=secrets.token_hex(8),
            session_key=self.session_key,
            ask=self.ask,
            host_model=self.host_model,
            **known,
        )
        if (on_progress := self.on_progress) is None:
            return ctx

        async def report(
            done: float,
            total: float | None = None,
            message: str | None = None,
            *,
            meta: Mapping[str, Any] | None = None,
        ) -> None:
            try:
                await on_progress(CallProgress(ctx.model_call_id, tool, done, total, message or ""))
            except Exception as bug:  # the work is done all the same
                self.gateway.telemetry.unexpected(ctx.call_id, f"{tool} (the progress callback)", bug)

        return ctx.changed(progress=RisingProgress(report), wants_progress=True)


@asynccontextmanager
async def open_tools(
    settings: Settings | Mapping[str, Any] | None = None,
    *,
    ask: Ask = nobody_to_ask,
    host_model: ChatModel | None = None,
    progress: OnProgress | None = None,
    state_directory: Path | None = None,
    hooks: Hooks | None = None,
    tools: ToolBox | None = None,
) -> AsyncGenerator[EmbeddedTools]:
    """Start a gateway, and end all it started when the block ends.

    `settings` is the tree of a settings file, e.g. `{"workspace": ["."], "catalog": {"allow": ["preset:core"]}}`;
    neither the user's own file nor the environment is read. `ask` puts a form to your user; without it whatever needs
    an approval is refused and the answer names the rule that would allow it. `host_model` is a model that tools may
    use (WebFetch's prompt, Agent). `progress` is awaited with each report of a running call. `hooks` are functions that
    run before and after each call. `tools` are your own, beside all others. Raises `BrokenSettings`, and `NameTaken` if
    a tool of yours has the name of another.
    """
    if not isinstance(settings, Settings):
        settings = settings_of(settings or {}, "the program")
    state = StateDirectory(state_directory) if state_directory is not None else None
    own = None if tools is None else ProgramTools(tools.registry, tools.allowed, tools.disabled)
    gateway = Gateway(settings, approval=Approval.ELICIT, state=state, hooks=hooks, tools=own, has_queue=False)
    failed: Exception | None = None
    async with gateway.running():
        try:
            yield EmbeddedTools(gateway, ask, host_model, progress)
        except Exception as problem:
            # Leaving the gateway's task group with it would wrap it into an exception group.
            failed = problem
    if failed is not None:
        raise failed
