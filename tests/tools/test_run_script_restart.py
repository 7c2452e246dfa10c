"""A script that asked in one process and goes on in another: no call is made twice, and an answer counts once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from goat_mcp.calls.approvals.record import Verdict
from goat_mcp.calls.permissions.approval import ALLOW_ONCE, DENY
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.processes.computing.script_journal import MAX_KEPT_CHARS, AskedCall, CallOutcome, ScriptJournal
from tests.tool_doubles import FakeTool, fake
from tests.tools.script_process import NOTHING, script_process

pytestmark = pytest.mark.anyio
YES = types.ElicitResult(action="accept", content={"decision": ALLOW_ONCE})
NO = types.ElicitResult(action="accept", content={"decision": DENY})


@dataclass
class Process:
    """One of several that serve the same state directory over HTTP, as far as it knows; and a client of it."""

    client: Client
    gateway: Gateway
    looks: FakeTool
    changes: FakeTool

    async def run(self, script: str) -> types.InputRequiredResult:
        asked = await self.client.session.call_tool("run_script", {"script": script}, allow_input_required=True)
        assert isinstance(asked, types.InputRequiredResult), asked
        return asked

    async def answer(
        self, script: str, asked: types.InputRequiredResult, *replies: types.ElicitResult
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Without a reply it is "yes"; of several, all but the first are under keys that nobody asked by."""
        (key,) = asked.input_requests or {}
        keys = (key, *(f"more-{number}" for number in range(len(replies))))
        return await self.repeat(script, asked, dict(zip(keys, replies or (YES,), strict=False)))

    async def repeat(
        self, script: str, asked: types.InputRequiredResult, answers: dict[str, Any]
    ) -> types.CallToolResult | types.InputRequiredResult:
        return await self.client.session.call_tool(
            "run_script",
            {"script": script},
            input_responses=answers,
            request_state=asked.request_state,
            allow_input_required=True,
        )

    @property
    def numbers(self) -> tuple[list[Any], list[Any]]:
        """What its tools were called with."""
        return [call["n"] for call in self.looks.calls], [call["n"] for call in self.changes.calls]


@asynccontextmanager
async def process(folder: Path, settings: Mapping[str, Any] = NOTHING, **looks: Any) -> AsyncGenerator[Process]:
    served = fake("looks", SideEffect.READ_ONLY, **looks), fake("changes", SideEffect.MUTATING)
    async with script_process(folder, *served, settings=settings) as (client, gateway):
        yield Process(client, gateway, *served)


@asynccontextmanager
async def two(
    folder: Path, settings: Mapping[str, Any] = NOTHING, **looks: Any
) -> AsyncGenerator[tuple[Process, Process]]:
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(process(folder, settings, **looks))
        yield one, await stack.enter_async_context(process(folder, settings))


def text(result: types.CallToolResult | types.InputRequiredResult) -> str:
    assert isinstance(result, types.CallToolResult), result
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


async def test_another_process_goes_on_and_makes_no_call_again(tmp_path: Path) -> None:
    script = "seen = await looks(n=1)\nprint('looked')\nawait changes(n=2)\nawait looks(n=3)\nseen"
    async with two(tmp_path) as (one, other):
        here = text(await one.answer(script, await one.run(script)))
        asked = await one.run(script)
        there = text(await other.answer(script, asked))
        with pytest.raises(MCPError, match="answered before"):
            await one.answer(script, asked)

    assert there == here
    assert one.numbers == ([1, 3, 1], [2])
    assert other.numbers == ([3], [2])


async def test_a_script_that_asks_again_goes_on_again_somewhere_else(tmp_path: Path) -> None:
    script = "for n in range(3):\n    await changes(n=n)\n'end'"
    async with two(tmp_path) as (one, other):
        first = await one.run(script)
        second = await other.answer(script, first)
        assert isinstance(second, types.InputRequiredResult)
        third = await one.answer(script, second)
        assert isinstance(third, types.InputRequiredResult)
        done = text(await other.answer(script, third))

    assert done == "end"
    assert (one.numbers[1], other.numbers[1]) == ([1], [0, 2])


async def test_a_refusal_counts_in_the_other_process_too(tmp_path: Path) -> None:
    script = "await looks(n=1)\nawait changes(n=2)"
    async with two(tmp_path) as (one, other):
        failed = text(await other.answer(script, await one.run(script), NO))

    assert "line 2: RuntimeError: E_PERMISSION" in failed
    assert other.numbers == ([], [])


async def test_a_failure_before_the_question_is_the_same_failure(tmp_path: Path) -> None:
    script = (
        "try:\n    await Read(file_path='/nowhere')\nexcept RuntimeError as error:\n    print(error)\n"
        "await changes(n=2)\n'end'"
    )
    async with two(tmp_path) as (one, other):
        here = text(await one.answer(script, await one.run(script)))
        there = text(await other.answer(script, await one.run(script)))

    assert "E_" in here
    assert there == here


SIDE_BY_SIDE = """import asyncio
async def chain(n):
    await looks(n=n)
    await looks(n=n + 1)
    return await changes(n=n)
await asyncio.gather(chain(10), chain(20), looks(n=30))"""


async def test_calls_beside_the_question_end_before_it_and_are_not_made_again(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other):
        more = await other.answer(SIDE_BY_SIDE, await one.run(SIDE_BY_SIDE))
        assert isinstance(more, types.InputRequiredResult)
        text(await other.answer(SIDE_BY_SIDE, more))

    assert sorted(one.numbers[0]) == [10, 11, 20, 21, 30]
    assert (one.numbers[1], sorted(other.numbers[1])) == ([], [10, 20])
    assert other.numbers[0] == []


async def test_no_call_begins_while_the_question_is_open(tmp_path: Path) -> None:
    script = (
        "import asyncio\nasync def later():\n    await asyncio.sleep(0.3)\n    await looks(n=2)\n"
        "await asyncio.gather(changes(n=1), later())"
    )
    async with process(tmp_path) as one:
        asked = await one.run(script)
        await anyio.sleep(0.6)
        before = list(one.looks.calls)
        text(await one.answer(script, asked))

    assert before == []
    assert one.numbers == ([2], [1])


async def test_a_script_that_runs_a_call_beside_its_question_goes_on_in_its_own_process_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goat_mcp.calls.script_calls.QUIET_WITHIN_S", 0.05)
    script = "import asyncio\nawait asyncio.gather(looks(n=1), changes(n=2))\n'end'"
    release = anyio.Event()
    async with two(tmp_path, release=release) as (one, other):
        asked = await one.run(script)
        with pytest.raises(MCPError) as lost:
            await other.answer(script, asked)
        asyncio.get_running_loop().call_later(0.1, release.set)
        done = text(await one.answer(script, asked))

    assert lost.value.error.data == {"reason": "parked_call_lost", "effects": "possible"}
    assert done == "end"
    assert other.numbers == ([], [])


async def test_a_script_that_goes_another_way_the_second_time_makes_no_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It should not: nothing in a script changes between two runs. If it does, its calls may be the wrong ones."""
    took = ScriptJournal.earlier

    def other_call(self: ScriptJournal, call: AskedCall) -> CallOutcome | None:
        return took(self, AskedCall(call.tool, {**call.arguments, "changed": True}, call.number))

    monkeypatch.setattr(ScriptJournal, "earlier", other_call)
    script = "await looks(n=1)\nawait changes(n=2)"
    async with two(tmp_path, {"code": {"timeout_s": 0.3}}) as (one, other):
        failed = text(await other.answer(script, await one.run(script)))

    assert "has not made the calls again that it made before" in failed
    assert other.numbers == ([], [])


LOOK_THEN_CHANGE = "await looks(n=1)\nawait changes(n=2)\nawait looks(n=3)\n'end'"


@pytest.mark.parametrize("answers", [{}, {"a": YES, "b": YES}], ids=["none", "two"])
async def test_without_one_answer_the_question_is_put_again_and_nothing_is_made_again(
    tmp_path: Path, answers: dict[str, Any]
) -> None:
    async with two(tmp_path) as (one, other):
        asked = await one.run(LOOK_THEN_CHANGE)
        for process in (other, one, other):
            again = await process.repeat(LOOK_THEN_CHANGE, asked, answers)
            assert isinstance(again, types.InputRequiredResult)
            asked = again
        assert text(await one.answer(LOOK_THEN_CHANGE, asked)) == "end"

    assert (one.numbers, other.numbers) == (([1, 3], [2]), ([], []))


async def test_a_question_about_the_script_itself_keeps_what_it_did_before(tmp_path: Path) -> None:
    async with two(tmp_path, {"permissions": {"ask": ["run_script"]}}) as (one, other):
        about_script = await one.run(LOOK_THEN_CHANGE)
        about_change = await one.answer(LOOK_THEN_CHANGE, about_script)
        assert isinstance(about_change, types.InputRequiredResult)
        asked: Any = about_change
        for process in (other, one, other):
            if isinstance(asked, types.InputRequiredResult):
                asked = await process.answer(LOOK_THEN_CHANGE, asked)
        if isinstance(asked, types.InputRequiredResult):
            asked = await other.answer(LOOK_THEN_CHANGE, asked)

    assert text(asked) == "end"
    assert one.numbers[0].count(1) + other.numbers[0].count(1) == 1
    assert len(one.numbers[1]) + len(other.numbers[1]) == 1


@pytest.mark.parametrize("approves", [True, False])
async def test_what_was_decided_in_the_queue_cannot_be_answered_in_another_process(
    tmp_path: Path, approves: bool
) -> None:
    async with two(tmp_path) as (one, other):
        asked = await one.run(LOOK_THEN_CHANGE)
        store = one.gateway.services.approvals()
        (waiting,) = store.waiting()
        store.decide(waiting.id, Verdict(approved=approves), "the page")
        with anyio.fail_after(30):
            while approves and len(one.looks.calls) < 2:  # noqa: ASYNC110  # nothing tells that it goes on
                await anyio.sleep(0.02)
        await anyio.sleep(0.5)
        with pytest.raises(MCPError, match="answered before"):
            await other.answer(LOOK_THEN_CHANGE, asked)
        mine = text(await one.answer(LOOK_THEN_CHANGE, asked))

    assert mine == "end" if approves else "E_PERMISSION" in mine
    assert one.numbers == (([1, 3], [2]) if approves else ([1], []))
    assert other.numbers == ([], [])


async def test_after_a_decision_in_the_queue_the_client_gets_the_next_question(tmp_path: Path) -> None:
    script = "await changes(n=1)\nawait changes(n=2)\n'end'"
    async with two(tmp_path) as (one, other):
        asked = await one.run(script)
        store = one.gateway.services.approvals()
        (waiting,) = store.waiting()
        store.decide(waiting.id, Verdict(approved=True), "the page")
        with anyio.fail_after(30):
            while not one.changes.calls:  # noqa: ASYNC110  # nothing tells that it goes on
                await anyio.sleep(0.02)
        await anyio.sleep(0.5)
        more = await one.answer(script, asked)
        assert isinstance(more, types.InputRequiredResult)
        assert text(await other.answer(script, more)) == "end"

    assert (one.numbers[1], other.numbers[1]) == ([1], [2])


async def test_what_another_process_has_taken_is_not_decided_here_any_more(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other):
        asked = await one.run(LOOK_THEN_CHANGE)
        assert text(await other.answer(LOOK_THEN_CHANGE, asked)) == "end"
        await anyio.sleep(0.5)

    assert (one.numbers, other.numbers) == (([1], []), ([3], [2]))


LONG = "x" * 3000
LOOK_ALIKE = f"""import asyncio
async def first():
    await looks(n=1)
    return await changes(n='{LONG}AAA{LONG}')
async def second():
    await asyncio.sleep(0.4)
    return await changes(n='{LONG}BBB{LONG}')
await asyncio.gather(first(), second())"""


async def test_an_answer_is_for_its_own_call_and_not_for_one_that_looks_alike(tmp_path: Path) -> None:
    release = anyio.Event()
    async with two(tmp_path, release=release) as (one, other):
        asyncio.get_running_loop().call_later(0.8, release.set)
        asked = await one.run(LOOK_ALIKE)
        more = await other.answer(LOOK_ALIKE, asked)
        assert isinstance(more, types.InputRequiredResult)

    assert [call["n"].strip("x") for call in other.changes.calls] == ["BBB"]


async def test_a_tool_that_has_changed_is_asked_about_again(tmp_path: Path) -> None:
    script = "await changes(n=2)\n'end'"
    async with two(tmp_path) as (one, other):
        asked = await one.run(script)
        other.changes.spec = replace(other.changes.spec, description="Wires money.")
        again = await other.answer(script, asked)

    assert isinstance(again, types.InputRequiredResult)
    assert other.changes.calls == []


AFTER_A_REFUSAL = """import asyncio
async def first():
    await looks(n=1)
    await looks(n=9)
async def second():
    await asyncio.sleep(0.4)
    await changes(n=1)
await asyncio.gather(first(), second())"""


async def test_after_a_refusal_nothing_begins_in_the_other_process_either(tmp_path: Path) -> None:
    release = anyio.Event()
    async with two(tmp_path, release=release) as (one, other):
        asyncio.get_running_loop().call_later(0.8, release.set)
        failed = text(await other.answer(AFTER_A_REFUSAL, await one.run(AFTER_A_REFUSAL), NO))

    assert "E_PERMISSION" in failed or "E_CANCELLED" in failed
    assert other.numbers == ([], [])


async def test_many_calls_side_by_side_leave_room_for_the_one_that_asked(tmp_path: Path) -> None:
    script = (
        "import asyncio\nasync def chain(n):\n    await looks(n=n)\n    await changes(n=n)\n"
        "await asyncio.gather(*[chain(n) for n in range(20)])\n'end'"
    )
    async with two(tmp_path) as (one, other):
        asked: Any = await one.run(script)
        with anyio.fail_after(60):
            more = await other.answer(script, asked)

    assert isinstance(more, types.InputRequiredResult)
    assert len(other.changes.calls) == 1


async def test_the_client_is_asked_ten_times_in_all_processes_together(tmp_path: Path) -> None:
    script = "for n in range(20):\n    await changes(n=n)"
    async with two(tmp_path) as (one, other):
        asked: Any = await one.run(script)
        rounds = 1
        while isinstance(more := await (other, one)[rounds % 2].answer(script, asked), types.InputRequiredResult):
            asked, rounds = more, rounds + 1

    assert rounds == 10
    assert sorted(one.numbers[1] + other.numbers[1]) == list(range(10))


async def test_another_script_cannot_be_run_with_the_answer(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other):
        asked = await one.run("await changes(n=1)")
        with pytest.raises(MCPError):
            await other.answer("await changes(n=1)\nawait changes(n=2)", asked)

    assert other.numbers == ([], [])


async def test_a_record_of_another_version_ends_the_script_before_its_first_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def another_version(self: ScriptJournal, asking: AskedCall) -> str:
        return "AAAA"

    monkeypatch.setattr(ScriptJournal, "record", another_version)
    async with two(tmp_path) as (one, other):
        failed = text(await other.answer(LOOK_THEN_CHANGE, await one.run(LOOK_THEN_CHANGE)))

    assert "begun by another version of goat-mcp" in failed
    assert other.numbers == ([], [])


def test_a_journal_says_what_was_noted_by_tool_arguments_and_number() -> None:
    journal = ScriptJournal()
    arguments = {"a": 1, "b": "\u2028\n"}
    first, second = (journal.asked("looks", arguments) for _ in range(2))
    journal.note(second, CallOutcome(None, "E_TOOL: no"))
    noted = journal.note(first, CallOutcome({"x": (1, "\n"), "y": {1: 2}}))

    read = ScriptJournal.read(journal.record(journal.asked("changes", {})))

    assert (read.began, read.asking) == (journal.began, AskedCall("changes", {}, 1).key)
    again = [read.asked("looks", {"b": "\u2028\n", "a": 1}) for _ in range(3)]
    assert [read.earlier(call) for call in again] == [noted, CallOutcome(None, "E_TOOL: no"), None]
    assert noted == CallOutcome({"x": [1, "\n"], "y": {"1": 2}})


@pytest.mark.parametrize("size", [MAX_KEPT_CHARS + 1, 200_000])
def test_a_journal_that_is_too_large_has_no_record(size: int) -> None:
    journal = ScriptJournal()
    packs_badly = "".join(chr(0x4E00 + (number * 7919) % 20_000) for number in range(size))
    journal.note(journal.asked("looks", {}), CallOutcome(packs_badly))
    journal.note(journal.asked("looks", {}), CallOutcome("small"))

    assert journal.record(journal.asked("changes", {})) == ""


def test_what_is_no_record_is_refused() -> None:
    with pytest.raises(ValueError, match="no record"):
        ScriptJournal.read("AAAA")
