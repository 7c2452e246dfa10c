"""What an agent is told and asked while it lives. Who may tell it something is decided above."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from goat_mcp.agents.engine import AgentOutcome
from goat_mcp.agents.marked_mail import marked
from goat_mcp.agents.question import AgentQuestion
from goat_mcp.core.errors import ErrorCode, ToolError

REST_S = 1800.0
"""An agent that is asked nothing for so long ends."""
MAX_UNREAD = 100
_ASKED = (
    "This is a request: what you say when you next have nothing left to do is the answer, and goes to {sender} alone."
)


class Inbox:
    """A `Mail`. Messages reach the agent between its turns, requests one at a time and only when it rests, so that
    each has an answer of its own.

    `stays`: the agent waits for more when it has nothing left to do; otherwise it ends, and can be asked nothing.
    `first` is the question that it was started with.
    """

    def __init__(self, *, stays: bool = False, first: AgentQuestion | None = None) -> None:
        self.stays = stays
        self.is_resting = False
        self.is_closed = False
        self._messages: list[str] = []
        self._questions: list[tuple[AgentQuestion, str]] = []
        self._answering = first
        self._came = anyio.Event()

    def tell(self, message: str, sender: str) -> None:
        """Raises `ToolError`: DELIVERY for one that has ended, BUSY where too much is unread."""
        self._check_room(len(self._messages))
        self._messages.append(marked("mail", f"from {sender}; an agent, not the user", message))
        self._came.set()

    def ask(self, question: AgentQuestion, sender: str) -> None:
        """Raises as `tell`."""
        self._check_room(len(self._questions))
        text = f"{_ASKED.format(sender=sender)}\n{marked('request', f'from {sender}; not the user', question.text)}"
        self._questions.append((question, text))
        self._came.set()

    def _check_room(self, unread: int) -> None:
        if self.is_closed:
            raise ToolError(ErrorCode.DELIVERY, "the agent has ended", "List the agents to see who is there.")
        if unread >= MAX_UNREAD:
            raise ToolError(ErrorCode.BUSY, f"{unread} messages to this agent are unread", "Wait until it reads them.")

    async def between_turns(self) -> Sequence[str]:
        messages, self._messages = self._messages, []
        return messages

    async def at_rest(self, text: str) -> Sequence[str]:
        """`text` answers what it was asked. Nothing comes back from an agent that is to end."""
        if self._answering is not None:
            self._answering.end(answer=text)
            self._answering = None
        self.is_resting = True
        try:
            with anyio.move_on_after(REST_S):
                while True:
                    self._came = anyio.Event()
                    if self._messages:
                        return await self.between_turns()
                    if (asked := self._next_question()) is not None or not self.stays:
                        return [asked] if asked is not None else []
                    await self._came.wait()
            return []
        finally:
            self.is_resting = False

    def _next_question(self) -> str | None:
        while self._questions:
            question, text = self._questions.pop(0)
            if question.is_open:
                self._answering = question
                return text
        return None

    def close(self, outcome: AgentOutcome | None) -> None:
        """The agent has ended; None where not by itself. Nothing stays unanswered."""
        self.is_closed = True
        if self._answering is not None and outcome is not None and outcome.state.text:
            self._answering.end(answer=outcome.state.text)
        left = [question for question, _ in self._questions]
        for question in (*left, *([self._answering] if self._answering is not None else [])):
            question.end(problem="the agent ended before it answered")
        self._questions.clear()
