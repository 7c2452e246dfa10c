"""Several clients of one HTTP server, each with a question open: whose answer counts, and what a lost client leaves."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import MCPError
from mcp.client.context import ClientRequestContext

from tests.e2e.conftest import fill
from tests.e2e.goat import HttpGoat, Launch, connected, http_goat
from tests.e2e.test_asking import CHECKS, ENGINE, WHICH_CHECKS, WHICH_ENGINE

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.matrix]

BOUND_S = 60.0
QUESTION = {"questions": [ENGINE]}


@pytest.fixture(scope="module")
def goat(tmp_path_factory: pytest.TempPathFactory) -> Generator[HttpGoat]:
    """It asks before it runs a command."""
    folder = tmp_path_factory.mktemp("http")
    with http_goat(Launch(folder, fill(folder / "workspace"))) as goat:
        yield goat


def named(name: str) -> dict[str, Any]:
    return {"client_info": types.Implementation(name=name, version="1.0.0")}


@pytest.mark.parametrize(
    ("eras", "names"),
    [
        (("legacy", "legacy"), ("one", "two")),
        (("2026-07-28", "2026-07-28"), ("one", "two")),
        (("2026-07-28", "2026-07-28"), ("two windows", "two windows")),
        (("legacy", "2026-07-28"), ("same", "same")),
    ],
)
async def test_questions_asked_at_the_same_time_do_not_mix(
    goat: HttpGoat, eras: tuple[str, str], names: tuple[str, str]
) -> None:
    answers = ("PostgreSQL", "SQLite")
    seen = [anyio.Event(), anyio.Event()]
    got: dict[int, Any] = {}

    async def ask(number: int) -> None:
        async def fills_in(ctx: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
            seen[number].set()
            await seen[1 - number].wait()
            return types.ElicitResult(action="accept", content={"q1": answers[number]})

        async with connected(goat, eras[number], elicitation_callback=fills_in, **named(names[number])) as client:
            result = await client.call_tool("AskUserQuestion", QUESTION)
        got[number] = result.structured_content

    with anyio.fail_after(BOUND_S):
        async with anyio.create_task_group() as group:
            group.start_soon(ask, 0)
            group.start_soon(ask, 1)

    assert got == {
        number: {"answers": {WHICH_ENGINE: answer}, "status": "answered"} for number, answer in enumerate(answers)
    }


# ERA-5
async def test_an_answer_that_another_session_gives_again_is_refused(goat: HttpGoat) -> None:
    async def nobody(ctx: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        raise AssertionError("the test answers itself")

    async with (
        connected(goat, "2026-07-28", elicitation_callback=nobody, **named("asked")) as asked,
        connected(goat, "2026-07-28", elicitation_callback=nobody, **named("thief")) as thief,
    ):
        question = await asked.session.call_tool("AskUserQuestion", QUESTION, allow_input_required=True)
        assert isinstance(question, types.InputRequiredResult) and question.input_requests is not None
        (key,) = question.input_requests

        async def answer(client: Any, label: str) -> Any:
            given = {key: types.ElicitResult(action="accept", content={"q1": label})}
            return await client.session.call_tool(
                "AskUserQuestion",
                QUESTION,
                input_responses=given,
                request_state=question.request_state,
                allow_input_required=True,
            )

        with pytest.raises(MCPError) as refused:
            await answer(thief, "SQLite")
        answered = await answer(asked, "PostgreSQL")
        with pytest.raises(MCPError) as replayed:
            await answer(asked, "SQLite")

    assert refused.value.error.code == replayed.value.error.code == types.INVALID_PARAMS
    assert answered.structured_content["answers"] == {WHICH_ENGINE: "PostgreSQL"}


class RawSession:
    """A handshake-era session over plain HTTP, so that a stream can break off, and an answer come from elsewhere."""

    def __init__(self, http: httpx2.AsyncClient, goat: HttpGoat) -> None:
        self._http, self._goat = http, goat
        self._headers = {**goat.headers, "Accept": "application/json, text/event-stream"}
        self._calls = 0

    async def handshake(self, revision: str = "2025-11-25") -> None:
        client = {"name": "e2e-raw", "version": "1.0.0"}
        hello: dict[str, Any] = {"protocolVersion": revision, "capabilities": {"elicitation": {}}, "clientInfo": client}
        answer = await self._post({"id": 0, "method": "initialize", "params": hello})
        self._headers["Mcp-Session-Id"] = answer.headers["mcp-session-id"]
        await self._post({"method": "notifications/initialized"})

    async def answer(self, request_id: Any, **content: Any) -> int:
        return (await self._post({"id": request_id, "result": {"action": "accept", "content": content}})).status_code

    @asynccontextmanager
    async def calling(self, tool: str, arguments: Mapping[str, Any]) -> AsyncGenerator[Callable[[], Awaitable[Any]]]:
        """Start a call; gives the way to its next message that is no notification."""
        params = {"name": tool, "arguments": dict(arguments), "_meta": {"progressToken": "p"}}
        self._calls += 1
        body = {"jsonrpc": "2.0", "id": self._calls, "method": "tools/call", "params": params}
        async with self._http.stream("POST", self._goat.url, json=body, headers=self._headers) as response:
            lines = response.aiter_lines()

            async def next_message() -> Any:
                async for line in lines:
                    if line.startswith("data:") and (data := line.removeprefix("data:").strip()):
                        message = json.loads(data)
                        if not message.get("method", "").startswith("notifications/"):
                            return message
                raise AssertionError("the stream ended")

            yield next_message

    async def _post(self, message: Mapping[str, Any]) -> Any:
        return await self._http.post(self._goat.url, json={"jsonrpc": "2.0", **message}, headers=self._headers)


@asynccontextmanager
async def raw_session(goat: HttpGoat, revision: str = "2025-11-25") -> AsyncGenerator[RawSession]:
    async with httpx2.AsyncClient(timeout=BOUND_S) as http:
        session = RawSession(http, goat)
        await session.handshake(revision)
        yield session


async def test_an_answer_sent_by_another_handshake_session_does_not_count(goat: HttpGoat) -> None:
    with anyio.fail_after(BOUND_S):
        async with (
            raw_session(goat) as asked,
            raw_session(goat) as thief,
            asked.calling("AskUserQuestion", QUESTION) as next_message,
        ):
            question = await next_message()
            assert question["method"] == "elicitation/create"
            await thief.answer(question["id"], q1="SQLite")
            await asked.answer(question["id"], q1="PostgreSQL")
            result = (await next_message())["result"]

    assert result["structuredContent"]["answers"] == {WHICH_ENGINE: "PostgreSQL"}


async def test_a_client_of_the_first_revision_with_forms_gets_a_box_for_each_of_several_choices(goat: HttpGoat) -> None:
    with anyio.fail_after(BOUND_S):
        async with (
            raw_session(goat, "2025-06-18") as session,
            session.calling("AskUserQuestion", {"questions": [CHECKS]}) as next_message,
        ):
            form = await next_message()
            await session.answer(form["id"], q1_1=True, q1_2=False, q1_3=True)
            result = (await next_message())["result"]

    boxes = form["params"]["requestedSchema"]["properties"]
    assert [boxes[f"q1_{number}"]["title"] for number in (1, 2, 3)] == [
        "Checks: Lint",
        "Checks: Types",
        "Checks: Tests",
    ]
    assert {box["type"] for name, box in boxes.items() if name != "q1_other"} == {"boolean"}
    assert result["structuredContent"]["answers"] == {WHICH_CHECKS: "Lint, Tests"}


async def outcomes(goat: HttpGoat, tool: str, count: int) -> list[str]:
    """How the last calls of a tool ended, once there are `count` of them."""
    async with connected(goat, "2026-07-28") as client:
        with anyio.fail_after(BOUND_S):
            while True:
                (content,) = (await client.read_resource("goat://calls")).contents
                assert isinstance(content, types.TextResourceContents)
                ended = [call for call in json.loads(content.text)["calls"] if call["tool"] == tool]
                if len(ended) >= count:
                    return [call["outcome"] for call in ended]
                await anyio.sleep(0.1)


async def test_a_question_whose_client_is_lost_is_withdrawn_and_its_command_does_not_run(launch: Launch) -> None:
    """Without a word of goodbye: the stream breaks off, the session is not deleted."""
    ran = launch.workspace / "ran"
    with http_goat(launch) as goat:
        async with raw_session(goat) as session:
            async with session.calling("Bash", {"command": f"touch {ran}"}) as next_message:
                assert (await next_message())["params"]["message"].startswith("Allow Bash?")
            async with session.calling("AskUserQuestion", QUESTION) as next_message:
                assert (await next_message())["params"]["message"] == WHICH_ENGINE

        # On a slow machine the call is given up before its question is.
        assert await outcomes(goat, "Bash", 1) in (["E_APPROVAL_PENDING"], ["E_CANCELLED"])
        assert await outcomes(goat, "AskUserQuestion", 1) in (["ok"], ["E_CANCELLED"])
    assert not ran.exists()


async def test_a_call_whose_stream_a_handshake_client_closes_is_cancelled(launch: Launch) -> None:
    """FLW-2: over HTTP, without a notice; the session goes on."""
    unasked = replace(launch, options=("--mode", "bypassPermissions"))
    running, ended = launch.workspace / "running", launch.workspace / "ended"
    command = f"trap 'touch {ended}; exit' TERM; touch {running}; sleep 600 & wait"
    with http_goat(unasked) as goat, anyio.fail_after(BOUND_S):
        async with raw_session(goat) as session:
            async with session.calling("Bash", {"command": command}):
                await until_there(running)
            await until_there(ended)
            outcome = await outcomes(goat, "Bash", 1)
            async with session.calling("Glob", {"pattern": "*.md"}) as next_message:
                listed = await next_message()

    assert outcome == ["E_CANCELLED"]
    assert listed["result"]["content"][0]["text"] == str(launch.workspace / "notes.md")


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_client_that_leaves_while_asked_ends_its_call(launch: Launch, era: str) -> None:
    ran, shown = launch.workspace / "ran", anyio.Event()

    async def thinks_long(ctx: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        shown.set()
        await anyio.sleep_forever()
        raise AssertionError

    with http_goat(launch) as goat:
        async with (
            connected(goat, era, elicitation_callback=thinks_long) as client,
            anyio.create_task_group() as group,
        ):
            group.start_soon(client.call_tool, "Bash", {"command": f"touch {ran}"})
            with anyio.fail_after(BOUND_S):
                await shown.wait()
            group.cancel_scope.cancel()

        if era == "legacy":
            assert len(await outcomes(goat, "Bash", 1)) == 1
        async with connected(goat, era) as client:
            (block,) = (await client.call_tool("Glob", {"pattern": "*.md"})).content
    assert block.type == "text" and block.text == str(launch.workspace / "notes.md")
    assert not ran.exists()


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_call_that_goes_on_after_its_answer_can_still_be_cancelled(
    launch: Launch, era: str, transport: str
) -> None:
    asks_always = replace(launch, options=("--set", 'permissions.ask=["Bash"]'))
    running, ended = launch.workspace / "running", launch.workspace / "ended"
    command = f"trap 'touch {ended}; exit' TERM; touch {running}; sleep 600 & wait"

    async def allows(ctx: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"decision": "allow_once"})

    with http_goat(asks_always) if transport == "http" else nullcontext(asks_always) as target:
        async with connected(target, era, elicitation_callback=allows) as client, anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "Bash", {"command": command})
            with anyio.fail_after(BOUND_S):
                await until_there(running)
            group.cancel_scope.cancel()
            with anyio.fail_after(BOUND_S, shield=True):
                await until_there(ended)

    assert ended.exists()


async def until_there(path: Path) -> None:
    while not await anyio.Path(path).exists():  # noqa: ASYNC110  # another process makes it
        await anyio.sleep(0.05)
