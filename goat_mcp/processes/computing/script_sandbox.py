"""A script in Monty, a Python subset whose interpreter knows no files, network, environment or processes.

Each script has a worker process of its own, which ends with it (design/0044). Needs the extra `goat-mcp[code]`.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import anyio

from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.processes.computing.script_options import CodeOptions
from goat_mcp.processes.computing.script_text import script_text

if TYPE_CHECKING:  # an extra
    from pydantic_monty import MontyRuntimeError, MontySyntaxError

MAX_PRINTED_BYTES = 4 * 1024 * 1024
AT_A_TIME = 32
"""Scripts of one server; each has a worker process. More are refused."""
_SCRIPT = "<python-input-1>"
"""What the worker calls the second thing it runs: after the helpers."""
_MESSAGE_CHARS = 4_000
_SLOTS_PER_CALL = 4
"""How often the worker stops for one call: the name, the call, and what it waits for."""
_SLOTS_BESIDE_CALLS = 1_000
_END_CALLS_S = 10.0

Function = Callable[[Mapping[str, Any]], Awaitable[Any]]
"""Takes the named arguments of a call. What it raises as `CallFailed`, the script can catch."""


class CallFailed(RuntimeError):
    """A call that a script made has failed. The script sees a `RuntimeError` with this message, and nothing else."""


@dataclass(frozen=True)
class ScriptOutcome:
    """What a script has printed, and the value of its last expression as text: JSON, or what Python shows for others.

    `value` is None if there is none. `has_value`: whether it could be had.
    """

    printed: str
    value: str | None
    has_value: bool


class ScriptSandbox:
    """Runs one script or several at a time; nothing is shared between them."""

    def __init__(self, options: CodeOptions) -> None:
        self._options = options
        self._running = 0

    async def run(self, script: str, functions: Mapping[str, Function], began: datetime) -> ScriptOutcome:
        """Run it to its end, with a clock that stands at `began`. A call that it did not wait for is cancelled then, as
        all are if this is.

        Raises `ToolError`: NOT_CONFIGURED without the extra, INPUT for a script that cannot be read, TOOL for one that
        failed, TIMEOUT and TOO_LARGE past a limit, BUSY if too many run, INTERNAL if its worker died. What it printed
        is the error's output.
        """
        try:
            import pydantic_monty as monty
        except ImportError:
            raise ToolError(
                ErrorCode.NOT_CONFIGURED,
                "scripts need the extra `code` of goat-mcp, which is not installed",
                "The user can install it with: pip install 'goat-mcp[code]'. Until then call the tools one by one.",
            ) from None
        if self._running >= AT_A_TIME:
            raise ToolError(ErrorCode.BUSY, f"{AT_A_TIME} scripts are running", "Run it again when one has ended.")

        options = self._options
        text = script_text(script, functions)
        printed = monty.CollectString(MAX_PRINTED_BYTES)
        calls: set[asyncio.Task[Any]] = set()
        limits: monty.ResourceLimits = {
            "max_feed_duration_secs": options.timeout_s,
            "max_total_sleep_secs": options.timeout_s,
            "max_memory": options.memory_mb * 1024 * 1024,
            "max_suspensions": options.max_calls * _SLOTS_PER_CALL + _SLOTS_BESIDE_CALLS,
        }
        # The clock stands still: a script has no timer, and says the same however long its calls took.
        policy: monty.OSPolicy = {"datetime": began, "sleep_system_max": math.inf}
        self._running += 1
        try:
            async with (
                monty.AsyncMonty(max_processes=1) as pool,
                pool.checkout(limits=limits, os_policy=policy) as session,
            ):
                await session.feed_run(text.helpers)
                lookup = {text.call: _called(functions, calls)}
                value = await session.feed_run(text.script, external_lookup=lookup, print_callback=printed)
        except monty.MontySyntaxError as error:
            raise ToolError(
                ErrorCode.INPUT, f"the script cannot be read: {_shown(error, script)}", "Correct it."
            ) from None
        except monty.MontyRuntimeError as error:
            raise self._failed(error, script, printed.output) from None
        except monty.MontyCrashedError as error:
            raise self._ended(timed_out=error.timed_out, printed=printed.output) from None
        except (monty.MontyError, ValueError, RecursionError) as error:
            raise ToolError(
                ErrorCode.TOOL,
                f"the script's last value cannot be shown: {str(error)[:200]}",
                "Print what you need of it.",
                output=printed.output,
            ) from None
        finally:
            self._running -= 1
            await _end(calls)
        return ScriptOutcome(printed.output, value, text.has_value)

    def _failed(self, error: MontyRuntimeError, script: str, printed: str) -> ToolError:
        inner = error.exception()
        is_limit = isinstance(inner, TimeoutError | MemoryError) and "limit" in str(inner)
        if isinstance(inner, TimeoutError) and is_limit:
            return self._ended(timed_out=True, printed=printed)
        if is_limit:
            return ToolError(
                ErrorCode.TOO_LARGE,
                f"the script needs more memory than the {self._options.memory_mb} MB it may have (code.memory_mb), or "
                f"prints more than {MAX_PRINTED_BYTES // 1024 // 1024} MB: {inner}",
                "Work on less at a time, and print less.",
                output=printed[:_KEPT_OF_FLOOD],
            )
        return ToolError(ErrorCode.TOOL, f"the script failed: {_shown(error, script)}", output=printed)

    def _ended(self, *, timed_out: bool, printed: str) -> ToolError:
        if timed_out:
            return ToolError(
                ErrorCode.TIMEOUT,
                f"the script computed for longer than {self._options.timeout_s:g} s (code.timeout_s)",
                "The calls it made before have been made. Do less in one script.",
                output=printed,
            )
        return ToolError(
            ErrorCode.INTERNAL,
            "the script's worker process died",
            "The calls it made before have been made; look before you repeat them.",
            output=printed,
        )


_KEPT_OF_FLOOD = 2_000


def _called(
    functions: Mapping[str, Function], calls: set[asyncio.Task[Any]]
) -> Callable[[str, str], Coroutine[Any, Any, Any]]:
    async def call(name: str, arguments: str) -> Any:
        # A task of ours: the worker's own are not ended when its session is.
        task = asyncio.ensure_future(functions[name](json.loads(arguments)))
        calls.add(task)
        try:
            return await task
        finally:
            calls.discard(task)

    return call


async def _end(calls: set[asyncio.Task[Any]]) -> None:
    left = list(calls)
    for task in left:
        task.cancel()
    if left:
        with anyio.move_on_after(_END_CALLS_S, shield=True):
            await asyncio.wait(left)


def _shown(error: MontySyntaxError | MontyRuntimeError, script: str) -> str:
    """What is wrong and on which line, with the lines that led there: the script's own, never the host's."""
    text = cut_middle(error.display("type-msg"), _MESSAGE_CHARS)
    frames = [frame for frame in error.traceback() if frame.filename == _SCRIPT]
    if not frames:
        return text
    lines = script.splitlines()
    last = frames[-1]
    where = f"line {last.line}: {text}"
    if last.line <= len(lines):
        where += f"\n    {lines[last.line - 1].strip()[:200]}"
    callers = [f"line {frame.line}" for frame in frames[:-1]]
    if callers:
        where += f"\n    called from {', '.join(reversed(callers[-10:]))}"
    return where
