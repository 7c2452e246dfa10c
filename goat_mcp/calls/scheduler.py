"""Which calls run together: those that do not conflict in parallel, conflicting ones in the order of their arrival."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field

import anyio

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.tool import Access


@dataclass(eq=False)
class _Running:
    access: Access
    session_key: str
    done: anyio.Event = field(default_factory=anyio.Event)


class Scheduler:
    """Source: goa, "Concurrent Tool Execution" and its table of conflicts."""

    def __init__(self) -> None:
        self._running: list[_Running] = []

    def slot(
        self,
        access: Access,
        *,
        session_key: str,
        max_wait_s: float,
        while_waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> AbstractAsyncContextManager[None]:
        """Held while the call runs. Entering waits for earlier calls that conflict, for at most `max_wait_s`; then it
        raises `ToolError(BUSY)`.

        `while_waiting` is entered during that wait.
        """
        if not (access.reads or access.writes or access.category):  # it can conflict with nothing
            return nullcontext()
        return self._slot(access, session_key, max_wait_s, while_waiting)

    @asynccontextmanager
    async def _slot(
        self,
        access: Access,
        session_key: str,
        max_wait_s: float,
        while_waiting: Callable[[], AbstractContextManager[None]],
    ) -> AsyncGenerator[None]:
        place = _Running(access, session_key)
        earlier = [running for running in self._running if conflicts(running, place)]
        self._running.append(place)
        try:
            if earlier:
                with while_waiting(), anyio.move_on_after(max_wait_s):
                    for running in earlier:
                        await running.done.wait()
                if not all(running.done.is_set() for running in earlier):
                    raise _busy(access, max_wait_s)
            yield
        finally:
            self._running.remove(place)
            place.done.set()


def conflicts(first: _Running, second: _Running) -> bool:
    """Writes to one file, a read against a write of one file, and two calls of one category in one session."""
    one, two = first.access, second.access
    if one.category and one.category == two.category and first.session_key == second.session_key:
        return True
    return bool(set(one.writes) & {*two.writes, *two.reads} or set(two.writes) & set(one.reads))


def _busy(access: Access, waited_s: float) -> ToolError:
    what = "another shell command" if access.category == "shell" else ", ".join((*access.writes, *access.reads))
    return ToolError(
        ErrorCode.BUSY,
        f"waited {waited_s:.0f} s for {what} and it is still in use",
        "Call again, or run the long command with run_in_background.",
    )
