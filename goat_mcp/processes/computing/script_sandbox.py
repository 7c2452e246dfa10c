"""A script in Monty, a Python subset whose interpreter knows no files, network, environment or processes.

Each script has a worker process of its own, which ends with it (design/0044). Needs the extra `goat-mcp[code]`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import anyio

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes.computing.script_options import CodeOptions

if TYPE_CHECKING:  # an extra
    from pydantic_monty import MontyError

MAX_PRINTED_BYTES = 4 * 1024 * 1024
_STARTED_LINE = "<python-input-0>"
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
    """What a script has printed, and the value of its last expression: plain data, or what Monty shows for others."""

    printed: str
    value: Any


class ScriptSandbox:
    """Runs one script at a time or many; nothing is shared between them."""

    def __init__(self, options: CodeOptions) -> None:
        self._options = options

    async def run(self, script: str, functions: Mapping[str, Function]) -> ScriptOutcome:
        """Run it to its end. A call that it did not wait for is cancelled then, as all are if this is.

        Raises `ToolError`: NOT_CONFIGURED without the extra, INPUT for a script that cannot be read, TOOL for one that
        failed, TIMEOUT and TOO_LARGE past a limit, INTERNAL if its worker died. What it printed is the error's output.
        """
        try:
            import pydantic_monty as monty
        except ImportError:
            raise ToolError(
                ErrorCode.NOT_CONFIGURED,
                "scripts need the extra `code` of goat-mcp, which is not installed",
                "The user can install it with: pip install 'goat-mcp[code]'. Until then call the tools one by one.",
            ) from None

        options = self._options
        printed = monty.CollectString(MAX_PRINTED_BYTES)
        calls: set[asyncio.Task[Any]] = set()
        limits: monty.ResourceLimits = {
            "max_feed_duration_secs": options.timeout_s,
            "max_total_sleep_secs": options.timeout_s,
            "max_memory": options.memory_mb * 1024 * 1024,
            "max_suspensions": options.max_calls * _SLOTS_PER_CALL + _SLOTS_BESIDE_CALLS,
        }
        lookup = {name: _called(function, calls) for name, function in functions.items()}
        try:
            async with (
                monty.AsyncMonty(max_processes=1) as pool,
                # The clock stands still: a script has no timer, and says the same however long its calls took.
                pool.checkout(limits=limits, os_policy={"datetime": datetime.now(UTC)}) as session,
            ):
                value = await session.feed_run(script, external_lookup=lookup, print_callback=printed)
        except monty.MontySyntaxError as error:
            raise ToolError(ErrorCode.INPUT, f"the script cannot be read: {_shown(error)}", "Correct it.") from None
        except monty.MontyRuntimeError as error:
            raise self._failed(error, printed.output) from None
        except monty.MontyCrashedError as error:
            raise self._ended(timed_out=error.timed_out, printed=printed.output) from None
        except (monty.MontyError, ValueError, RecursionError) as error:
            # A value that cannot leave the sandbox, e.g. a number of 10,000 digits.
            raise ToolError(
                ErrorCode.TOOL,
                f"the script's last value cannot be shown: {str(error)[:200]}",
                "Print what you need of it.",
                output=printed.output,
            ) from None
        finally:
            await _end(calls)
        return ScriptOutcome(printed.output, value)

    def _failed(self, error: MontyError, printed: str) -> ToolError:
        inner = error.exception()
        if isinstance(inner, TimeoutError) and "limit exceeded" in str(inner):
            return self._ended(timed_out=True, printed=printed)
        if isinstance(inner, MemoryError):
            return ToolError(
                ErrorCode.TOO_LARGE,
                f"the script needs more memory than the {self._options.memory_mb} MB it may have (code.memory_mb), or "
                f"prints more than {MAX_PRINTED_BYTES // 1024 // 1024} MB: {inner}",
                "Work on less at a time, and print less.",
                output=printed[:_KEPT_OF_FLOOD],
            )
        return ToolError(ErrorCode.TOOL, f"the script failed: {_shown(error)}", output=printed)

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


def _called(function: Function, calls: set[asyncio.Task[Any]]) -> Callable[..., Coroutine[Any, Any, Any]]:
    async def call(*positional: Any, **named: Any) -> Any:
        if positional:
            raise CallFailed("E_INPUT: tools take named arguments only: await tool(name=value)")
        # A task of ours: the worker's own are not ended when its session is.
        task = asyncio.ensure_future(function(named))
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


def _shown(error: Any) -> str:
    """What is wrong and on which line, with the lines that led there: the script's own, never the host's."""
    text: str = error.display("type-msg")
    frames = error.traceback()
    if not frames:
        return text
    last = frames[-1]
    where = f"line {last.line}: {text}"
    if last.source_line:
        where += f"\n    {last.source_line.strip()[:200]}"
    callers = [f"line {frame.line}" for frame in frames[:-1] if frame.filename == _STARTED_LINE]
    if callers:
        where += f"\n    called from {', '.join(reversed(callers[-10:]))}"
    return where
