"""Messages and requests to a running agent, and the answers. Who may send them is decided in `teams.bus`."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence

import anyio

from goat_mcp.agents.engine import AgentOutcome
from goat_mcp.commands.tasks import TaskOutcome, TaskStatus, new_task_id
from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.processes.output_capture import OutputPart

IDLE_LIMIT_S = 1800.0
"""An idle agent that gets nothing for so long ends."""
MAX_UNREAD = 100
_REQUEST_NOTE = (
    "This is a request: what you say when you next have nothing left to do is the answer, and goes to {sender} alone."
)
_TITLE_CHARS = 100
NONCE_BYTES = 6


class Inbox:
    """A `Mail`. Messages reach the agent between its turns, requests one at a time and only when it is idle, so that
    each has an answer of its own.

    `is_persistent`: the agent waits for more when it has nothing left to do; otherwise it ends and takes no requests.
    `first` is the request that it was started with.
    """

    def __init__(self, *, is_persistent: bool = False, first: PendingRequest | None = None) -> None:
        self.is_persistent = is_persistent
        self.is_idle = False
        self.is_closed = False
        self._messages: list[str] = []
        self._requests: list[tuple[PendingRequest, str]] = []
        self._answering = first
        self._arrived = anyio.Event()

    def add_message(self, message: str, sender: str) -> None:
        """Raises `ToolError`: DELIVERY if the agent has ended, BUSY if too much is unread."""
        self._check_room(len(self._messages))
        self._messages.append(mark_untrusted("mail", f"from {sender}; an agent, not the user", message))
        self._arrived.set()

    def add_request(self, request: PendingRequest, sender: str) -> None:
        """Raises as `add_message`."""
        self._check_room(len(self._requests))
        marked = mark_untrusted("request", f"from {sender}; not the user", request.text)
        text = f"{_REQUEST_NOTE.format(sender=sender)}\n{marked}"
        self._requests.append((request, text))
        self._arrived.set()

    def _check_room(self, unread: int) -> None:
        if self.is_closed:
            raise ToolError(ErrorCode.DELIVERY, "the agent has ended", "List the agents to see who is there.")
        if unread >= MAX_UNREAD:
            raise ToolError(ErrorCode.BUSY, f"{unread} messages to this agent are unread", "Wait until it reads them.")

    async def between_turns(self) -> Sequence[str]:
        messages, self._messages = self._messages, []
        return messages

    async def when_idle(self, text: str) -> Sequence[str]:
        """`text` answers the current request. Returns nothing if the agent is to end."""
        if self._answering is not None:
            self._answering.end(answer=text)
            self._answering = None
        self.is_idle = True
        try:
            with anyio.move_on_after(IDLE_LIMIT_S):
                while True:
                    self._arrived = anyio.Event()
                    if self._messages:
                        return await self.between_turns()
                    if (asked := self._next_request()) is not None or not self.is_persistent:
                        return [asked] if asked is not None else []
                    await self._arrived.wait()
            return []
        finally:
            self.is_idle = False

    def _next_request(self) -> str | None:
        while self._requests:
            request, text = self._requests.pop(0)
            if request.is_open:
                self._answering = request
                return text
        return None

    def close(self, outcome: AgentOutcome | None) -> None:
        """The agent has ended; `outcome` is None if it was stopped or failed. No request stays unanswered."""
        self.is_closed = True
        if self._answering is not None and outcome is not None and outcome.state.text:
            self._answering.end(answer=outcome.state.text)
        left = [request for request, _ in self._requests]
        for request in (*left, *([self._answering] if self._answering is not None else [])):
            request.end(problem="the agent ended before it answered")
        self._requests.clear()


class PendingRequest:
    """A request to an agent: a `TaskWork` whose id is the correlation id. It is answered, fails or is withdrawn, once.

    `requester` and `target` are agents' ids; a client has none. `principal` and `profiles` are those of the
    call that asked.
    """

    kind = "request"
    output_file = None

    def __init__(
        self, text: str, *, principal: str, profiles: tuple[str, ...] = (), requester: str = "", target: str = ""
    ) -> None:
        self.id = new_task_id()
        self.text = text
        self.principal = principal
        self.profiles = profiles
        self.requester = requester
        self.target = target
        self.answer = ""
        self.problem = ""
        self.is_withdrawn = False
        self._asked_s = time.monotonic()
        self._took_s: float | None = None
        self._ended = anyio.Event()

    @property
    def title(self) -> str:
        return f"request to {self.target}: {cut_middle(' '.join(self.text.split()), _TITLE_CHARS)}"

    @property
    def is_open(self) -> bool:
        return not self._ended.is_set()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._asked_s if self._took_s is None else self._took_s

    @property
    def outcome(self) -> TaskOutcome | None:
        if self.is_open:
            return None
        if self.is_withdrawn:
            return TaskOutcome(TaskStatus.STOPPED)
        if self.problem:
            return TaskOutcome(TaskStatus.FAILED, None, self.problem)
        return TaskOutcome(TaskStatus.COMPLETED)

    def output(self, max_chars: int, start: int) -> OutputPart:
        """The answer, if there is one."""
        size = len(self.answer.encode("utf-8", "replace"))
        text = "" if start >= size else self.answer
        return OutputPart(cut_middle(text, max_chars), size, len(text) > max_chars)

    def end(self, *, answer: str = "", problem: str = "") -> None:
        """Only the first end counts."""
        if self.is_open:
            self.answer, self.problem = answer, problem
            self._took_s = self.seconds
            self._ended.set()

    async def wait(self, timeout_s: float | None) -> bool:
        with anyio.move_on_after(timeout_s):
            await self._ended.wait()
        return not self.is_open

    async def stop(self) -> None:
        """Withdraw it. An agent that works on it already is not interrupted."""
        if self.is_open:
            self.is_withdrawn = True
            self.end()

    def result(self) -> str:
        """The answer. Raises `ToolError(DELIVERY)` if there will never be one."""
        if self.problem or self.is_withdrawn:
            raise ToolError(
                ErrorCode.DELIVERY,
                self.problem or "the request was withdrawn",
                "List the agents to see who is there, or start another one.",
            )
        return self.answer


def mark_untrusted(kind: str, about: str, text: str, below: str = "") -> str:
    """Text from somebody who is not the user, between marks that it cannot forge: it has none of the user's authority.

    `kind` names the marks, `about` says whose text it is; `below` is a note of our own.
    """
    nonce = secrets.token_hex(NONCE_BYTES)
    head = f"<<<{kind} {nonce} {about}"
    return "\n".join(part for part in (head, make_visible(text), below, f"{kind} {nonce}>>>") if part)
