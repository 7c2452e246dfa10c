"""Which calls become background tasks, and what their callers are answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.calls.concurrency_limiter import CallLimiter
from goat_mcp.calls.long_calls import LongCalls
from goat_mcp.calls.pipeline import CallRequest, Pipeline
from goat_mcp.catalog.catalog import Catalog
from goat_mcp.commands.tasks import Task, TaskManager, TaskStatus
from goat_mcp.core.context import AnswerNow, ToolContext
from goat_mcp.core.elicitation import Form, Reply
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.rights import Rights
from goat_mcp.state.directory import StateDirectory
from tests.calls.test_pipeline import pipeline_over
from tests.tool_doubles import FakeTool, fake, spec

pytestmark = pytest.mark.anyio
AFTER_S = 0.05
BOUND_S = 30.0


@dataclass(eq=False)
class Elsewhere(FakeTool):
    """A tool that an upstream runs until `release`."""

    runs_there: bool = True
    reply: Reply | None = None

    async def execute(self, input: Any, ctx: ToolContext) -> ToolResult:
        with ctx.while_elsewhere(self.spec if self.runs_there else None):
            answer = await super().execute(input, ctx)
            if ctx.is_left():
                self.reply = (await ctx.ask(Form("Really?", ()))).reply
                await ctx.progress(2, 3, "nearly")
        return answer


@dataclass
class Client:
    """Is answered once: with the result, or before it."""

    answered: list[ToolResult] = field(default_factory=list[ToolResult])
    has_answer: anyio.Event = field(default_factory=anyio.Event)

    def leave(self, call_id: str) -> AnswerNow | None:
        async def answer(result: ToolResult) -> None:
            self.answered.append(result)
            self.has_answer.set()

        return answer if call_id == "c" else None

    def context(self, **members: Any) -> ToolContext:
        return ToolContext(call_id="c", leave_client=self.leave, **members)

    async def handle(self) -> ToolResult:
        with anyio.fail_after(BOUND_S):
            await self.has_answer.wait()
        return self.answered[0]


@dataclass
class Ground:
    pipeline: Pipeline
    tasks: TaskManager
    slow: Elsewhere
    long: LongCalls
    release: anyio.Event
    calls: list[asyncio.Task[ToolResult]] = field(default_factory=list[asyncio.Task[ToolResult]])

    def start(self, ctx: ToolContext) -> None:
        self.calls.append(asyncio.create_task(self.pipeline.call("slow", {}, ctx)))

    async def ended(self, handle: ToolResult) -> Task:
        assert handle.task_id is not None
        task = await self.tasks.find(handle.task_id, "local")
        with anyio.fail_after(BOUND_S):
            await task.work.wait(None)
        return task


@asynccontextmanager
async def ground(folder: Path, *, max_running: int = 32, **slow: Any) -> AsyncGenerator[Ground]:
    release = anyio.Event()
    tool = Elsewhere(spec("slow"), release=release, **slow)
    tasks = TaskManager(StateDirectory(folder / "state"), "w", max_running=max_running)
    slots = CallLimiter()
    pipeline = pipeline_over(folder, tool, fake("TaskOutput"), fake("TaskStop"), slots=slots)
    assert isinstance(pipeline.catalog, Catalog)
    long = LongCalls(slots, pipeline.catalog, lambda: tasks, after_s=AFTER_S, again_after_s=AFTER_S)
    on = Ground(replace(pipeline, long_calls=long), tasks, tool, long, release)
    yield on
    await tasks.stop_all()
    await asyncio.gather(*on.calls)


async def test_the_caller_is_answered_and_the_result_is_the_tasks(tmp_path: Path) -> None:
    answer, client = text_result("the result"), Client()
    async with ground(tmp_path, answer=answer) as on:
        on.start(client.context())
        handle = await client.handle()
        shown = [permit.tool for permit in on.pipeline.slots.permits]
        on.release.set()
        task = await on.ended(handle)

    outcome = task.work.outcome
    assert handle.text.startswith(f"Task started: {task.id}\n[slow is still running after ")
    assert outcome is not None and (outcome.status, outcome.result) == (TaskStatus.COMPLETED, answer)
    assert shown == [], "it is shown as a task from then on"
    assert on.slow.reply is Reply.UNAVAILABLE, "nobody can be asked"
    assert len(client.answered) == 1


async def test_progress_since_then_is_the_tasks_output_while_it_runs(tmp_path: Path) -> None:
    heard, client = list[float](), Client()

    async def progress(done: float, total: float | None = None, message: str | None = None, **more: Any) -> None:
        heard.append(done)

    async with ground(tmp_path) as on:
        on.start(client.context(progress=progress, wants_progress=True))
        task = await on.tasks.find((await client.handle()).task_id or "", "local")
        before = list(heard)
        (call,) = on.long.by_call_id.values()
        await call.heard(1, 3, "step one")
        new, nothing = task.new_output("reader", 1000).text, task.new_output("reader", 1000).text
        on.release.set()

    assert new.endswith("1 of 3: step one") and nothing == ""
    assert heard == before


async def test_stopping_the_task_cancels_the_call(tmp_path: Path) -> None:
    client = Client()
    async with ground(tmp_path) as on:
        on.start(client.context())
        task = await on.tasks.find((await client.handle()).task_id or "", "local")
        with anyio.fail_after(BOUND_S):
            await on.tasks.stop(task)

    outcome = task.work.outcome
    assert outcome is not None and outcome.status is TaskStatus.STOPPED
    assert "may have taken effect" in outcome.reason


async def test_a_call_whose_caller_cannot_be_answered_early_goes_on(tmp_path: Path) -> None:
    async with ground(tmp_path) as on:
        asyncio.get_running_loop().call_later(4 * AFTER_S, on.release.set)
        result = await on.pipeline.call("slow", {}, ToolContext(call_id="c"))
        known = await on.tasks.known("local")

    assert (result.text, known) == ("done", [])


@pytest.mark.parametrize(
    ("members", "tool"),
    [
        ({"call_id": "inner"}, {}),
        ({"rights": Rights(denied=frozenset({"TaskStop"}))}, {}),
        ({}, {"runs_there": False}),
    ],
    ids=["a call within a call", "its caller may not stop tasks", "no upstream runs it"],
)
async def test_these_become_no_tasks(tmp_path: Path, members: dict[str, Any], tool: dict[str, Any]) -> None:
    client = Client()
    async with ground(tmp_path, **tool) as on:
        asyncio.get_running_loop().call_later(4 * AFTER_S, on.release.set)
        result = await on.pipeline.call("slow", {}, client.context().changed(**members))

    assert (result.text, client.answered, await on.tasks.known("local")) == ("done", [], [])


async def test_without_room_for_a_task_the_call_waits_until_there_is(tmp_path: Path) -> None:
    first, second = Client(), Client()
    async with ground(tmp_path, max_running=1) as on:
        on.start(first.context())
        task = await on.tasks.find((await first.handle()).task_id or "", "local")
        other = ToolContext(call_id="d", leave_client=lambda call_id: second.leave("c"))
        on.start(other)
        await anyio.sleep(4 * AFTER_S)
        waits = not second.answered
        await on.tasks.stop(task)
        handle = await second.handle()
        on.release.set()

    assert waits and handle.task_id not in (None, task.id)


async def test_a_batch_has_the_handle_for_its_result(tmp_path: Path) -> None:
    """Agents, and programs that embed us, as with Bash."""
    async with ground(tmp_path) as on:
        with anyio.fail_after(BOUND_S):
            batch = await on.pipeline.call_all([CallRequest("slow", {}, ToolContext(call_id="b"))])
        on.release.set()
        task = await on.ended(batch.results[0])

    outcome = task.work.outcome
    assert outcome is not None and outcome.result is not None and outcome.result.text == "done"


async def test_a_batch_that_is_cancelled_in_time_cancels_the_call(tmp_path: Path) -> None:
    cancelled = anyio.Event()
    async with ground(tmp_path, runs_there=False) as on:
        requests = [CallRequest("slow", {}, ToolContext(call_id="b"))]
        batch = asyncio.create_task(on.pipeline.call_all(requests, cancelled=cancelled))
        with anyio.fail_after(BOUND_S):
            await on.slow.started.wait()
        cancelled.set()
        outcome = await asyncio.wait_for(batch, BOUND_S)
        running = set(on.pipeline.slots.permits)

    assert (outcome.results[0].error_code, running) == ("E_CANCELLED", set())
