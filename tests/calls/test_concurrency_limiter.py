"""So many calls at a time and no more; who waits too long is told so, and nobody takes another's turn. R-LIMIT-1."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from goat_mcp.calls.concurrency_limiter import MAX_AWAY, MAX_WAITING, CallLimiter
from goat_mcp.core.calling_client import CallingClient, ClientRequest
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form, Reply
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult
from goat_mcp.core.rights import NO_LIMITS
from goat_mcp.core.tool import Access
from tests.calls.test_pipeline import NOTHING, pipeline_over
from tests.tool_doubles import fake

pytestmark = pytest.mark.anyio

FOREVER_S = 20.0
AT_ONCE_S = 0.0
FORM = Form("may I?", ())


def ctx(principal: str = "one", **more: Any) -> ToolContext:
    return ToolContext(call_id="call", principal=principal, **more)


class Crowd:
    """Calls that hold their place until they are let go."""

    def __init__(self, slots: CallLimiter, *, to_refuse: int = 0) -> None:
        self.slots = slots
        self.to_refuse = to_refuse
        self.all_refused = anyio.Event()
        self.running: list[str] = []
        self.refused: list[ToolError] = []
        self.release = anyio.Event()

    async def call(self, name: str, context: ToolContext) -> None:
        try:
            async with self.slots.of(context):
                self.running.append(name)
                await self.release.wait()
        except ToolError as busy:
            self.refused.append(busy)
            if len(self.refused) == self.to_refuse:
                self.all_refused.set()


async def test_sixteen_of_a_hundred_run_and_the_rest_is_told_that_they_did_not() -> None:
    crowd = Crowd(CallLimiter(queue_s=AT_ONCE_S), to_refuse=84)

    at_a_time = 0
    async with anyio.create_task_group() as group:
        for number in range(100):
            group.start_soon(crowd.call, str(number), ctx())
        with anyio.fail_after(60):
            await crowd.all_refused.wait()
        at_a_time = len(crowd.running)
        crowd.release.set()

    assert (at_a_time, len(crowd.running), len(crowd.refused)) == (16, 16, 84)
    assert {busy.code for busy in crowd.refused} == {ErrorCode.BUSY}
    assert crowd.refused[0].facts == {"retry_after_s": 1}
    assert "16 of your calls are running (limits.concurrent_calls)" in crowd.refused[0].message


async def test_who_waits_runs_in_the_order_of_arrival_once_there_is_a_place() -> None:
    slots = CallLimiter(2, 64, queue_s=FOREVER_S)
    order: list[int] = []

    async def call(number: int) -> None:
        async with slots.of(ctx()):
            order.append(number)
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(call, number)

    assert order == list(range(20))


async def test_another_principal_is_served_while_one_has_all_its_places_and_a_queue() -> None:
    crowd = Crowd(CallLimiter(2, 4, queue_s=FOREVER_S))

    running: list[str] = []
    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(crowd.call, f"one-{number}", ctx("one"))
        await anyio.wait_all_tasks_blocked()
        group.start_soon(crowd.call, "two", ctx("two"))
        await anyio.wait_all_tasks_blocked()
        running = list(crowd.running)
        crowd.release.set()

    assert running == ["one-0", "one-1", "two"]


async def test_all_together_have_a_limit_and_a_free_place_goes_to_whoever_may_have_it() -> None:
    slots = CallLimiter(2, 3, queue_s=FOREVER_S)
    first, others = Crowd(slots), Crowd(slots)
    full: list[str] = []
    then: list[str] = []

    async with anyio.create_task_group() as group:
        for name, principal in (("a", "one"), ("b", "two")):
            group.start_soon(first.call, name, ctx(principal))
        group.start_soon(others.call, "c", ctx("one"))
        await anyio.wait_all_tasks_blocked()
        for name, principal in (("d", "one"), ("e", "three")):
            group.start_soon(others.call, name, ctx(principal))
        await anyio.wait_all_tasks_blocked()
        full = [*first.running, *others.running]
        first.release.set()
        await anyio.wait_all_tasks_blocked()
        then = list(others.running)
        others.release.set()

    assert (full, then) == (["a", "b", "c"], ["c", "e", "d"])


async def test_a_call_that_asks_a_person_leaves_its_place_to_another_meanwhile() -> None:
    slots = CallLimiter(1, 64, queue_s=FOREVER_S)
    asked, answered, done = anyio.Event(), anyio.Event(), list[str]()

    async def person(form: Form) -> Answer:
        asked.set()
        await answered.wait()
        return Answer(Reply.ACCEPTED)

    async def asking() -> None:
        async with slots.of(ctx(ask=person)) as place:
            reply = (await place.ctx.ask(FORM)).reply
            done.append(f"asked: {reply}")

    async def other() -> None:
        async with slots.of(ctx()):
            done.append("other")

    async with anyio.create_task_group() as group:
        group.start_soon(asking)
        await asked.wait()
        group.start_soon(other)
        await anyio.wait_all_tasks_blocked()
        answered.set()

    assert done == ["other", "asked: accepted"]
    async with slots.of(ctx()):  # the count is what it was
        with pytest.raises(ToolError):
            async with CallLimiter.of(slots, ctx(started_at_s=-3600.0)):
                pass


class Vanished:
    """A client that can be asked and never answers; `known_roots` are those it has said before."""

    protocol_version = "2026-07-28"
    is_stateless = True
    capabilities: Mapping[str, Any] = {"elicitation": {}, "roots": {}}
    log_level = ""
    given: Mapping[str, Any] = {}

    def __init__(self, known_roots: Sequence[Path] | None = None) -> None:
        self.known_roots = known_roots
        self.told: list[str] = []

    async def ask(self, requests: Mapping[str, ClientRequest]) -> Mapping[str, dict[str, Any]]:
        await anyio.sleep_forever()
        raise AssertionError

    async def roots(self) -> Sequence[Path]:
        await anyio.sleep_forever()
        raise AssertionError

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self.told.append(method)


async def form_for(client: CallingClient) -> None:
    await client.ask({"day": ClientRequest("elicitation/create", {})})


async def roots_of(client: CallingClient) -> None:
    await client.roots()


@pytest.mark.parametrize("asks", [form_for, roots_of])
async def test_clients_that_never_answer_an_upstream_keep_no_others_from_running(
    asks: Callable[[CallingClient], Awaitable[None]],
) -> None:
    slots = CallLimiter(2, 2, queue_s=AT_ONCE_S)

    async def call() -> None:
        async with slots.of(ctx(client=Vanished())) as place:
            assert place.ctx.client is not None
            await asks(place.ctx.client)

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(call)
            await anyio.wait_all_tasks_blocked()
        async with slots.of(ctx()), slots.of(ctx()):
            group.cancel_scope.cancel()

    async with slots.of(ctx()), slots.of(ctx()):  # the count is what it was
        with pytest.raises(ToolError):
            await slots.of(ctx()).__aenter__()


async def test_a_call_that_ends_while_its_upstream_still_asks_the_client_gives_its_permit_back_once() -> None:
    slots = CallLimiter(1, 1, queue_s=AT_ONCE_S)

    async with anyio.create_task_group() as group:
        async with slots.of(ctx(client=Vanished())) as place:
            assert place.ctx.client is not None
            group.start_soon(form_for, place.ctx.client)
            await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()

    async with slots.of(ctx()):
        with pytest.raises(ToolError):
            await slots.of(ctx()).__aenter__()


async def test_roots_that_are_known_let_nobody_in_and_all_but_asking_is_the_clients_own() -> None:
    slots = CallLimiter(1, 1, queue_s=FOREVER_S)
    client, crowd = Vanished(known_roots=[Path("/project")]), Crowd(slots)
    seen: list[object] = []

    async with anyio.create_task_group() as group, slots.of(ctx(client=client)) as place:
        group.start_soon(crowd.call, "other", ctx())
        await anyio.wait_all_tasks_blocked()
        assert place.ctx.client is not None
        seen += await place.ctx.client.roots()
        seen.append(place.ctx.client.capabilities)
        await place.ctx.client.notify("notifications/message", {})
        await anyio.wait_all_tasks_blocked()
        seen += crowd.running
        group.cancel_scope.cancel()

    assert seen == [Path("/project"), client.capabilities]
    assert client.told == ["notifications/message"]


async def test_the_calls_of_an_agent_never_wait_for_the_call_that_runs_it() -> None:
    slots = CallLimiter(1, 1, queue_s=AT_ONCE_S)
    deeper = NO_LIMITS.narrowed(allowed=None)
    deepest = deeper.narrowed(allowed=None)

    async with slots.of(ctx()), slots.of(ctx(rights=deeper)), slots.of(ctx(rights=deepest)):
        with pytest.raises(ToolError) as busy:
            async with slots.of(ctx("another", rights=deeper)):
                pass

    assert "1 calls of all clients are running (limits.concurrent_calls_in_all)" in busy.value.message


async def test_a_flood_is_answered_at_once() -> None:
    crowd = Crowd(CallLimiter(1, 64, queue_s=FOREVER_S))

    refused = 0
    async with anyio.create_task_group() as group:
        for number in range(MAX_WAITING + 11):
            group.start_soon(crowd.call, str(number), ctx())
        await anyio.wait_all_tasks_blocked()
        refused = len(crowd.refused)
        group.cancel_scope.cancel()

    assert refused == 10


async def test_calls_that_are_cancelled_running_or_waiting_leave_no_place_taken() -> None:
    slots = CallLimiter(2, 2, queue_s=FOREVER_S)
    crowd = Crowd(slots)

    async with anyio.create_task_group() as group:
        for number in range(6):
            group.start_soon(crowd.call, str(number), ctx())
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()

    async with slots.of(ctx()), slots.of(ctx()):
        pass


async def test_a_call_that_got_no_place_has_not_run_and_is_on_record(tmp_path: Path) -> None:
    release = anyio.Event()
    holding, other = fake("Holding", release=release), fake("Other")
    pipeline = pipeline_over(tmp_path, holding, other, slots=CallLimiter(1, 1, queue_s=AT_ONCE_S))
    results: list[ToolResult] = []

    async with anyio.create_task_group() as group:
        group.start_soon(pipeline.call, "Holding", dict[str, str](), ctx())
        await holding.started.wait()
        results.append(await pipeline.call("Other", {}, ctx()))
        release.set()

    assert (results[0].error_code, other.calls) == ("E_BUSY", [])
    assert '"E_BUSY"' in (tmp_path / "audit.jsonl").read_text()


async def test_calls_that_wait_for_one_they_conflict_with_keep_no_others_from_running(tmp_path: Path) -> None:
    shell = Access(category="shell")
    release = anyio.Event()
    running = fake("Bash", touches=shell, release=release)
    pipeline = pipeline_over(tmp_path, running, fake("Read"), slots=CallLimiter(2, queue_s=AT_ONCE_S))

    results: list[ToolResult] = []
    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(pipeline.call, "Bash", NOTHING, ctx())
            await running.started.wait()
            await anyio.wait_all_tasks_blocked()

        results.append(await pipeline.call("Read", NOTHING, ctx()))
        release.set()

    assert [result.is_error for result in results] == [False]
    assert len(running.calls) == 6


class Hanging:
    """An upstream that answers nobody until it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.release = anyio.Event()

    async def call(self, slots: CallLimiter, principal: str) -> None:
        async with slots.of(ctx(principal)) as place:
            with place.ctx.while_elsewhere():
                self.asked += 1
                await self.release.wait()


# ISO-1
async def test_a_call_that_an_upstream_works_on_leaves_its_place_to_others_meanwhile() -> None:
    slots = CallLimiter(2, 3, queue_s=AT_ONCE_S)
    hanging = Hanging()
    others = Crowd(slots, to_refuse=1)

    async with anyio.create_task_group() as group:
        for principal in ("one", "one", "one", "two"):
            group.start_soon(hanging.call, slots, principal)
        await anyio.wait_all_tasks_blocked()
        for name in ("a", "b", "c"):
            group.start_soon(others.call, name, ctx())
        await others.all_refused.wait()
        hanging.release.set()
        others.release.set()

    assert (hanging.asked, others.running) == (4, ["a", "b"])
    async with slots.of(ctx()), slots.of(ctx()):
        with pytest.raises(ToolError):
            async with slots.of(ctx()):
                pass


async def test_of_very_many_calls_that_upstreams_work_on_the_last_ones_keep_their_places() -> None:
    slots = CallLimiter(2, queue_s=AT_ONCE_S)
    hanging = Hanging()
    refused = Crowd(slots, to_refuse=1)

    async with anyio.create_task_group() as group:
        for _ in range(MAX_AWAY + 2):
            group.start_soon(hanging.call, slots, "one")
            await anyio.wait_all_tasks_blocked()
        group.start_soon(refused.call, "one too many", ctx())
        await refused.all_refused.wait()
        hanging.release.set()

    assert (hanging.asked, [error.code for error in refused.refused]) == (MAX_AWAY + 2, [ErrorCode.BUSY])
    async with slots.of(ctx()), slots.of(ctx()):
        pass
