"""One process of handlers as the server sees it: what it says, call by call, and that it has ended.

When one is started and ended is `python_worker`'s; the program that runs in it is `worker`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from goat_mcp.processes.program import GuardedChild, GuardedPipes

MAX_ANSWER_BYTES = 16 * 1024 * 1024


@dataclass(eq=False)
class CallInProcess:
    """How far one call of a principal has come. `complained_before` is how much the process had printed as errors when
    the call began (0: it has not). `beside` are the tools whose calls were at work in the process when this one was
    given up, and `was_ended` says that the process was ended for it."""

    tool: str
    principal: str = ""
    has_begun: bool = False
    complained_before: int = 0
    beside: tuple[str, ...] = ()
    was_ended: bool = False


@dataclass
class HandlerCalls:
    """Where the messages about each call go. `None` ends them: the process is gone."""

    queues: dict[int, asyncio.Queue[Mapping[str, Any] | None]] = field(
        default_factory=dict[int, "asyncio.Queue[Mapping[str, Any] | None]"]
    )
    calls: dict[int, CallInProcess] = field(default_factory=dict[int, CallInProcess])
    at_the_end: tuple[CallInProcess, ...] = ()
    """Those that were at work when the process ended, or was ended."""
    is_given_up: bool = False
    """The process was ended because it did not heed that a call was cancelled."""
    principals: set[str] = field(default_factory=set[str])
    """Whose calls the process was given so far."""

    def at_work(self) -> tuple[CallInProcess, ...]:
        return tuple(call for call in self.calls.values() if call.has_begun)

    def tell(self, message: Mapping[str, Any], *, complained_bytes: int) -> None:
        if "begun" in message:
            call = self.calls.get(message["id"])
            if call is not None and not call.has_begun:
                call.has_begun, call.complained_before = True, complained_bytes
            return
        queue = self.queues.get(message.get("id", -1))
        if queue is not None:
            queue.put_nowait(message)

    def end(self) -> None:
        self.at_the_end = self.at_the_end or self.at_work()
        for queue in self.queues.values():
            queue.put_nowait(None)


class HandlerPipes(GuardedPipes):
    """Cuts what the process prints into messages."""

    def __init__(self, calls: HandlerCalls) -> None:
        super().__init__()
        self.calls = calls
        self.ready: asyncio.Future[Mapping[str, Any] | None] = asyncio.get_running_loop().create_future()
        self._rest = bytearray()
        self.broken_by: Literal["", "size", "protocol"] = ""
        """Why what it said could not be understood."""
        self.is_over = False
        """It says nothing more; its end may be seen later."""

    def printed(self, data: bytes) -> None:
        if self.broken_by:
            return
        self._rest += data
        if b"\n" not in data:
            if len(self._rest) > MAX_ANSWER_BYTES:
                self._break("size")
            return
        *lines, rest = self._rest.split(b"\n")
        self._rest = bytearray(rest)
        for line in lines:
            if not self.broken_by:
                self._take(line)

    def _take(self, line: bytearray) -> None:
        try:
            message: Any = json.loads(line.decode())
        except (ValueError, RecursionError):
            self._break("protocol")
            return
        if not (_is_of_call(message) if self.ready.done() else _is_first(message)):
            self._break("protocol")
        elif self.ready.done():
            self.calls.tell(message, complained_bytes=self.stderr_bytes)
        else:
            self.ready.set_result(message)

    def _break(self, by: Literal["size", "protocol"]) -> None:
        """It no longer says anything that can be understood."""
        self.broken_by = by
        self._rest.clear()
        self.output_ended()

    def last_words(self, call: CallInProcess | None) -> str:
        """The last line of errors that whoever made this call may see; None: it was started for nobody's call.

        What was printed cannot be told apart by call: a thread, or a program, of an earlier one may still do it.
        """
        if call is not None and self.calls.principals - {call.principal}:
            return "what it printed is not told, since it runs calls of others, too"
        lines = self.stderr_since(0 if call is None else call.complained_before).splitlines()
        return lines[-1] if lines else "it said nothing"

    def output_ended(self) -> None:
        self.is_over = True
        if not self.ready.done():
            self.ready.set_result(None)
        self.calls.end()


def _is_first(message: Any) -> bool:
    match message:
        case {"ready": list()} | {"broken": dict()}:
            return True
        case _:
            return False


def _is_of_call(message: Any) -> bool:
    """The pipe is a handler's to write to if it wants to."""
    match message:
        case {"id": int(), "error": dict()} | {"id": int(), "log": [str(), str()]}:
            return True
        case {"id": int(), "left_out": int()} | {"id": int(), "begun": True}:
            return True
        case {"id": int(), "ask": int(), "method": str(), "params": dict()}:
            return True
        case {"id": int()}:
            return "value" in message
        case _:
            return False


@dataclass(frozen=True)
class HandlerProcess:
    """One that runs."""

    child: GuardedChild[HandlerPipes]

    @property
    def pipes(self) -> HandlerPipes:
        return self.child.pipes

    def send(self, message: Mapping[str, Any]) -> None:
        self.child.stdin.write(json.dumps(message).encode() + b"\n")

    @property
    def is_usable(self) -> bool:
        return not self.pipes.exited.is_set() and not self.pipes.is_over

    async def end(self, grace_s: float) -> None:
        """End it and all it has started. No call begins in it meanwhile."""
        self.pipes.is_over = True
        await self.child.end(grace_s)
