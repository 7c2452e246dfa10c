"""A call of a script that a person is asked about: the script waits, and goes on with the answer (R-PERM-4, DEF-3).

How another process goes on with it: `test_run_script_restart`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from goat_mcp.calls.permissions.approval import ALLOW_ONCE, DENY
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form, Reply
from goat_mcp.core.side_effect import SideEffect
from tests.tool_doubles import FakeTool, fake
from tests.tools.script_gateway import scripts
from tests.tools.script_process import script_process

pytestmark = pytest.mark.anyio
SCRIPT = "await looks(n=1)\nprint('looked')\nawait changes(n=2)\nawait looks(n=3)\n'end'"


def tools() -> tuple[FakeTool, FakeTool]:
    return fake("looks", SideEffect.READ_ONLY), fake("changes", SideEffect.MUTATING)


@asynccontextmanager
async def process(folder: Path, *served: FakeTool) -> AsyncGenerator[Client]:
    async with script_process(folder, *served) as (client, _):
        yield client


async def begin(client: Client, script: str = SCRIPT) -> types.InputRequiredResult:
    asked = await client.session.call_tool("run_script", {"script": script}, allow_input_required=True)
    assert isinstance(asked, types.InputRequiredResult), asked
    return asked


async def answer(client: Client, asked: types.InputRequiredResult, decision: str) -> types.CallToolResult:
    (key,) = asked.input_requests or {}
    done = await client.session.call_tool(
        "run_script",
        {"script": SCRIPT},
        input_responses={key: types.ElicitResult(action="accept", content={"decision": decision})},
        request_state=asked.request_state,
        allow_input_required=True,
    )
    assert isinstance(done, types.CallToolResult)
    return done


def text(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


async def test_the_script_goes_on_with_the_answer_and_makes_no_call_again(tmp_path: Path) -> None:
    looks, changes = tools()
    async with process(tmp_path, looks, changes) as client:
        asked = await begin(client)
        before = (list(looks.calls), list(changes.calls))
        done = await answer(client, asked, ALLOW_ONCE)

    assert before == ([{"n": 1}], [])
    assert (looks.calls, changes.calls) == ([{"n": 1}, {"n": 3}], [{"n": 2}])
    assert text(done) == "looked\nend"


async def test_a_replayed_answer_counts_once(tmp_path: Path) -> None:
    looks, changes = tools()
    async with process(tmp_path, looks, changes) as client:
        asked = await begin(client)
        await answer(client, asked, ALLOW_ONCE)
        with pytest.raises(MCPError, match="answered before"):
            await answer(client, asked, ALLOW_ONCE)

    assert (looks.calls, changes.calls) == ([{"n": 1}, {"n": 3}], [{"n": 2}])


async def test_a_refusal_reaches_the_script_as_an_exception(tmp_path: Path) -> None:
    looks, changes = tools()
    async with process(tmp_path, looks, changes) as client:
        done = await answer(client, await begin(client), DENY)

    assert done.is_error
    assert "line 3: RuntimeError: E_PERMISSION" in text(done)
    assert changes.calls == []


async def test_the_host_that_saw_only_the_script_is_not_taken_to_have_asked(tmp_path: Path) -> None:
    _, changes = tools()
    forms: list[Form] = []

    async def declines(form: Form) -> Answer:
        forms.append(form)
        return Answer(Reply.DECLINED)

    async with scripts(tmp_path, changes) as s:  # approval: host
        failed = await s.failure("await changes(path='x')", ToolContext(call_id="c", ask=declines))

    assert "changes" in forms[0].message
    assert "E_PERMISSION" in failed
    assert changes.calls == []


SIDE_BY_SIDE = """import asyncio
async def attempt(n):
    try:
        return await changes(n=n)
    except RuntimeError as error:
        return str(error).split(":")[0]
await asyncio.gather(*[attempt(n) for n in range(4)])"""


async def test_calls_side_by_side_are_asked_about_one_at_a_time(tmp_path: Path) -> None:
    _, changes = tools()
    open_forms, most = 0, 0

    async def allows(form: Form) -> Answer:
        nonlocal open_forms, most
        open_forms += 1
        most = max(most, open_forms)
        await anyio.sleep(0.02)
        open_forms -= 1
        return Answer(Reply.ACCEPTED, {"decision": ALLOW_ONCE})

    async with scripts(tmp_path, changes) as s:
        await s.text(SIDE_BY_SIDE, ToolContext(call_id="c", ask=allows))

    assert most == 1
    assert sorted(call["n"] for call in changes.calls) == [0, 1, 2, 3]


@pytest.mark.parametrize("refusal", [Answer(Reply.DECLINED), Answer(Reply.ACCEPTED, {"decision": DENY})])
async def test_nobody_is_asked_about_the_others_after_a_refusal(tmp_path: Path, refusal: Answer) -> None:
    _, changes = tools()
    forms: list[Form] = []

    async def refuses(form: Form) -> Answer:
        forms.append(form)
        await anyio.sleep(0.02)
        return refusal

    async with scripts(tmp_path, changes) as s:
        await s.text(SIDE_BY_SIDE, ToolContext(call_id="c", ask=refuses))

    assert len(forms) == 1
    assert changes.calls == []


async def test_a_call_that_ends_after_a_refusal_lets_no_other_start(tmp_path: Path) -> None:
    release = anyio.Event()
    looks, changes = fake("looks", SideEffect.READ_ONLY, release=release), fake("changes", SideEffect.MUTATING)
    script = """import asyncio
async def refused():
    try:
        await changes(n=1)
    except RuntimeError:
        pass
await asyncio.gather(looks(n=1), refused())
await looks(n=2)"""

    async def declines(form: Form) -> Answer:
        asyncio.get_running_loop().call_later(0.1, release.set)  # after the refused call has ended
        return Answer(Reply.DECLINED)

    async with scripts(tmp_path, looks, changes) as s:
        failed = await s.failure(script, ToolContext(call_id="c", ask=declines))

    assert "E_CANCELLED" in failed
    assert looks.calls == [{"n": 1}]


async def test_todos_of_a_script_are_the_clients(tmp_path: Path) -> None:
    todos = [{"content": "Read it", "status": "pending", "activeForm": "Reading it"}]
    async with scripts(tmp_path) as s:
        await s.text(f"await TodoWrite(todos={todos!r})")
        kept = await s.gateway.call("TodoWrite", {"todos": []}, ToolContext(call_id="d"))

    assert kept.facts is not None
    assert [todo["content"] for todo in kept.facts["oldTodos"]] == ["Read it"]


async def test_the_form_says_that_a_script_asks(tmp_path: Path) -> None:
    async with process(tmp_path, *tools()) as client:
        asked = await begin(client)

    (question,) = (asked.input_requests or {}).values()
    assert isinstance(question.params, types.ElicitRequestFormParams)
    assert question.params.message.startswith("For a script: ")
