"""Work in a task of its own, whose caller may be answered before it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import anyio

from goat_mcp.core.context import AnswerNow
from goat_mcp.core.result import ToolResult

Leave = Callable[[], AnswerNow | None]
"""As `LeaveClient`, of one call."""


class AttendedWork:
    """Runs any number of them. It has to be kept for as long as the work that goes on without a caller."""

    def __init__(self) -> None:
        # The event loop keeps no task alive by itself.
        self._going_on: set[asyncio.Task[ToolResult | None]] = set()

    async def run(self, work: Callable[[Leave], Awaitable[ToolResult]]) -> ToolResult:
        """The result, or what the work is left with. Raises what it raises until then.

        If the caller is cancelled while it waits, so is the work.
        """
        scope = anyio.CancelScope()
        instead: asyncio.Future[ToolResult] = asyncio.get_running_loop().create_future()
        is_left = False

        def leave() -> AnswerNow | None:
            nonlocal is_left
            if is_left:
                return None
            is_left = True
            return answer_now

        async def answer_now(result: ToolResult) -> None:
            if not instead.done():
                instead.set_result(result)

        async def whole() -> ToolResult | None:
            # Cancelled by a scope: unlike a task's own way that respects what is shielded.
            with scope:
                return await work(leave)
            return None

        running = asyncio.get_running_loop().create_task(whole())
        try:
            await asyncio.wait((running, instead), return_when=asyncio.FIRST_COMPLETED)
            result = await (instead if is_left else running)
            assert result is not None, "only who waits here cancels it"
            return result
        except BaseException:
            if not is_left:
                scope.cancel()
                with anyio.CancelScope(shield=True):
                    await asyncio.wait((running,))
            raise
        finally:
            if not running.done():
                self._going_on.add(running)
                running.add_done_callback(self._ended)

    def _ended(self, work: asyncio.Task[ToolResult | None]) -> None:
        self._going_on.discard(work)
        if not work.cancelled():
            work.exception()  # whoever it goes on for has it
