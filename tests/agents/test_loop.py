"""The agent loop over a scripted model, through the gateway's own pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.model import MALFORMED_META_KEY, ModelMessage
from goat_mcp.core.result import text_block
from tests.agents.scripted import ScriptedModel, ground, results_in, says, use

pytestmark = pytest.mark.anyio


async def test_an_agent_reads_and_answers_with_its_last_words(tmp_path: Path) -> None:
    model = ScriptedModel([says("Looking.", use("Read", {"file_path": "@a.txt"}, "t1")), says("It says hello.")])
    async with ground(tmp_path, model) as on:
        (on.workspace / "a.txt").write_text("hello\n")

        result = await on.agent("What does a.txt say?")

    assert not result.is_error, result.text
    assert result.text.splitlines()[0] == "It says hello."
    facts = dict(result.facts or {})
    assert (facts["status"], facts["turns"], facts["tokens"]) == ("completed", 2, 24)
    assert facts["agent_id"] in result.text
    assert {"agent_id", "status", "output_file", "turns", "tokens", "duration_ms"} == set(facts)
    first, second = model.requests
    assert first.messages == (ModelMessage("user", (text_block("What does a.txt say?"),)),)
    assert [message.role for message in second.messages] == ["user", "assistant", "user"]
    assert results_in(second.messages[-1]) == ["1\thello"]
    assert str(on.workspace) in first.system


async def test_what_a_provider_wants_back_with_a_use_stays_with_it(tmp_path: Path) -> None:
    signed = {**use("Glob", {"pattern": "*"}, "a"), "_meta": {"goat-mcp/kept": {"call": {"extra_content": "s"}}}}
    model = ScriptedModel([says("", signed)])
    async with ground(tmp_path, model) as on:
        await on.agent()

    assert model.requests[1].messages[1].content == (signed,)


async def test_uses_of_one_turn_are_answered_in_their_order_and_errors_are_results(tmp_path: Path) -> None:
    model = ScriptedModel(
        [
            says(
                "",
                use("Glob", {"pattern": "*.txt"}, "a"),
                use("Read", {"file_path": "@none.txt"}, "b"),
                use("NoSuchTool", {}, "c"),
                use("Grep", {"pattern": "x", "no_such_field": 1}, "d"),
            )
        ]
    )
    async with ground(tmp_path, model) as on:
        await on.agent()

    answers = model.requests[1].messages[-1].content
    assert [block["toolUseId"] for block in answers] == ["a", "b", "c", "d"]
    assert [block["isError"] for block in answers] == [False, True, True, True]
    texts = results_in(model.requests[1].messages[-1])
    assert texts[0] == "No files found"
    assert "[E_NOT_FOUND]" in texts[1]
    assert "tool not found: NoSuchTool" in texts[2]
    assert "no_such_field" in texts[3]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [("{not json", "not valid JSON"), ([1], "no JSON object"), ("[1]", "no JSON object"), ("7", "no JSON object")],
)
async def test_arguments_that_are_no_object_are_told_to_the_model(
    tmp_path: Path, arguments: Any, expected: str
) -> None:
    model = ScriptedModel([says("", use("Glob", arguments, "a"))])
    async with ground(tmp_path, model) as on:
        result = await on.agent()

    assert result.text.startswith("done")
    assert expected in results_in(model.requests[1].messages[-1])[0]
    assert model.requests[1].messages[1].content[0]["input"] == {}


async def test_arguments_as_json_text_are_read(tmp_path: Path) -> None:
    model = ScriptedModel([says("", use("Glob", '{"pattern": "*.md"}', "a"))])
    async with ground(tmp_path, model) as on:
        await on.agent()

    assert results_in(model.requests[1].messages[-1]) == ["No files found"]


async def test_what_an_endpoint_could_not_read_is_told_to_the_model(tmp_path: Path) -> None:
    block = {**use("Glob", {}, "a"), "_meta": {MALFORMED_META_KEY: "they end in the middle"}}
    model = ScriptedModel([says("", block)])
    async with ground(tmp_path, model) as on:
        await on.agent()

    assert results_in(model.requests[1].messages[-1]) == ["not run: they end in the middle"]


@pytest.mark.parametrize("id", ["", "call_0"], ids=["missing", "used again"])
async def test_ids_that_are_missing_or_used_again_are_made_distinct(tmp_path: Path, id: str) -> None:
    glob = {"pattern": "*"}
    model = ScriptedModel([says("", use("Glob", glob, id), use("Glob", glob, id)), says("", use("Glob", glob, id))])
    async with ground(tmp_path, model) as on:
        await on.agent()

    messages = model.requests[2].messages
    ids = [block["id"] for message in messages for block in message.content if block["type"] == "tool_use"]
    answered = [block["toolUseId"] for message in messages for block in message.content if "toolUseId" in block]
    assert len(set(ids)) == 3
    assert answered == ids


async def test_images_of_a_tool_reach_the_model(tmp_path: Path) -> None:
    from PIL import Image

    model = ScriptedModel([says("", use("Read", {"file_path": "@dot.png"}, "a"))])
    async with ground(tmp_path, model) as on:
        Image.new("RGB", (2, 2)).save(on.workspace / "dot.png")
        await on.agent()

    (answer,) = model.requests[1].messages[-1].content
    assert [block["mimeType"] for block in answer["content"] if block["type"] == "image"] == ["image/png"]


async def test_the_last_turn_is_announced_and_its_uses_are_not_run(tmp_path: Path) -> None:
    write = use("Write", {"file_path": "@x.txt", "content": "x"}, "w")
    model = ScriptedModel([says("", use("Glob", {"pattern": "*"}, "g")), says("Nearly there.", write)])
    async with ground(tmp_path, model) as on:
        result = await on.agent(max_turns=2)

        assert not (on.workspace / "x.txt").exists()
    assert not result.is_error
    assert result.text.splitlines()[0] == "Nearly there."
    assert "stopped after 2 turns" in result.text
    assert "last turn" not in model.requests[0].system
    assert "last turn" in model.requests[1].system


async def test_an_answer_that_was_cut_off_is_finished(tmp_path: Path) -> None:
    model = ScriptedModel([says("one, tw", stop_reason="maxTokens"), says("o, three")])
    async with ground(tmp_path, model) as on:
        result = await on.agent()

    assert result.text.splitlines()[0] == "one, two, three"
    assert "Go on exactly" in str(model.requests[1].messages[-1].content)


async def test_uses_of_a_reply_that_was_cut_off_are_not_run(tmp_path: Path) -> None:
    write = use("Write", {"file_path": "@x.txt", "content": "half a fi"}, "w")
    model = ScriptedModel([says("", write, stop_reason="maxTokens")])
    async with ground(tmp_path, model) as on:
        await on.agent()

        assert not (on.workspace / "x.txt").exists()
    assert "cut off at 8192 tokens" in results_in(model.requests[1].messages[-1])[0]


async def test_an_empty_reply_is_asked_about_once(tmp_path: Path) -> None:
    model = ScriptedModel([says(""), says("Here it is.")])
    async with ground(tmp_path, model) as on:
        result = await on.agent()

    assert result.text.splitlines()[0] == "Here it is."
    assert [message.role for message in model.requests[1].messages] == ["user", "user"]


async def test_a_model_that_says_nothing_at_all_is_an_error_that_names_the_setting(tmp_path: Path) -> None:
    async with ground(tmp_path, ScriptedModel([says(""), says("  \n")])) as on:
        result = await on.agent()

    assert result.error_code == "E_MODEL"
    assert "agent.model" in result.text


async def test_what_was_said_before_silence_is_the_answer_and_a_notice_says_so(tmp_path: Path) -> None:
    glob = use("Glob", {"pattern": "*"}, "g")
    async with ground(tmp_path, ScriptedModel([says("Found it.", glob), says(""), says("")])) as on:
        result = await on.agent()

    assert result.text.splitlines()[0] == "Found it."
    assert "without a final message" in result.text


async def test_a_model_that_fails_at_once_is_its_own_error_and_nothing_stays(tmp_path: Path) -> None:
    unreachable = ToolError(ErrorCode.NETWORK, "no answer", "Check agent.base_url.")
    async with ground(tmp_path, ScriptedModel([unreachable])) as on:
        result = await on.agent()

        assert on.left_behind() == []
        assert on.gateway.services.tasks().running() == []
    assert (result.error_code, result.text.splitlines()[:2]) == ("E_NETWORK", ["no answer", "Check agent.base_url."])


async def test_a_model_that_fails_later_leaves_an_agent_that_can_be_resumed(tmp_path: Path) -> None:
    glob = use("Glob", {"pattern": "*"}, "g")
    lost = ToolError(ErrorCode.NETWORK, "gone", "Check agent.base_url.")
    model = ScriptedModel([says("So far.", glob), lost, says("All of it.")])
    async with ground(tmp_path, model) as on:
        failed = await on.agent()
        agent_id = (failed.facts or {})["agent_id"]
        resumed = await on.agent("Go on.", resume=agent_id)

    assert (failed.is_error, failed.error_code) == (True, "E_NETWORK")
    assert failed.text.startswith("So far.")
    assert f"resume: {agent_id}" in failed.text
    assert resumed.text.startswith("All of it.")
    assert [message.role for message in model.requests[2].messages] == ["user", "assistant", "user", "user"]


async def test_a_bug_in_a_model_is_an_internal_error_without_its_words(tmp_path: Path) -> None:
    def broken(request: object) -> Any:
        raise RuntimeError("secret")

    async with ground(tmp_path, ScriptedModel([broken]), log_level="error") as on:
        result = await on.agent()

    assert result.error_code == "E_INTERNAL"
    assert "secret" not in result.text


async def test_what_the_call_asks_for_reaches_the_model(tmp_path: Path) -> None:
    model = ScriptedModel()
    async with ground(tmp_path, model) as on:
        await on.agent(model="opus", effort="high")

    assert (model.requests[0].model, model.requests[0].effort) == ("opus", "high")


async def test_more_uses_than_a_turn_may_have_are_not_run(tmp_path: Path) -> None:
    uses = [use("Glob", {"pattern": "*"}, f"u{number}") for number in range(40)]
    model = ScriptedModel([says("", *uses)])
    async with ground(tmp_path, model) as on:
        await on.agent()

    texts = results_in(model.requests[1].messages[-1])
    assert texts.count("No files found") == 32
    assert sum("at most 32" in text for text in texts) == 8


async def test_more_turns_than_the_settings_allow_are_reduced_and_a_notice_says_so(tmp_path: Path) -> None:
    async with ground(tmp_path, ScriptedModel(), agent={"max_turns": 3}) as on:
        result = await on.agent(max_turns=90)

    assert "[max_turns 90 was reduced to 3 (agent.max_turns)]" in result.text


ENDPOINT = {"base_url": "http://127.0.0.1:9/v1", "model": "m0", "models": {"haiku": "m-small"}}
STAND_IN = "[model opus: agent.models.opus is not set, so m0 (agent.model) ran it]"


@pytest.mark.parametrize(
    ("model", "is_told"), [("opus", True), ("haiku", False), (None, False)], ids=["not named", "named", "default"]
)
async def test_the_result_says_when_another_model_than_the_wanted_one_ran_it(
    tmp_path: Path, model: str | None, is_told: bool
) -> None:
    wanted: dict[str, Any] = {} if model is None else {"model": model}
    async with ground(tmp_path, ScriptedModel(), agent=ENDPOINT) as on:
        result = await on.agent(**wanted)

    assert (STAND_IN in result.text.splitlines(), "ran it" in result.text) == (is_told, is_told)


async def test_a_type_whose_model_has_no_name_says_so_in_the_background_too(tmp_path: Path) -> None:
    async with ground(tmp_path, ScriptedModel(), agent=ENDPOINT) as on:
        folder = on.workspace / ".claude" / "agents"
        folder.mkdir(parents=True)
        (folder / "thinker.md").write_text("---\nname: thinker\ndescription: d\nmodel: opus\n---\nThink.\n")
        started = await on.agent(subagent_type="thinker", run_in_background=True)
        over = await on.call("TaskOutput", {"task_id": str((started.facts or {})["agent_id"])})

    assert STAND_IN in over.text.splitlines()
