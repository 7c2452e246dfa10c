"""Asking the person behind a client, and the client's own model, in both protocol eras over an in-memory connection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.shared.exceptions import MCPError

from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Form, Option, Question
from goat_mcp.core.errors import ToolError
from goat_mcp.core.model import ModelMessage, ModelRequest, ModelTool
from goat_mcp.server import elicitation
from tests.server.asking import AskingTool, Person, accepts
from tests.server.test_adapter import both_eras, connected, gateway

pytestmark = [pytest.mark.anyio, pytest.mark.matrix]

COLOUR = Question("colour", "Colour", options=(Option("red"), Option("blue")), required=True)
FORM = Form("Which colour?", (COLOUR, Question("why", "Why?")))


async def ask_for_a_colour(ctx: ToolContext) -> str:
    answer = await ctx.ask(FORM)
    return f"{answer.reply}: {dict(answer.values)}"


async def answer_of(tmp_path: Path, mode: str, body: Any, **client: Any) -> str:
    served = gateway(tmp_path)
    served.registry.register(AskingTool(body))
    async with connected(served, mode, **client) as connection:
        result = await connection.call_tool("Asks", {})
    assert result.content[0].type == "text"
    return result.content[0].text


@both_eras
async def test_a_form_reaches_the_person_and_the_answer_the_tool(tmp_path: Path, mode: str) -> None:
    person = accepts(colour="blue", why=" sky ")

    text = await answer_of(tmp_path, mode, ask_for_a_colour, elicitation_callback=person)

    assert text == "accepted: {'colour': 'blue', 'why': 'sky'}"
    assert [(form.message, form.requested_schema) for form in person.shown] == [
        (
            "Which colour?",
            {
                "type": "object",
                "properties": {
                    "colour": {"type": "string", "enum": ["red", "blue"], "title": "Colour"},
                    "why": {"type": "string", "title": "Why?"},
                },
                "required": ["colour"],
            },
        )
    ]


@both_eras
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (types.ElicitResult(action="decline"), "declined: {}"),
        (types.ElicitResult(action="cancel"), "cancelled: {}"),
        (types.ElicitResult(action="accept", content={"colour": "green"}), "unanswered: {}"),
    ],
)
async def test_a_form_that_is_not_filled_in(
    tmp_path: Path, mode: str, answer: types.ElicitResult, expected: str
) -> None:
    assert await answer_of(tmp_path, mode, ask_for_a_colour, elicitation_callback=Person(answer)) == expected


@both_eras
async def test_a_client_without_elicitation_cannot_be_asked_and_nothing_hangs(tmp_path: Path, mode: str) -> None:
    with anyio.fail_after(60):
        assert await answer_of(tmp_path, mode, ask_for_a_colour) == "unavailable: {}"


@both_eras
async def test_two_questions_one_after_the_other_are_one_call(tmp_path: Path, mode: str) -> None:
    async def twice(ctx: ToolContext) -> str:
        return await ask_for_a_colour(ctx) + await ask_for_a_colour(ctx)

    person = accepts(colour="red")
    text = await answer_of(tmp_path, mode, twice, elicitation_callback=person)

    assert (text, len(person.shown)) == ("accepted: {'colour': 'red'}" * 2, 2)


@both_eras
async def test_two_questions_at_once_are_both_answered(tmp_path: Path, mode: str) -> None:
    answers: list[str] = []

    async def both(ctx: ToolContext) -> str:
        async def one() -> None:
            answers.append(await ask_for_a_colour(ctx))

        async with anyio.create_task_group() as group:
            group.start_soon(one)
            group.start_soon(one)
        return "done"

    await answer_of(tmp_path, mode, both, elicitation_callback=accepts(colour="red"))

    assert answers == ["accepted: {'colour': 'red'}"] * 2


async def test_a_form_nobody_answers_is_withdrawn_after_the_wait_where_the_client_shows_no_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elicitation.elicitor, "__defaults__", (0.2,))
    withdrawn = anyio.Event()

    async def never(ctx: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        try:
            await anyio.sleep_forever()
        finally:
            withdrawn.set()
        raise AssertionError

    served = gateway(tmp_path)
    served.registry.register(AskingTool(ask_for_a_colour))
    with anyio.fail_after(60):
        async with connected(served, "legacy", elicitation_callback=never) as client:
            result = await client.call_tool("Asks", {})
            await withdrawn.wait()

    assert result.content[0].type == "text" and result.content[0].text == "unanswered: {}"


async def test_with_a_progress_token_the_question_waits_and_a_heartbeat_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elicitation.elicitor, "__defaults__", (0.2,))
    monkeypatch.setattr("goat_mcp.core.heartbeat.HEARTBEAT_S", 0.1)
    beats: list[str] = []
    enough = anyio.Event()

    async def slow(ctx: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        await enough.wait()
        return types.ElicitResult(action="accept", content={"colour": "red"})

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        beats.append(message or "")
        if len(beats) > 4:
            enough.set()

    served = gateway(tmp_path)
    served.registry.register(AskingTool(ask_for_a_colour))
    with anyio.fail_after(60):
        async with connected(served, "legacy", elicitation_callback=slow) as client:
            result = await client.call_tool("Asks", {}, progress_callback=on_progress)

    assert result.content[0].type == "text" and result.content[0].text == "accepted: {'colour': 'red'}"
    assert beats[0] == "Asks started" and beats[-1].startswith("Asks finished in ")
    assert set(beats[1:-1]) == {"waiting for the user's answer"}


async def first_question(client: Client, name: str = "Asks", **arguments: Any) -> types.InputRequiredResult:
    answer = await client.session.call_tool(name, arguments, allow_input_required=True)
    assert isinstance(answer, types.InputRequiredResult)
    return answer


# ERA-5
async def test_an_answer_counts_once_and_for_its_own_call_only(tmp_path: Path) -> None:
    served = gateway(tmp_path)
    served.registry.register(AskingTool(ask_for_a_colour))
    async with connected(served, "2026-07-28", elicitation_callback=accepts(colour="red")) as client:
        question = await first_question(client)
        assert question.input_requests is not None and question.request_state is not None
        (key,) = question.input_requests
        answers: Any = {key: types.ElicitResult(action="accept", content={"colour": "red"})}

        async def answer(state: str | None, **arguments: Any) -> str:
            result = await client.session.call_tool(
                "Asks", arguments, input_responses=answers, request_state=state, allow_input_required=True
            )
            assert isinstance(result, types.CallToolResult) and result.content[0].type == "text"
            return result.content[0].text

        with pytest.raises(MCPError, match="requestState"):
            await answer(question.request_state, other="arguments")
        with pytest.raises(MCPError, match="requestState"):
            await answer(question.request_state[:-4] + "AAAA")
        assert await answer(question.request_state) == "accepted: {'colour': 'red'}"
        with pytest.raises(MCPError, match="answered before"):
            await answer(question.request_state)


async def test_a_question_left_out_of_the_answers_is_asked_again(tmp_path: Path) -> None:
    served = gateway(tmp_path)
    served.registry.register(AskingTool(ask_for_a_colour))
    async with connected(served, "2026-07-28", elicitation_callback=accepts(colour="red")) as client:
        question = await first_question(client)
        again = await client.session.call_tool(
            "Asks", {}, input_responses={}, request_state=question.request_state, allow_input_required=True
        )

    assert isinstance(again, types.InputRequiredResult)
    assert again.input_requests is not None and len(again.input_requests) == 1


async def test_a_tool_that_asks_without_end_is_told_that_the_client_takes_no_more(tmp_path: Path) -> None:
    async def endless(ctx: ToolContext) -> str:
        for asked in range(100):
            if (await ctx.ask(FORM)).reply != "accepted":
                return f"asked {asked} times"
        return "never ended"

    text = await answer_of(tmp_path, "2026-07-28", endless, elicitation_callback=accepts(colour="red"))

    assert text == "asked 10 times"


# ERA-5
async def test_a_parked_call_ends_with_its_time(tmp_path: Path) -> None:
    ended = anyio.Event()

    async def asks(ctx: ToolContext) -> str:
        try:
            return await ask_for_a_colour(ctx)
        finally:
            ended.set()

    served = gateway(tmp_path)
    served.registry.register(AskingTool(asks))
    from goat_mcp.server.adapter import Adapter

    adapter = Adapter(served, "stdio", suspended_for_s=0.1)
    with anyio.fail_after(60):
        async with served.running(), anyio.create_task_group() as group:
            await group.start(adapter.run)
            async with Client(adapter.server, mode="2026-07-28", elicitation_callback=accepts(colour="red")) as client:
                question = await first_question(client)
                await ended.wait()
                with pytest.raises(MCPError, match="expired"):
                    await client.session.call_tool(
                        "Asks", {}, input_responses={}, request_state=question.request_state, allow_input_required=True
                    )
            group.cancel_scope.cancel()


def test_choices_with_titles_in_either_revision() -> None:
    titled = Question("db", "Database", options=(Option("pg", "Postgres"), Option("lite", "SQLite")))
    several = Question("extras", "Extras", options=(Option("a"), Option("b")), multiple=True)

    new = elicitation.form_schema(Form("m", (titled, several)), takes_titles=True)["properties"]
    old = elicitation.form_schema(Form("m", (titled, several)), takes_titles=False)["properties"]

    assert new == {
        "db": {
            "type": "string",
            "oneOf": [{"const": "pg", "title": "Postgres"}, {"const": "lite", "title": "SQLite"}],
            "title": "Database",
        },
        "extras": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "title": "Extras"},
    }
    assert old == {
        "db": {"type": "string", "enum": ["pg", "lite"], "enumNames": ["Postgres", "SQLite"], "title": "Database"},
        "extras_1": {"type": "boolean", "title": "Extras: a", "default": False},
        "extras_2": {"type": "boolean", "title": "Extras: b", "default": False},
    }


def test_several_choices_come_back_from_a_list_and_from_boxes() -> None:
    several = Question("extras", "Extras", options=(Option("a"), Option("b"), Option("c")), multiple=True)
    form = Form("m", (several,))

    def values(**content: Any) -> object:
        answer = elicitation.form_answer(form, types.ElicitResult(action="accept", content=content))
        return dict(answer.values)

    assert values(extras=["c", "a", "zzz"]) == {"extras": ("a", "c")}
    assert values(extras_2=True, extras_3=False) == {"extras": ("b",)}
    assert values() == {}


ADD = ModelTool("add", "Add two numbers.", {"type": "object", "properties": {"a": {"type": "integer"}}})
WITH_TOOLS = types.SamplingCapability(tools=types.SamplingToolsCapability())


@both_eras
async def test_the_clients_model_answers_with_tools_over_several_turns(tmp_path: Path, mode: str) -> None:
    async def use(ctx: ToolContext) -> str:
        assert ctx.host_model is not None and ctx.host_model.takes_tools
        asked = ModelMessage("user", ({"type": "text", "text": "2+3?"},))
        first = await ctx.host_model.reply(ModelRequest((asked,), system="Be brief.", tools=(ADD,), model="haiku"))
        (use,) = first.tool_uses
        result = {"type": "tool_result", "toolUseId": use["id"], "content": [{"type": "text", "text": "5"}]}
        turns = (asked, ModelMessage("assistant", first.content), ModelMessage("user", (result,)))
        second = await ctx.host_model.reply(ModelRequest(turns, tools=(ADD,)))
        return f"{use['name']} {use['input']} {first.stop_reason} {first.model}; {second.text} {second.stop_reason}"

    seen: list[types.CreateMessageRequestParams] = []

    async def model(
        ctx: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResultWithTools:
        seen.append(params)
        if len(seen) == 1:
            call = types.ToolUseContent(id="u1", name="add", input={"a": 2})
            return types.CreateMessageResultWithTools(
                role="assistant", content=[call], model="m-1", stop_reason="toolUse"
            )
        text = types.TextContent(type="text", text="five")
        return types.CreateMessageResultWithTools(role="assistant", content=text, model="m-1", stop_reason="endTurn")

    text = await answer_of(tmp_path, mode, use, sampling_callback=model, sampling_capabilities=WITH_TOOLS)

    assert text == "add {'a': 2} toolUse m-1; five endTurn"
    assert seen[0].system_prompt == "Be brief." and seen[0].tools is not None
    assert seen[0].model_preferences is not None and seen[0].model_preferences.hints == [types.ModelHint(name="haiku")]
    last = seen[1].messages[-1].content_as_list[0]
    assert isinstance(last, types.ToolResultContent) and last.tool_use_id == "u1"


@both_eras
async def test_a_model_that_refuses_is_an_error_with_the_setting_to_use(tmp_path: Path, mode: str) -> None:
    async def use(ctx: ToolContext) -> str:
        assert ctx.host_model is not None
        try:
            reply = await ctx.host_model.reply(ModelRequest((ModelMessage("user", ({"type": "text", "text": "?"},)),)))
        except ToolError as error:
            return f"{error.code} {error.suggestion}"
        return reply.text

    async def refuses(ctx: ClientRequestContext, params: types.CreateMessageRequestParams) -> types.ErrorData:
        return types.ErrorData(code=-1, message="user said no")

    if mode == "legacy":
        text = await answer_of(tmp_path, mode, use, sampling_callback=refuses)
        assert text.startswith("E_MODEL") and "agent.base_url" in text
        return
    served = gateway(tmp_path)
    served.registry.register(AskingTool(use))
    async with connected(served, mode, sampling_callback=refuses) as client:
        with pytest.raises(MCPError, match="user said no"):  # such a client gives its call up and never tells
            await client.call_tool("Asks", {})


@both_eras
async def test_a_client_without_sampling_offers_no_model(tmp_path: Path, mode: str) -> None:
    async def use(ctx: ToolContext) -> str:
        return str(ctx.host_model)

    assert await answer_of(tmp_path, mode, use) == "None"
