"""One process of handlers as the server sees it: its messages, call by call, its end, and what callers are told of it.

`handler_worker` starts and ends it; the programs that run in it are `worker.py` and `worker.mjs`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from goat_mcp.core.author_errors import handler_failed
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.manifests.entry import HandlersEntry
from goat_mcp.manifests.handler_results import call_timeout_error
from goat_mcp.manifests.tool_document import Export
from goat_mcp.manifests.worker_command import INSTALL_NODE, NO_TYPESCRIPT
from goat_mcp.processes.program import GuardedChild, GuardedPipes

MAX_ANSWER_BYTES = 16 * 1024 * 1024

_HARMLESS = (SideEffect.NONE, SideEffect.READ_ONLY)
_NOT_RUN = "Nothing of this call was run: call it again, and a new process is started."
_MAY_HAVE_RUN = "This call may have done its work, or a part of it: look before you call it again."
_FOR_USERS = (
    "If it stays so, tell the user: a handler blocks its process. In Python, what blocks belongs in a plain `def`, "
    "which is run in a thread."
)


@dataclass(eq=False)
class ProcessCall:
    """How far one call of a principal has come. `stderr_before` is how much the process had printed as errors when
    the call began (0: it has not). `alongside` are the tools whose calls were at work in the process when this one was
    given up, and `was_ended` says that the process was ended for it."""

    tool: str
    principal: str = ""
    has_started: bool = False
    stderr_before: int = 0
    alongside: tuple[str, ...] = ()
    was_ended: bool = False


@dataclass
class HandlerCalls:
    """The queues of messages for each call. `None` ends one: the process is gone."""

    queues: dict[int, asyncio.Queue[Mapping[str, Any] | None]] = field(
        default_factory=dict[int, "asyncio.Queue[Mapping[str, Any] | None]"]
    )
    calls: dict[int, ProcessCall] = field(default_factory=dict[int, ProcessCall])
    running_at_exit: tuple[ProcessCall, ...] = ()
    """The calls that ran when the process ended, or was ended."""
    was_unresponsive: bool = False
    """The process was ended because it did not react to a cancelled call."""
    principals: set[str] = field(default_factory=set[str])
    """Whose calls the process got so far."""

    def running(self) -> tuple[ProcessCall, ...]:
        return tuple(call for call in self.calls.values() if call.has_started)

    def deliver(self, message: Mapping[str, Any], *, stderr_bytes: int) -> None:
        if "started" in message:
            call = self.calls.get(message["id"])
            if call is not None and not call.has_started:
                call.has_started, call.stderr_before = True, stderr_bytes
            return
        queue = self.queues.get(message.get("id", -1))
        if queue is not None:
            queue.put_nowait(message)

    def end(self) -> None:
        self.running_at_exit = self.running_at_exit or self.running()
        for queue in self.queues.values():
            queue.put_nowait(None)


class HandlerPipes(GuardedPipes):
    """Splits the output of the process into messages."""

    def __init__(self, calls: HandlerCalls) -> None:
        super().__init__()
        self.calls = calls
        self.ready: asyncio.Future[Mapping[str, Any] | None] = asyncio.get_running_loop().create_future()
        self._rest = bytearray()
        self.broken_by: Literal["", "size", "protocol"] = ""
        """Why its output could not be read."""
        self.is_over = False
        """No more output; its exit may be seen later."""

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
            self.calls.deliver(message, stderr_bytes=self.stderr_bytes)
        else:
            self.ready.set_result(message)

    def _break(self, by: Literal["size", "protocol"]) -> None:
        """Read no more of its output."""
        self.broken_by = by
        self._rest.clear()
        self.output_ended()

    def last_error_line(self, call: ProcessCall | None) -> str:
        """The last line of errors that the caller may see; `call` is None if it was started for no call.

        Errors cannot be assigned to a call: a thread or a program of an earlier one may still print.
        """
        if call is not None and self.calls.principals - {call.principal}:
            return "what it printed is not told, since it runs calls of others, too"
        lines = self.stderr_since(0 if call is None else call.stderr_before).splitlines()
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
        case {"id": int(), "dropped": int()} | {"id": int(), "started": True}:
            return True
        case {"id": int(), "ask": int(), "method": str(), "params": dict()}:
            return True
        case {"id": int()}:
            return "value" in message
        case _:
            return False


@dataclass(frozen=True)
class HandlerProcess:
    """A running process."""

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
        """End it and all it has started. No call starts in it meanwhile."""
        self.pipes.is_over = True
        await self.child.end(grace_s)


def exit_error(process: HandlerProcess, resource: str, limit: int, *, call: ProcessCall | None) -> ToolError:
    """It ended, or broke the pipe of its answers. `call` gets the error; None while it was loaded."""
    if process.pipes.broken_by == "size":
        what = f"{resource} answered with more than {MAX_ANSWER_BYTES} bytes"
        return handler_failed(f"{what}; it was ended", "Ask for less.", name="AnswerTooLarge")
    if process.pipes.broken_by == "protocol":
        return handler_failed(
            f"something in the process of {resource} wrote to the pipe of its answers; it was ended",
            "Call it again: it is started again. If it stays so, tell the user: a handler, or what it uses, writes "
            "to a file descriptor that it has not opened.",
            name="AnswerPipeBroken",
        )
    last = process.pipes.last_error_line(call)
    code = process.child.exit_code
    if code is None:
        return handler_failed(
            f"the process of {resource} closed the pipe of its answers during the call: {last}",
            "Call it again: it is started again. If it stays so, tell the user: a handler, or what it uses, closes "
            "a file descriptor that it has not opened.",
            name="AnswerPipeClosed",
            limit=limit,
        )
    ended = f"exit code {code}" if code >= 0 else f"signal {-code}"
    return handler_failed(
        f"the process of {resource} ended during the call ({ended}): {last}",
        "Call it again: it is started again. If it stays so, tell the user.",
        name="ProcessEnded",
        limit=limit,
    )


def load_error(entry: HandlersEntry, error: Mapping[str, Any], limit: int) -> ToolError:
    """Its file failed while it was imported."""
    if error.get("name") == NO_TYPESCRIPT:
        return ToolError(
            ErrorCode.NOT_CONFIGURED,
            f"{entry.origin} cannot be loaded: {error.get('message')}",
            f"Tell the user: {INSTALL_NODE}, or compile the file to JavaScript and name that one in its manifest.",
        )
    return handler_failed(
        f"{entry.origin} cannot be loaded: {error.get('name')}: {error.get('message')}",
        "Tell the user; `goat-mcp manifest check` shows the whole error.",
        name=str(error.get("name", "")),
        limit=limit,
    )


def load_timeout_error(entry: HandlersEntry, when: str, step: str) -> ToolError:
    """Its file was not imported in time."""
    return ToolError(
        ErrorCode.TIMEOUT,
        f"{entry.origin} was not loaded {when}",
        f"{step} What takes long there belongs inside the handlers, not where the file is imported.",
        facts={"timed_out": True},
    )


def unanswered_error(call: ProcessCall, export: Export, timeout_s: float) -> ToolError:
    """For a call that was given up after `timeout_s`."""
    if not call.was_ended or not call.alongside:
        return call_timeout_error(export.spec.name, timeout_s)
    others = ", ".join(sorted(set(call.alongside)))
    if call.has_started:
        what = f"{call.tool} did not answer within {timeout_s:.3g} s: it, or {others} beside it, held their process"
    else:
        what = f"{call.tool} did not begin within {timeout_s:.3g} s: {others} held the process of both"
    return ToolError(
        ErrorCode.TIMEOUT,
        f"{what}, which was ended",
        f"{_step(call, export)} {_FOR_USERS}",
        facts={"timed_out": True},
    )


def shared_exit_error(
    end: ToolError, process: HandlerProcess, call: ProcessCall, export: Export, limit: int
) -> ToolError:
    """For a call in a process that ended; other calls share it. `end` says how it ended."""
    calls = process.pipes.calls
    others = ", ".join(sorted({other.tool for other in calls.running_at_exit if other is not call}))
    if calls.was_unresponsive and others:
        what = f"the process of {call.tool} was ended: {others} held it, and did not answer in time"
        return handler_failed(what, f"{_step(call, export)} {_FOR_USERS}", name=end.name, limit=limit)
    if process.pipes.broken_by:
        return end  # its messages about this call may be lost, too
    what = f"{end.message}; at work in it: {others}" if others else end.message
    if not call.has_started or export.spec.side_effect not in _HARMLESS:
        return handler_failed(what, f"{_step(call, export)} If it stays so, tell the user.", name=end.name, limit=limit)
    return handler_failed(what, end.suggestion, name=end.name, limit=limit) if others else end


def _step(call: ProcessCall, export: Export) -> str:
    if not call.has_started:
        return _NOT_RUN
    return "Call it again." if export.spec.side_effect in _HARMLESS else _MAY_HAVE_RUN
