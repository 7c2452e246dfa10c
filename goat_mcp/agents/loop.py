"""The engine that asks a chat model, runs the tools it calls, and asks again until it has given its final answer.

Rights, names and stored transcripts belong to the spawner; the calls go through the gateway's pipeline.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from goat_mcp.agents.engine import Activity, AgentJob, AgentOutcome, AgentState, OnEvent, add_counts
from goat_mcp.agents.tool_uses import ToolUse, read_tool_uses, refused, tool_result
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.model import CallingModel, ChatModel, ModelMessage, ModelReply, ModelRequest
from goat_mcp.core.result import Block, ToolResult, text_block

MAX_CALLS_A_TURN = 32
_MAX_EMPTY_REPLIES = 2
_LAST_TURN = (
    "This is your last turn: no more tools can be run. Write your final answer now, with what you have and what is "
    "still missing."
)
_GO_ON = "Your reply was cut off at the limit of its length. Go on exactly where it stops, without repeating anything."
_CUT_SHORT = "you were ended while this ran; look at what came of it before you repeat it"
_SAY_SOMETHING = "Your reply was empty. If you are done, write your final answer; otherwise go on."


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call an agent makes. `ctx` has the agent's rights and a call id of its own."""

    name: str
    arguments: dict[str, object]
    ctx: ToolContext


class CallTools(Protocol):
    """Runs the calls of one turn through the pipeline: in parallel if they do not conflict."""

    async def __call__(self, calls: Sequence[ToolCall]) -> Sequence[ToolResult]:
        """One result for each call, in order; failures are results too."""
        ...


@dataclass(frozen=True)
class AgentLoop:
    """`Engine` over a chat model. `is_last_turn` says before a turn that the model cannot be asked again after it.
    `is_local`: the model runs on a machine of its user."""

    model: ChatModel
    call: CallTools
    name: str
    outlives_calls: bool = True
    max_tokens: int = 8192
    is_last_turn: Callable[[], bool] = lambda: False
    resumes_from: Literal["messages", "token"] = "messages"
    is_local: bool = False

    async def run(self, job: AgentJob, on_event: OnEvent) -> AgentOutcome:
        run = _Run(self, job, on_event)
        return await run.run_to_end()


class _Run:
    """One job while it runs."""

    def __init__(self, loop: AgentLoop, job: AgentJob, on_event: OnEvent) -> None:
        self._loop = loop
        self._job = job
        self._on_event = on_event
        self._conversation = Conversation(job.earlier)
        self._tool_use_ids = self._conversation.tool_use_ids()
        self._turns_left = job.max_turns
        self._empty_replies = 0
        self._answered_as = ""

    async def run_to_end(self) -> AgentOutcome:
        self._conversation.add_text(self._job.prompt)
        while True:
            if self._job.mail is not None:
                self._add_mail(await self._job.mail.between_turns())
            notice = await self._turn()
            self._on_event(self._conversation.state())
            if notice is None:
                continue
            if self._job.mail is None or notice:
                return AgentOutcome(self._conversation.state(), (notice,) if notice else ())
            more = await self._job.mail.when_idle(self._conversation.text)
            if not more:
                return AgentOutcome(self._conversation.state())
            self._add_mail(more)
            self._turns_left = self._job.max_turns

    def _add_mail(self, mail: Sequence[str]) -> None:
        for text in mail:
            self._conversation.add_text(text)

    async def _turn(self) -> str | None:
        """Ask the model once and run its calls. Returns None to continue, `""` at the end, else why it ends early."""
        self._turns_left -= 1
        is_last = self._turns_left <= 0 or self._loop.is_last_turn()
        self._on_event(Activity(self._conversation.turns + 1, "thinking"))
        reply = await self._loop.model.reply(self._request(is_last=is_last))
        uses = read_tool_uses(reply, self._tool_use_ids)
        self._answered_as = reply.model
        was_cut = reply.stop_reason == "maxTokens"
        has_text = self._conversation.add_reply(reply, [use.block for use in uses])
        if uses:
            self._empty_replies = 0
            return await self._after_tools(uses, reply, is_last=is_last)
        if was_cut and has_text:
            if is_last:
                return "its answer was cut off at the limit of its length, and no turn was left to finish it"
            self._conversation.add_text(_GO_ON)
            return None
        if has_text:
            return ""
        return self._after_nothing(is_last=is_last)

    async def _after_tools(self, uses: Sequence[ToolUse], reply: ModelReply, *, is_last: bool) -> str | None:
        if reply.stop_reason == "maxTokens":
            # What was cut may look whole: half a file's content is valid too.
            why = f"not run: the reply was cut off at {self._loop.max_tokens} tokens; make smaller calls"
            self._conversation.add_results([refused(use, why) for use in uses])
            return "its last reply was cut off, and no turn was left" if is_last else None
        if is_last:
            self._conversation.add_results([refused(use, "not run: the agent had no turn left") for use in uses])
            used = self._conversation.turns
            return (
                f"it was stopped after {used} turn{'' if used == 1 else 's'} with work left to do; resume lets it go on"
            )
        # Should the agent be ended while they run, it is to know when it is resumed that they were begun.
        self._on_event(self._conversation.state([refused(use, _CUT_SHORT) for use in uses]))
        self._conversation.add_results(await self._results(uses))
        return None

    def _after_nothing(self, *, is_last: bool) -> str | None:
        self._empty_replies += 1
        if self._empty_replies < _MAX_EMPTY_REPLIES and not is_last:
            self._conversation.add_text(_SAY_SOMETHING)
            return None
        if self._conversation.text:
            return "it ended without a final message; this is the last thing it said"
        raise ToolError(
            ErrorCode.MODEL,
            f"{self._loop.name} answered with nothing",
            "Try another model (agent.model, or the field model), or ask for less in one go.",
        )

    def _request(self, *, is_last: bool) -> ModelRequest:
        job = self._job
        return ModelRequest(
            messages=self._conversation.messages,
            system=f"{job.system}\n\n{_LAST_TURN}" if is_last else job.system,
            tools=job.tools if job.tools_of_turn is None else job.tools_of_turn(),
            max_tokens=self._loop.max_tokens,
            model=job.model,
            effort=job.effort,
        )

    async def _results(self, uses: Sequence[ToolUse]) -> list[Block]:
        """One result for each use, in order. Invalid uses are answered here."""
        answers: dict[int, Block] = {}
        calls: dict[int, ToolCall] = {}
        for index, use in enumerate(uses):
            if use.problem:
                answers[index] = refused(use, use.problem)
            elif len(calls) >= MAX_CALLS_A_TURN:
                answers[index] = refused(use, f"not run: at most {MAX_CALLS_A_TURN} calls are run in one turn")
            else:
                calls[index] = ToolCall(use.name, use.arguments, self._call_context(use))
        if calls:
            shown = [uses[index].summary for index in calls]
            self._on_event(Activity(self._conversation.turns, "; ".join(shown)))
            results = await self._loop.call(list(calls.values()))
            for index, result in zip(calls, results, strict=True):
                answers[index] = tool_result(uses[index], result)
        return [answers[index] for index in range(len(uses))]

    def _call_context(self, use: ToolUse) -> ToolContext:
        # What it is asked as and what it answers as differ: `sonnet` may be `qwen3:8b` here.
        names = tuple(dict.fromkeys(filter(None, (self._job.model, self._answered_as))))
        return replace(
            self._job.ctx,
            call_id=secrets.token_hex(8),
            started_at_s=time.monotonic(),
            model=CallingModel(names, self._loop.is_local),
            message=self._conversation.last_reply(),
            model_call_id=use.given_id,
        )


class Conversation:
    """The messages of an agent and its model, and token counts. No message is empty, and the message after a tool use
    holds its result."""

    def __init__(self, earlier: Sequence[ModelMessage] = ()) -> None:
        self._messages = list(earlier)
        self.turns = 0
        self.text = ""
        """The newest text of the model; a reply that was cut off is joined with the next one."""
        self._goes_on = False
        self._input_tokens: int | None = None
        self._output_tokens: int | None = None

    @property
    def messages(self) -> tuple[ModelMessage, ...]:
        return tuple(self._messages)

    def add_text(self, text: str) -> None:
        # A message of its own: one that holds tool results may hold nothing else (MCP sampling).
        self._messages.append(ModelMessage("user", (text_block(text),)))

    def add_reply(self, reply: ModelReply, tool_uses: Sequence[Block]) -> bool:
        """Add a reply; `tool_uses` replace those in it. Returns whether it has text."""
        self.turns += 1
        self._input_tokens = add_counts(self._input_tokens, reply.input_tokens)
        self._output_tokens = add_counts(self._output_tokens, reply.output_tokens)
        said = [block for block in reply.content if block.get("type") == "text" and str(block.get("text", "")).strip()]
        others = [block for block in reply.content if block.get("type") not in ("text", "tool_use")]
        if said:
            text = "\n".join(str(block["text"]) for block in said)
            self.text = self.text + text if self._goes_on else text
        self._goes_on = reply.stop_reason == "maxTokens" and not tool_uses
        if said or tool_uses:
            self._messages.append(ModelMessage("assistant", (*others, *said, *tool_uses)))
        return bool(said)

    def add_results(self, results: Sequence[Block]) -> None:
        """The results of the last reply's tool uses."""
        self._messages.append(ModelMessage("user", tuple(results)))

    def last_reply(self) -> Mapping[str, Any]:
        """The model's last message as JSON."""
        message = next(message for message in reversed(self._messages) if message.role == "assistant")
        return {"role": message.role, "content": [dict(block) for block in message.content]}

    def tool_use_ids(self) -> set[str]:
        blocks = (block for message in self._messages for block in message.content)
        return {str(block.get("id")) for block in blocks if block.get("type") == "tool_use"}

    def state(self, results: Sequence[Block] = ()) -> AgentState:
        """The state now, or with `results` as the answer to the last reply."""
        return AgentState(
            turns=self.turns,
            text=self.text,
            messages=(*self.messages, ModelMessage("user", tuple(results))) if results else self.messages,
            input_tokens=self._input_tokens,
            output_tokens=self._output_tokens,
        )
