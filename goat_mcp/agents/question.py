"""Something an agent is asked, and the answer: work that a task can stand for while somebody waits for it elsewhere."""

from __future__ import annotations

import time

import anyio

from goat_mcp.commands.tasks import TaskOutcome, TaskStatus, new_task_id
from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.processes.output_capture import OutputPart

_TITLE_CHARS = 100


class AgentQuestion:
    """A `TaskWork` whose id is its correlation id. It ends once: answered, failed or withdrawn.

    `asker` and `target` are agents' ids; a client that asks has none. `principal` and `profiles` are those of the
    call that asked.
    """

    kind = "request"
    output_file = None

    def __init__(
        self, text: str, *, principal: str, profiles: tuple[str, ...] = (), asker: str = "", target: str = ""
    ) -> None:
        self.id = new_task_id()
        self.text = text
        self.principal = principal
        self.profiles = profiles
        self.asker = asker
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
        """The answer, where there is one."""
        size = len(self.answer.encode("utf-8", "replace"))
        text = "" if start >= size else self.answer
        return OutputPart(cut_middle(text, max_chars), size, len(text) > max_chars)

    def end(self, *, answer: str = "", problem: str = "") -> None:
        """What comes after the first end changes nothing."""
        if self.is_open:
            self.answer, self.problem = answer, problem
            self._took_s = self.seconds
            self._ended.set()

    async def wait(self, timeout_s: float | None) -> bool:
        with anyio.move_on_after(timeout_s):
            await self._ended.wait()
        return not self.is_open

    async def stop(self) -> None:
        """Nobody wants the answer any more. Who works on it already is not disturbed."""
        if self.is_open:
            self.is_withdrawn = True
            self.end()

    def answered(self) -> str:
        """The answer. Raises `ToolError(DELIVERY)` where there will never be one."""
        if self.problem or self.is_withdrawn:
            raise ToolError(
                ErrorCode.DELIVERY,
                self.problem or "the request was withdrawn",
                "List the agents to see who is there, or start another one.",
            )
        return self.answer
