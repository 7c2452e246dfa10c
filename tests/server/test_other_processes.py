"""What other processes change is looked for while somebody watches it, and only then."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import pytest
from anyio.lowlevel import checkpoint

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.server import change_notifications as other_processes
from goat_mcp.server.change_notifications import OtherProcesses

pytestmark = pytest.mark.anyio
WAIT_S = 60


@dataclass
class Shared:
    """Something shared, who watches it, and for whom it was looked at."""

    watchers: set[str] = field(default_factory=set[str])
    looked_for: list[set[str]] = field(default_factory=list[set[str]])
    is_broken: bool = False
    found_nobody: anyio.Event = field(default_factory=anyio.Event)
    _looked: anyio.Event = field(default_factory=anyio.Event)

    def __post_init__(self) -> None:
        self.others = OtherProcesses(lambda: {"goat://todos": self.look}, self._watchers)

    def _watchers(self, root: str) -> set[str]:
        if not self.watchers:
            self.found_nobody.set()
        return self.watchers

    async def look(self, principals: Collection[str]) -> None:
        self.looked_for.append(set(principals))
        self._looked.set()
        self._looked = anyio.Event()
        if self.is_broken:
            raise ToolError(ErrorCode.IO, "no", "no")

    async def looked(self, times: int) -> None:
        with anyio.fail_after(WAIT_S):
            while len(self.looked_for) < times:
                await self._looked.wait()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_processes, "LOOK_EVERY_S", 0.001)


@asynccontextmanager
async def running(shared: Shared) -> AsyncGenerator[None]:
    async with anyio.create_task_group() as group:
        group.start_soon(shared.others.run)
        yield
        group.cancel_scope.cancel()


async def test_looking_starts_before_the_watcher_is_told_that_it_watches_and_goes_on() -> None:
    shared = Shared()
    async with running(shared):
        await shared.others.before_watching(["goat://calls", "goat://todos"], "alice")
        assert shared.looked_for == [{"alice"}]
        shared.watchers = {"alice", "bob"}

        await shared.looked(3)

    assert shared.looked_for[:3] == [{"alice"}, {"alice", "bob"}, {"alice", "bob"}]


@pytest.mark.parametrize("uri", ["goat://calls", "goat://todosandmore"])
async def test_what_is_not_shared_is_not_looked_for(uri: str) -> None:
    shared = Shared(watchers={"alice"})
    async with running(shared):
        await shared.others.before_watching([uri], "alice")
        for _ in range(50):
            await checkpoint()

    assert shared.looked_for == []


async def test_it_ends_with_the_last_watcher_and_starts_again_with_the_next() -> None:
    shared = Shared()
    async with running(shared):
        await shared.others.before_watching(["goat://todos/a"], "alice")
        shared.watchers = {"alice"}
        await shared.looked(3)

        shared.watchers = set()
        with anyio.fail_after(WAIT_S):
            await shared.found_nobody.wait()
        looked = len(shared.looked_for)
        await anyio.wait_all_tasks_blocked()  # nothing waits for a clock

        await shared.others.before_watching(["goat://todos"], "bob")
        shared.watchers = {"bob"}
        await shared.looked(looked + 3)
        assert shared.looked_for[looked : looked + 3] == [{"bob"}] * 3


async def test_a_look_that_fails_is_tried_again() -> None:
    shared = Shared(is_broken=True)
    async with running(shared):
        await shared.others.before_watching(["goat://todos"], "alice")
        shared.watchers = {"alice"}

        await shared.looked(3)
