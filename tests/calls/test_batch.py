"""What one model turn asks for at once: the order of admission, what stops the rest, and what each call is told."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goat_mcp.calls.batch import BatchOutcome
from goat_mcp.calls.extensions import CallNext
from goat_mcp.calls.hooks import Hooks, PreToolUse
from goat_mcp.calls.permissions.approval import ALLOW_ONCE, DENY
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.calls.permissions.permission import Permission
from goat_mcp.calls.pipeline import CallRequest, Pipeline
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form, Reply
from goat_mcp.core.errors import UpstreamError
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolSpec
from goat_mcp.core.tool import Access
from tests.calls.test_pipeline import audit_lines, pipeline_over
from tests.repetitions import examples
from tests.tool_doubles import FakeTool, fake, spec

pytestmark = pytest.mark.anyio

BOUND_S = 60
INTERRUPTED = "not run: the batch was interrupted (the user refused Write)"


class Person:
    """Answers forms as told, one after the other; counts how many are shown at a time."""

    def __init__(self, *replies: Answer | Reply | str) -> None:
        self.replies = list(replies)
        self.asked: list[str] = []
        self.most_at_once = 0
        self._open = 0

    async def ask(self, form: Form) -> Answer:
        self.asked.append(form.message)
        self._open += 1
        self.most_at_once = max(self.most_at_once, self._open)
        await anyio.wait_all_tasks_blocked()
        self._open -= 1
        reply = self.replies.pop(0)
        if isinstance(reply, str) and not isinstance(reply, Reply):
            return Answer(Reply.ACCEPTED, {form.questions[0].name: reply})
        return reply if isinstance(reply, Answer) else Answer(reply)


ELICIT = Permission(approval=Approval.ELICIT)


async def run(
    pipeline: Pipeline, *names: str, person: Person | None = None, cancelled: anyio.Event | None = None
) -> BatchOutcome:
    ctx = ToolContext(call_id="c", ask=person.ask) if person else ToolContext(call_id="c")
    with anyio.fail_after(BOUND_S):
        return await pipeline.call_all([CallRequest(name, {}, ctx) for name in names], cancelled=cancelled)


def first_lines(outcome: BatchOutcome) -> list[str]:
    return [result.text.splitlines()[0] for result in outcome.results]


@pytest.mark.parametrize("reply", [Reply.DECLINED, Reply.CANCELLED, DENY], ids=["declined", "cancelled", "denied"])
async def test_what_a_person_refuses_stops_the_calls_after_it(tmp_path: Path, reply: Reply | str) -> None:
    before, write, after = fake("Read"), fake("Write", SideEffect.MUTATING), fake("Grep")
    pipeline = pipeline_over(tmp_path, before, write, after, permission=ELICIT)

    outcome = await run(pipeline, "Read", "Write", "Grep", "Read", person=Person(reply))

    assert first_lines(outcome) == ["done", "the user refused Write", INTERRUPTED, INTERRUPTED]
    assert [result.error_code for result in outcome.results] == [None, "E_PERMISSION", "E_CANCELLED", "E_CANCELLED"]
    assert (outcome.stopped_by, outcome.interrupted) == ("interrupted", True)
    assert (len(before.calls), write.calls, after.calls) == (1, [], [])


async def test_a_refusal_is_marked_so_that_a_host_can_hand_over_to_the_person(tmp_path: Path) -> None:
    pipeline = pipeline_over(tmp_path, fake("Write", SideEffect.MUTATING), permission=ELICIT)

    outcome = await run(pipeline, "Write", person=Person(DENY))

    assert outcome.results[0].facts is not None
    assert outcome.results[0].facts["interrupt"] is True


@pytest.mark.parametrize("reply", [Reply.UNAVAILABLE, Reply.UNANSWERED])
async def test_where_nobody_answers_the_others_run(tmp_path: Path, reply: Reply) -> None:
    pipeline = pipeline_over(tmp_path, fake("Write", SideEffect.MUTATING), fake("Grep"), permission=ELICIT)

    outcome = await run(pipeline, "Write", "Grep", person=Person(reply))

    assert [result.error_code for result in outcome.results] == ["E_PERMISSION", None]
    assert outcome.stopped_by is None


@pytest.mark.parametrize("interrupt", [True, False])
async def test_a_hook_says_whether_its_denial_stops_the_rest(tmp_path: Path, interrupt: bool) -> None:
    async def refuse(spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> PreToolUse:
        return PreToolUse(deny="not today", interrupt=interrupt) if spec.name == "Write" else PreToolUse()

    pipeline = pipeline_over(tmp_path, fake("Write"), fake("Grep"), hooks=Hooks(before=(refuse,)))

    outcome = await run(pipeline, "Write", "Grep")

    rest = "not run: the batch was interrupted (not today)" if interrupt else "done"
    assert first_lines(outcome) == ["not today", rest]
    assert outcome.interrupted is interrupt


async def test_what_runs_when_a_call_is_refused_is_let_finish(tmp_path: Path) -> None:
    release = anyio.Event()
    slow = fake("Slow", answer=text_result("slow"), release=release)
    waiting = fake("Waiting", touches=Access(writes=("/a",)))
    holding = fake("Holding", touches=Access(writes=("/a",)), release=release)

    class Asker(Person):
        async def ask(self, form: Form) -> Answer:
            await holding.started.wait()
            await anyio.wait_all_tasks_blocked()
            return await super().ask(form)

    pipeline = pipeline_over(tmp_path, slow, holding, waiting, fake("Write", SideEffect.MUTATING), permission=ELICIT)
    outcomes: list[BatchOutcome] = []

    async def run_it() -> None:
        outcomes.append(await run(pipeline, "Slow", "Holding", "Waiting", "Write", person=Asker(DENY)))

    async with anyio.create_task_group() as group:
        group.start_soon(run_it)
        await slow.started.wait()
        await anyio.wait_all_tasks_blocked()
        release.set()

    assert first_lines(outcomes[0]) == ["slow", "done", INTERRUPTED, "the user refused Write"]
    assert waiting.calls == []


async def test_a_person_is_asked_one_thing_at_a_time_and_in_request_order(tmp_path: Path) -> None:
    tools = [fake(name, SideEffect.MUTATING) for name in ("Write", "Edit", "NotebookEdit")]
    person = Person(ALLOW_ONCE, ALLOW_ONCE, ALLOW_ONCE)

    outcome = await run(
        pipeline_over(tmp_path, *tools, permission=ELICIT), "Edit", "Write", "NotebookEdit", person=person
    )

    first_words = [message.split(" (")[0] for message in person.asked]
    assert first_words == ["Allow Edit?", "Allow Write?", "Allow NotebookEdit?"]
    assert person.most_at_once == 1
    assert first_lines(outcome) == ["done"] * 3


async def test_calls_of_one_file_run_in_request_order(tmp_path: Path) -> None:
    order: list[str] = []

    class Noting(FakeTool):
        async def execute(self, input: Any, ctx: ToolContext) -> ToolResult:
            await anyio.wait_all_tasks_blocked()
            order.append(self.spec.name)
            return text_result(self.spec.name)

    touches = Access(writes=("/a",))
    tools = [Noting(fake(name).spec, touches=touches) for name in ("One", "Two", "Three")]

    await run(pipeline_over(tmp_path, *tools), "Two", "Three", "One")

    assert order == ["Two", "Three", "One"]


async def test_a_call_that_is_never_admitted_does_not_hold_up_the_next(tmp_path: Path) -> None:
    outcome = await run(pipeline_over(tmp_path, fake("Read")), "Nope", "Read")

    assert [result.error_code for result in outcome.results] == ["E_TOOL_NOT_FOUND", None]


async def test_an_upstreams_protocol_error_is_one_calls_failure(tmp_path: Path) -> None:
    tools = fake("mcp__x__y", answer=UpstreamError(-32050, "custom")), fake("Read")

    outcome = await run(pipeline_over(tmp_path, *tools), "mcp__x__y", "Read")

    assert first_lines(outcome) == ["custom (JSON-RPC -32050)", "done"]


async def test_a_batch_cancelled_before_it_begins_runs_nothing(tmp_path: Path) -> None:
    tool, cancelled = fake("Read"), anyio.Event()
    cancelled.set()

    outcome = await run(pipeline_over(tmp_path, tool), "Read", "Read", cancelled=cancelled)

    assert first_lines(outcome) == ["operation cancelled"] * 2
    assert (outcome.stopped_by, tool.calls) == ("cancelled", [])


async def test_a_cancelled_batch_ends_what_runs_and_answers_every_call(tmp_path: Path) -> None:
    cancelled = anyio.Event()
    done, slow = fake("Done"), fake("Slow", touches=Access(writes=("/a",)), release=anyio.Event())
    waiting = fake("Waiting", touches=Access(writes=("/a",)))
    pipeline = pipeline_over(tmp_path, done, slow, waiting)
    outcomes: list[BatchOutcome] = []

    async def run_it() -> None:
        outcomes.append(await run(pipeline, "Done", "Slow", "Waiting", cancelled=cancelled))

    async with anyio.create_task_group() as group:
        group.start_soon(run_it)
        await slow.started.wait()
        await anyio.wait_all_tasks_blocked()
        cancelled.set()

    assert first_lines(outcomes[0]) == ["done", "operation cancelled while it ran", "operation cancelled"]
    assert waiting.calls == []
    assert [line["error_code"] for line in audit_lines(tmp_path) if line["event"] == "outcome"].count(
        "E_CANCELLED"
    ) == 2


async def test_a_batch_cancelled_while_a_person_is_asked_answers_every_call(tmp_path: Path) -> None:
    cancelled = anyio.Event()

    class Undecided(Person):
        async def ask(self, form: Form) -> Answer:
            cancelled.set()
            await anyio.sleep_forever()
            raise AssertionError

    pipeline = pipeline_over(tmp_path, fake("Write", SideEffect.MUTATING), fake("Read"), permission=ELICIT)

    outcome = await run(pipeline, "Write", "Read", person=Undecided(), cancelled=cancelled)

    assert first_lines(outcome) == ["operation cancelled"] * 2


KINDS = ("plain", "slow", "shared", "failing", "refused", "unknown")


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kinds=st.lists(st.sampled_from(KINDS), max_size=8))
async def test_whatever_comes_together_each_call_has_its_answer_and_nothing_begins_after_a_refusal(
    tmp_path: Path, kinds: list[str]
) -> None:
    class Slow(FakeTool):
        async def execute(self, input: Any, ctx: ToolContext) -> ToolResult:
            for _ in range(3):
                await anyio.lowlevel.checkpoint()
            return await super().execute(input, ctx)

    tools: list[FakeTool] = []
    for number, kind in enumerate(kinds):
        name = f"{kind}_{number}"
        made = {
            "plain": lambda name=name: fake(name),
            "slow": lambda name=name: Slow(spec(name)),
            "shared": lambda name=name: Slow(spec(name), touches=Access(writes=("/a",))),
            "failing": lambda name=name: fake(name, answer=RuntimeError("broken")),
            "refused": lambda name=name: fake(name, SideEffect.MUTATING),
            "unknown": lambda: None,
        }[kind]()
        tools += [made] if made is not None else []
    pipeline = pipeline_over(tmp_path, *tools, permission=ELICIT)

    outcome = await run(
        pipeline, *(f"{kind}_{number}" for number, kind in enumerate(kinds)), person=Person(*[DENY] * len(kinds))
    )

    stop = kinds.index("refused") if "refused" in kinds else len(kinds)
    own = {"failing": "E_INTERNAL", "refused": "E_PERMISSION", "unknown": "E_TOOL_NOT_FOUND"}
    codes = [result.error_code for result in outcome.results]
    began = {tool.spec.name for tool in tools if tool.calls}
    assert len(codes) == len(kinds)
    assert codes[stop + 1 :] == ["E_CANCELLED"] * len(codes[stop + 1 :])
    assert not {f"{kind}_{number}" for number, kind in enumerate(kinds) if number >= stop} & began
    for kind, code in zip(kinds[: stop + 1], codes[: stop + 1], strict=True):
        waited_for_another = kind == "shared" and code == "E_CANCELLED" and stop < len(kinds)
        assert waited_for_another or code == own.get(kind)


async def test_an_extension_that_awaits_after_a_refusal_still_tells_of_it(tmp_path: Path) -> None:
    async def slow_to_leave(
        spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext, call_next: CallNext
    ) -> ToolResult:
        try:
            return await call_next(arguments)
        finally:
            await anyio.lowlevel.checkpoint()

    write = fake("Write", SideEffect.MUTATING)
    pipeline = pipeline_over(tmp_path, write, permission=ELICIT, layers=(slow_to_leave,))

    assert first_lines(await run(pipeline, "Write", "Write", person=Person(DENY)))[0] == "the user refused Write"


async def test_waiting_for_a_person_costs_the_next_call_none_of_its_time(tmp_path: Path) -> None:
    left: list[float] = []

    class Timing(FakeTool):
        async def execute(self, input: Any, ctx: ToolContext) -> ToolResult:
            left.append(ctx.wait_left_s())
            return text_result("done")

    long_ago = ToolContext(call_id="c", started_at_s=-1_000_000.0)
    await pipeline_over(tmp_path, Timing(fake("Read").spec)).call_all([CallRequest("Read", {}, long_ago)])

    assert left[0] > 40
