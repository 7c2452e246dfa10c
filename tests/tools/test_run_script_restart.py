"""A script that asked in one process and goes on in another: no call is made twice, and an answer counts once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from goat_mcp.calls.permissions.approval import ALLOW_ONCE, DENY
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.processes.computing.script_journal import MAX_KEPT_CHARS, CallOutcome, ScriptJournal
from goat_mcp.server.adapter import Adapter
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from tests.server.asking import accepts
from tests.tool_doubles import FakeTool, fake

pytestmark = pytest.mark.anyio
YES = types.ElicitResult(action="accept", content={"decision": ALLOW_ONCE})
NO = types.ElicitResult(action="accept", content={"decision": DENY})


@dataclass
class Process:
    """One of several that serve the same state directory over HTTP, as far as it knows; and a client of it."""

    client: Client
    looks: FakeTool
    changes: FakeTool

    async def run(self, script: str) -> types.InputRequiredResult:
        asked = await self.client.session.call_tool("run_script", {"script": script}, allow_input_required=True)
        assert isinstance(asked, types.InputRequiredResult), asked
        return asked

    async def answer(
        self, script: str, asked: types.InputRequiredResult, reply: types.ElicitResult = YES
    ) -> types.CallToolResult | types.InputRequiredResult:
        (key,) = asked.input_requests or {}
        return await self.client.session.call_tool(
            "run_script",
            {"script": script},
            input_responses={key: reply},
            request_state=asked.request_state,
            allow_input_required=True,
        )

    @property
    def numbers(self) -> tuple[list[Any], list[Any]]:
        """What its tools were called with."""
        return [call["n"] for call in self.looks.calls], [call["n"] for call in self.changes.calls]


@asynccontextmanager
async def process(folder: Path, **looks: Any) -> AsyncGenerator[Process]:
    served = fake("looks", SideEffect.READ_ONLY, **looks), fake("changes", SideEffect.MUTATING)
    gateway = Gateway(
        Settings.model_validate({"workspace": [folder], "catalog": {"toolsets": ["code"]}}),
        approval=Approval.ELICIT,
        state=StateDirectory(folder / "state"),
    )
    for tool in served:
        gateway.registry.register(tool)
    adapter = Adapter(gateway, "http")
    async with gateway.running(), anyio.create_task_group() as group:
        await group.start(adapter.run)
        async with Client(adapter.server, mode="2026-07-28", elicitation_callback=accepts(decision=DENY)) as client:
            yield Process(client, *served)
        group.cancel_scope.cancel()


@asynccontextmanager
async def two(folder: Path, **looks: Any) -> AsyncGenerator[tuple[Process, Process]]:
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(process(folder, **looks))
        yield one, await stack.enter_async_context(process(folder))


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
    monkeypatch.setattr("goat_mcp.tools.run_script.QUIET_WITHIN_S", 0.05)
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
    monkeypatch.setattr("goat_mcp.tools.run_script.CATCH_UP_WITHIN_S", 0.05)
    took = ScriptJournal.earlier

    def other_call(self: ScriptJournal, tool: str, arguments: Mapping[str, Any]) -> CallOutcome | None:
        return took(self, tool, {**arguments, "changed": True})

    monkeypatch.setattr(ScriptJournal, "earlier", other_call)
    script = "await looks(n=1)\nawait changes(n=2)"
    async with two(tmp_path) as (one, other):
        failed = text(await other.answer(script, await one.run(script)))

    assert "has not made the calls again that it made before" in failed
    assert other.numbers == ([], [])


async def test_another_script_cannot_be_run_with_the_answer(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other):
        asked = await one.run("await changes(n=1)")
        with pytest.raises(MCPError):
            await other.answer("await changes(n=1)\nawait changes(n=2)", asked)

    assert other.numbers == ([], [])


def test_a_journal_says_what_was_noted_once_for_each_time() -> None:
    journal = ScriptJournal()
    journal.note("looks", {"a": 1, "b": "\u2028\n"}, CallOutcome({"x": [1, "\n"]}))
    journal.note("looks", {"a": 1, "b": "\u2028\n"}, CallOutcome(None, "E_TOOL: no"))

    read = ScriptJournal.read(journal.record())

    assert read.began == journal.began
    found = [read.earlier("looks", {"b": "\u2028\n", "a": 1}) for _ in range(3)]
    assert found == [CallOutcome({"x": [1, "\n"]}), CallOutcome(None, "E_TOOL: no"), None]


@pytest.mark.parametrize("size", [MAX_KEPT_CHARS + 1, 200_000])
def test_a_journal_that_is_too_large_has_no_record(size: int) -> None:
    journal = ScriptJournal()
    packs_badly = "".join(chr(0x4E00 + (number * 7919) % 20_000) for number in range(size))
    journal.note("looks", {}, CallOutcome(packs_badly))
    journal.note("looks", {}, CallOutcome("small"))

    assert journal.record() == ""


def test_what_is_no_record_is_refused() -> None:
    with pytest.raises(ValueError, match="no record"):
        ScriptJournal.read("AAAA")
