"""Runs a user's handlers in a process of their own, kept warm from call to call (see `worker_command`).

One that hangs is ended, and the next call starts a new one. Source: Goondan, "Process-per-Agent": the damage that a
handler can do ends with its process.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

from goat_mcp.core.author_errors import handler_failed
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.json_values import escaped_surrogates
from goat_mcp.manifests.entry import HandlersEntry
from goat_mcp.manifests.handler_api import AgentRuntime, HandlerContext
from goat_mcp.manifests.handler_log import DROPPED
from goat_mcp.manifests.handler_process import (
    HandlerCalls,
    HandlerPipes,
    HandlerProcess,
    ProcessCall,
    exit_error,
    load_error,
    load_timeout_error,
    shared_exit_error,
    unanswered_error,
)
from goat_mcp.manifests.handler_results import reported_failure
from goat_mcp.manifests.runner import Runner
from goat_mcp.manifests.tool_document import Export
from goat_mcp.manifests.worker_command import worker_command, worker_source
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.processes.program import start_guarded

START_S = 20.0
CANCEL_GRACE_S = 1.0
MAX_MEMORY_BYTES = 4 * 1024 * 1024 * 1024
"""What `worker.py` and `node_start.py` limit themselves to."""


@dataclass(eq=False)
class _WorkerProcess:
    """A process from its start on, and the number of its calls: one start serves all calls that come meanwhile."""

    state_of_file: tuple[int, int] | None
    starting: asyncio.Task[HandlerProcess] = field(init=False)
    calls: int = 0

    @property
    def process(self) -> HandlerProcess | None:
        """None while it starts, or if it could not start."""
        task = self.starting
        return task.result() if task.done() and not task.cancelled() and task.exception() is None else None

    @property
    def is_usable(self) -> bool:
        return not self.starting.done() or (self.process is not None and self.process.is_usable)


class HandlerWorker(Runner):
    """The process of one resource. The first call starts it, and the first call after a change of its file."""

    def __init__(
        self,
        name: str,
        entry: HandlersEntry,
        *,
        folder: Path,
        guard: ProcessGuard,
        environment: Callable[[], Awaitable[Mapping[str, str]]],
        config: Callable[[], Mapping[str, Any]],
        compiled: Path,
        message_limit: int,
        copy: Path | None = None,
    ) -> None:
        """`compiled` is where Python may keep what it makes of the files: alongside them, a model might put its own.
        `copy` is the private copy that holds the files, if one does (see `sealed_copy`)."""
        self._name = name
        self._entry = entry
        self._folder = folder
        self._guard = guard
        self._environment = environment
        self._config = config
        self._compiled = compiled
        self._message_limit = message_limit
        self._copy = copy
        self._current: _WorkerProcess | None = None
        self._processes: list[_WorkerProcess] = []
        self._numbers = itertools.count(1)

    async def run(self, export: Export, input: Mapping[str, Any], ctx: HandlerContext, timeout_s: float) -> Any:
        """As `Runner.run`."""
        state = self._state_of_file()
        before, worker = self._current, self._current
        if worker is None or not worker.is_usable or worker.state_of_file != state:
            worker = self._launch(state)
        worker.calls += 1
        call = ProcessCall(export.spec.name, ctx.call.principal)
        try:
            with anyio.move_on_after(timeout_s):
                if before is not None and before is not worker:
                    await self._end_if_done(before)
                # Nothing of a call is sent that was cancelled, or had no time left, before it began.
                await anyio.lowlevel.checkpoint_if_cancelled()
                if not worker.starting.done():
                    # Not awaited itself: it goes on when this call is cancelled, and its being cancelled is not ours.
                    await asyncio.wait([worker.starting])
                return await self._call(self._process_of(worker, call), call, export, input, ctx)
            if not worker.starting.done():
                raise load_timeout_error(
                    self._entry, f"within the {timeout_s:.3g} s of this call", "Call it again: loading goes on."
                )
            raise unanswered_error(call, export, timeout_s)
        finally:
            worker.calls -= 1
            await self._end_if_done(worker)

    async def _call(
        self,
        process: HandlerProcess,
        call: ProcessCall,
        export: Export,
        input: Mapping[str, Any],
        ctx: HandlerContext,
    ) -> Any:
        number = next(self._numbers)
        calls = process.pipes.calls
        calls.queues[number] = asyncio.Queue()
        calls.calls[number] = call
        calls.principals.add(call.principal)
        try:
            process.send(
                {
                    "id": number,
                    "export": export.name,
                    "input": input,
                    "ctx": ctx.for_other_processes(),
                    "has_runtime": ctx.runtime is not None,
                }
            )
            return await self._answer(process, number, export, ctx)
        finally:
            if number in calls.queues:
                await self._cancel_call(process, number)
            del calls.calls[number]

    async def _answer(self, process: HandlerProcess, number: int, export: Export, ctx: HandlerContext) -> Any:
        queues = process.pipes.calls.queues
        while True:
            message = await queues[number].get()
            if message is None:
                del queues[number]
                with anyio.move_on_after(CANCEL_GRACE_S):
                    await process.pipes.exited.wait()
                call = process.pipes.calls.calls[number]
                end = exit_error(process, self._name, self._message_limit, call=call)
                raise shared_exit_error(end, process, call, export, self._message_limit)
            if "value" in message:
                del queues[number]
                return message["value"]
            if "error" in message:
                del queues[number]
                raise reported_failure(message["error"], self._message_limit)
            if "log" in message:
                level, text = message["log"]
                ctx.logger.log(
                    logging.getLevelNamesMapping().get(level.upper(), logging.INFO), "%s", escaped_surrogates(text)
                )
            elif "dropped" in message:
                lines = message["dropped"]
                ctx.logger.warning("%d more lines are left out", lines, extra={DROPPED: lines})
            elif "ask" in message:
                process.send({"reply": message["ask"], **await agents_answer(ctx.runtime, message)})

    async def _cancel_call(self, process: HandlerProcess, number: int) -> None:
        """Cancel the call. If the handler does not react, end its process and what it started."""
        calls = process.pipes.calls
        queue, call = calls.queues[number], calls.calls[number]
        call.alongside = tuple(other.tool for other in calls.running() or calls.running_at_exit if other is not call)
        with anyio.CancelScope(shield=True):
            if process.is_usable:
                process.send({"cancel": number})
                with anyio.move_on_after(CANCEL_GRACE_S):
                    while (message := await queue.get()) is not None:
                        if "value" in message or "error" in message:
                            del calls.queues[number]
                            return
                if process.is_usable:
                    calls.was_unresponsive, calls.running_at_exit = True, calls.running()
            call.was_ended = True
            calls.queues.pop(number, None)
            await process.end(CANCEL_GRACE_S)

    def _launch(self, state: tuple[int, int] | None) -> _WorkerProcess:
        """Start a process, the current one from now on. Calls in another one continue there."""
        worker = _WorkerProcess(state)
        worker.starting = asyncio.create_task(self._start())
        worker.starting.add_done_callback(lambda task: task.cancelled() or task.exception())  # nobody may be waiting
        self._current = worker
        self._processes.append(worker)
        return worker

    def _process_of(self, worker: _WorkerProcess, call: ProcessCall) -> HandlerProcess:
        """The started process. Raises the error of its start, or of its end."""
        if worker.starting.cancelled():
            raise handler_failed(
                f"{self._name} was ended while it was loaded",
                "Call it again: it is started again.",
                name="ProcessEnded",
            )
        process = worker.starting.result()
        if not process.is_usable:
            raise exit_error(process, self._name, self._message_limit, call=call)
        return process

    async def _start(self) -> HandlerProcess:
        config = self._config()
        environment = await self._environment()
        calls = HandlerCalls()
        process = HandlerProcess(
            await start_guarded(
                lambda: HandlerPipes(calls),
                worker_command(self._entry, environment, self._compiled),
                directory=self._folder,
                environment=environment,
                guard=self._guard,
                max_memory_bytes=MAX_MEMORY_BYTES,
            )
        )
        try:
            process.send({"config": dict(config), "source": worker_source(self._entry, self._name, self._copy)})
            with anyio.move_on_after(START_S):
                first = await process.pipes.ready
                if first is not None and "ready" in first:
                    return process
                if first is not None and "broken" in first:
                    raise load_error(self._entry, first["broken"], self._message_limit)
                raise exit_error(process, self._name, self._message_limit, call=None)
            raise load_timeout_error(self._entry, f"within {START_S:g} s and was ended", "Tell the user.")
        except BaseException:
            await process.end(CANCEL_GRACE_S)
            raise

    def _state_of_file(self) -> tuple[int, int] | None:
        if self._entry.file is None:
            return None
        try:
            found = self._entry.file.stat()
        except OSError as problem:
            raise ToolError(
                ErrorCode.TOOL, f"{self._entry.file} is gone: {problem.strerror}", "Tell the user."
            ) from None
        return found.st_mtime_ns, found.st_size

    async def _end_if_done(self, worker: _WorkerProcess) -> None:
        """End a process that gets no more calls, after its last one."""
        if not worker.is_usable and self._current is worker:
            self._current = None
        if worker is not self._current and not worker.calls:
            await self._end(worker)

    async def _end(self, worker: _WorkerProcess) -> None:
        if self._current is worker:
            self._current = None
        if worker not in self._processes:
            return
        self._processes.remove(worker)
        with anyio.CancelScope(shield=True):
            if not worker.starting.done():
                worker.starting.cancel()
                await asyncio.wait([worker.starting])
            if worker.process is not None:
                await worker.process.end(CANCEL_GRACE_S)

    async def retire(self) -> None:
        """As `Runner.retire`: the process ends with the last of its calls."""
        worker, self._current = self._current, None
        if worker is not None:
            await self._end_if_done(worker)

    async def close(self) -> None:
        """End what runs."""
        while self._processes:
            await self._end(self._processes[-1])


async def agents_answer(runtime: AgentRuntime | None, message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Their `value`, or the `error`."""
    methods = ("request", "send", "spawn", "list", "catalog")
    if runtime is None or message["method"] not in methods:
        return {"error": {"message": "there are no agents here"}}
    for name, given in message["params"].items():
        if not isinstance(given, str) and (name != "timeout_s" or not isinstance(given, int | float | None)):
            return {"error": {"message": f"{message['method']}: {name} cannot be {given!r:.100}"}}
    method = getattr(runtime, message["method"])
    try:
        inspect.signature(method).bind(**message["params"])
    except TypeError as problem:
        return {"error": {"message": f"{message['method']}: {problem}"}}
    try:
        value: Any = await method(**message["params"])
    except ToolError as error:
        return {"error": {"message": error.message, "suggestion": error.suggestion}}
    return {"value": value}
