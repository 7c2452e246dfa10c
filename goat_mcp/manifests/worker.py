"""The process that runs a resource's Python handlers: a program of its own.

Of ours it imports `core/posix`, `core/platform` and `handler_context` alone: each one starts with what these import.

A line of JSON a message, both ways. Whatever a handler prints goes to standard error, so that it cannot be taken for
an answer; what it leaks, hangs or breaks is this process's, which the server can end.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FunctionType
from typing import Any, cast

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120  # as in `node_start`

from goat_mcp.core import platform, posix  # found also where goat-mcp runs from its source
from goat_mcp.manifests.handler_context import AgentClient, Context

MAX_MEMORY_BYTES = 4 * 1024 * 1024 * 1024
_MAX_SIGNATURE_CHARS, _MAX_ERROR_CHARS = 100, 100_000
_ENCODER = json.JSONEncoder(allow_nan=False)
_CANCELLED = {"name": "Cancelled", "message": "the call was cancelled"}
_MAX_DEPTH = 500
"""Of lists and objects in one another; deeper ones the server cannot even read. What a client can, it judges."""


class RuntimeFailed(Exception):
    """What was asked of agents failed; `suggestion` says what to do."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(str(error.get("message", "")))
        self.suggestion = str(error.get("suggestion", ""))


class StopIterationRaised(Exception):
    """Its cause is a `StopIteration` of a plain function: no future takes one, so its awaiter would wait for ever."""


class NotJson(TypeError):
    """A handler returned a value that cannot be sent."""


class RequestReader(asyncio.Protocol):
    """Reads what the server sends. No task does: a handler may cancel all that there are, and calls still come."""

    def __init__(self, take: Callable[[Mapping[str, Any]], None], end: Callable[[], None]) -> None:
        self._take = take
        self._end = end
        self._rest = bytearray()

    def data_received(self, data: bytes) -> None:
        self._rest += data
        if b"\n" not in data:
            return
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            self._take(json.loads(line.decode()))

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()


class ProcessState:
    """Directory and signal handlers as they are after loading: what a call changes of them is undone after it."""

    _SIGNALS = (signal.SIGTERM, signal.SIGINT)

    def __init__(self) -> None:
        self._directory = os.getcwd()  # noqa: PTH109  # pathlib would double this program's start
        self._on_signal = {number: signal.getsignal(number) for number in self._SIGNALS}

    def restore(self) -> None:
        with suppress(OSError):  # it has gone, or has another name
            os.chdir(self._directory)
        for number, before in self._on_signal.items():
            if before is not None and signal.getsignal(number) != before:
                with suppress(NotImplementedError):  # Windows
                    asyncio.get_running_loop().remove_signal_handler(number)
                signal.signal(number, before)


class Worker:
    """Runs the calls of one resource, side by side."""

    def __init__(self, requests: int, answers: int, config: Mapping[str, Any]) -> None:
        self._requests = requests
        self._answers = answers
        self._config = config
        self._lock = threading.Lock()
        self._running: dict[int, asyncio.Task[None]] = {}
        self._agent_requests: dict[int, asyncio.Future[Any]] = {}
        self._handlers: Mapping[str, Any] = {}
        self._process_state = ProcessState()
        self._is_fork = False
        self.is_over = False  # the server sends nothing more
        posix.register_at_fork(after_in_child=self._enter_fork)

    def _enter_fork(self) -> None:
        """A handler has forked: requests and answers are its parent's."""
        self._is_fork = True
        self._lock = threading.Lock()  # another thread may have held it
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (self._answers, self._requests):
            os.dup2(nothing, descriptor)
        os.close(nothing)

    def send(self, message: Mapping[str, Any]) -> None:
        """Raises `ValueError` or `TypeError` for what is no JSON. Any thread may call it."""
        data = _ENCODER.encode(message).encode() + b"\n"
        with self._lock:
            while data:
                data = data[os.write(self._answers, data) :]

    async def start(self, source: Mapping[str, str]) -> bool:
        """Whether there are handlers now, and calls are taken until the server ends that."""
        try:
            self._handlers = _loaded(source)
            self._process_state = ProcessState()
        except BaseException as problem:
            _show_traceback()
            self.send({"broken": _error(problem)})
            return False
        loop = asyncio.get_running_loop()
        reader = RequestReader(self._take, self._end)
        if platform.SYSTEM == "windows":
            threading.Thread(target=_read_for, args=(loop, reader, self._requests), daemon=True).start()
        else:
            await loop.connect_read_pipe(lambda: reader, os.fdopen(self._requests, "rb", buffering=0))
        self.send({"ready": sorted(self._handlers), "wrong_signatures": _wrong_signatures(self._handlers)})
        return True

    def _end(self) -> None:
        self.is_over = True
        asyncio.get_running_loop().stop()

    def _take(self, message: Mapping[str, Any]) -> None:
        if "export" in message:
            call = message["id"]
            self._running[call] = task = asyncio.create_task(self._call(message))
            task.add_done_callback(lambda _: self._answer_if_never_started(call))
        elif "cancel" in message:
            if (task := self._running.get(message["cancel"])) is not None:
                task.cancel()
        elif (waiting := self._agent_requests.pop(message["reply"], None)) is not None and not waiting.done():
            if "error" in message:
                waiting.set_exception(RuntimeFailed(message["error"]))
            else:
                waiting.set_result(message["value"])

    async def _call(self, message: Mapping[str, Any]) -> None:
        call = message["id"]
        try:
            answer: dict[str, Any] = {"id": call, "value": await self._value(message)}
            self._send_answer(answer, message["export"])
        except asyncio.CancelledError:
            self.send({"id": call, "error": _CANCELLED})
        except BaseException as problem:  # SystemExit too: it would end the other calls
            if not self._is_fork:
                _show_traceback()
            self.send({"id": call, "error": _error(problem)})
        finally:
            self._exit_fork()
            self._running.pop(call, None)
            self._process_state.restore()

    def _answer_if_never_started(self, call: int) -> None:
        if self._running.pop(call, None) is not None:
            self.send({"id": call, "error": _CANCELLED})

    async def _value(self, message: Mapping[str, Any]) -> Any:
        handler = self._handlers.get(message["export"])
        if handler is None:
            known = ", ".join(sorted(self._handlers)) or "none"
            raise LookupError(f"`handlers` has no {message['export']!r}; it has {known}")
        # Sent before anything of it runs: of a call without this, the server can say that it did nothing.
        self.send({"id": message["id"], "started": True})
        ctx = Context(message, self._config, self.send)
        if message["has_runtime"]:
            ctx.runtime = AgentClient(lambda method, params: self._ask(message["id"], method, params))
        try:
            if _is_coroutine_function(handler):
                return await handler(ctx, message["input"])
            value: Any = await asyncio.to_thread(self._in_thread, handler, ctx, message["input"])
            return await value if inspect.isawaitable(value) else value
        finally:
            if not self._is_fork:
                ctx.report_dropped()

    def _in_thread(self, handler: Callable[[Context, Any], Any], ctx: Context, input: Any) -> Any:
        try:
            return handler(ctx, input)
        except StopIteration as problem:
            raise StopIterationRaised from problem
        finally:
            self._exit_fork()

    def _exit_fork(self) -> None:
        """A copy's work is done with the handler; it has no loop to go back to."""
        if self._is_fork:
            os._exit(0)

    def _send_answer(self, answer: Mapping[str, Any], export: str) -> None:
        value = answer["value"]
        try:
            if _is_deep(value):
                raise ValueError(f"more than {_MAX_DEPTH} lists and objects lie in one another")
            self.send(answer)
        except (TypeError, ValueError, RecursionError) as problem:
            what = f"{export} gave back a {type(value).__name__} that is no JSON value: {problem}"
            raise NotJson(what) from None

    async def _ask(self, call: int, method: str, params: Mapping[str, Any]) -> Any:
        waiting: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        number = id(waiting)
        self._agent_requests[number] = waiting
        self.send({"id": call, "ask": number, "method": method, "params": params})
        return await waiting


def _error(problem: BaseException) -> dict[str, Any]:
    if isinstance(problem, StopIterationRaised) and problem.__cause__ is not None:
        problem = problem.__cause__
    error = {"name": _text(lambda: type(problem).__name__), "message": _text(lambda: str(problem))}
    for key, attribute in (("suggestion", "suggestion"), ("helpUrl", "help_url")):
        value = _text(lambda name=attribute: getattr(problem, name)) or _text(lambda name=key: getattr(problem, name))
        if value:
            error[key] = value
    return error


def _text(read: Callable[[], Any]) -> str:
    """What an exception says of itself. That is code of the handler's too, and may fail in any way."""
    try:
        text = read()
        # A subclass of `str` is code again.
        return str.__str__(text)[:_MAX_ERROR_CHARS] if isinstance(text, str) else ""
    except BaseException:
        return ""


def _show_traceback() -> None:
    with suppress(BaseException):  # as above; standard error may be closed, too
        traceback.print_exc()


def _is_coroutine_function(handler: Any) -> bool:
    # Nearly all are functions as they are written; for the rest `inspect` has to look around for long.
    if type(handler) is FunctionType and handler.__code__.co_flags & inspect.CO_COROUTINE:
        return True
    return inspect.iscoroutinefunction(handler)


def _is_deep(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(_MAX_DEPTH + 1):
        lists = [cast("list[Any]", one) for one in level if isinstance(one, list | tuple)]
        lists += [[*cast("dict[Any, Any]", one).values()] for one in level if isinstance(one, dict)]
        level = [inner for one in lists for inner in one]
        if not level:
            return False
    return True


def _loaded(source: Mapping[str, str]) -> Mapping[str, Any]:
    if file := source.get("file"):
        sys.path.insert(0, os.path.dirname(file))  # noqa: PTH120  # pathlib would double this program's start
        spec = importlib.util.spec_from_file_location(f"goat_manifest_{source['name']}", file)
        if spec is None or spec.loader is None:
            raise ImportError(f"{file} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(source["module"])
    handlers: Any = getattr(module, "handlers", None)
    if not isinstance(handlers, Mapping):
        raise AttributeError("there is no map `handlers` from export names to functions `async (ctx, input)`")
    for name, handler in cast("Mapping[Any, Any]", handlers).items():
        if not callable(handler):
            raise TypeError(f"handlers[{name!r}] is a {type(handler).__name__}, not a function")
    return cast("Mapping[str, Any]", handlers)


def _wrong_signatures(handlers: Mapping[str, Any]) -> dict[str, str]:
    """The parameters of those that cannot be called with `ctx` and the input."""
    found: dict[str, str] = {}
    for name, handler in handlers.items():
        with suppress(Exception):  # some callables do not tell
            signature = inspect.signature(handler)
            try:
                signature.bind(None, None)
            except TypeError:
                found[name] = str(signature)[:_MAX_SIGNATURE_CHARS]
    return found


def _read_for(loop: asyncio.AbstractEventLoop, reader: RequestReader, descriptor: int) -> None:
    while data := os.read(descriptor, 65_536):
        loop.call_soon_threadsafe(reader.data_received, data)
    loop.call_soon_threadsafe(reader.connection_lost, None)


def main() -> None:
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    posix.limit_resource("AS", MAX_MEMORY_BYTES)
    posix.limit_resource("CORE", 0)
    sys.pycache_prefix = sys.argv.pop()  # only now: Python's own modules are compiled already, elsewhere
    start = json.loads(_first_line(requests))
    worker = Worker(requests, answers, start["config"])
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    if loop.run_until_complete(worker.start(start["source"])):
        if not worker.is_over:  # `manifest check` closes its end at once
            loop.run_forever()
        # The server sees the end first, so that it sends no call to a process that takes none.
        os.dup2(os.open(os.devnull, os.O_WRONLY), answers)
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left))
    os._exit(0)  # threads of a handler that never ends


def _first_line(descriptor: int) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        if not (byte := os.read(descriptor, 1)):
            os._exit(0)
        line += byte
    return line


if __name__ == "__main__":
    main()
