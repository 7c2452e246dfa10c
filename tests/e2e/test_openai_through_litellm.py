"""Our OpenAI format in use: a real LiteLLM proxy takes the definitions, and the messages that answer tool calls.

Source: Goat Spec 04, section 9, "Tool definition format".
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from goat_mcp.catalog.builtin_contracts import builtin_names
from goat_mcp.embed import EmbeddedTools, open_tools
from tests.e2e.litellm_proxy import PROGRAM, LiteLlm, in_one_worker
from tests.e2e.scripted_backend import Calls, Says, ToolCall, calls

pytestmark = [in_one_worker, pytest.mark.anyio, pytest.mark.full]

QUESTION = {"role": "user", "content": "What does the note say?"}
BOUND_S = 120


@pytest.fixture
async def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[EmbeddedTools]:
    monkeypatch.setenv("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1")
    workspace = tmp_path / "ws"
    workspace.mkdir()
    (workspace / "note.txt").write_text("buy hay\n")
    settings = {"workspace": [str(workspace)], "permissions": {"allow": ["Bash"]}}
    async with open_tools(settings, state_directory=tmp_path / "state") as opened:
        yield opened


CHECK = """
import json, sys
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionToolMessageParam
from pydantic import TypeAdapter
given = json.load(sys.stdin)
TypeAdapter(list[ChatCompletionFunctionToolParam]).validate_python(given["tools"])
TypeAdapter(list[ChatCompletionToolMessageParam]).validate_python(given["messages"])
"""


def check_with_openais_own_types(tools: list[dict[str, Any]], messages: list[dict[str, Any]]) -> None:
    """The proxy hands definitions on as they are; what they must be, the client library knows."""
    assert PROGRAM.exists(), f"no LiteLLM proxy at {PROGRAM}: run `make litellm`"
    given = json.dumps({"tools": tools, "messages": messages})
    done = subprocess.run(
        [PROGRAM.with_name("python"), "-c", CHECK], input=given, capture_output=True, text=True, timeout=BOUND_S
    )
    assert done.returncode == 0, done.stderr


async def complete(litellm: LiteLlm, messages: list[dict[str, Any]], **more: Any) -> Mapping[str, Any]:
    """The message of a completion that the proxy let through."""
    with anyio.fail_after(BOUND_S):
        status, body = await anyio.to_thread.run_sync(lambda: litellm.complete(messages, **more))
    assert status == 200, body
    return body["choices"][0]["message"]


async def test_tool_definition_format_every_definition_passes_the_proxys_validation(
    litellm: LiteLlm, tools: EmbeddedTools
) -> None:
    litellm.backend.script(Says("Noted."))
    definitions = await tools.definitions()

    await complete(litellm, [QUESTION], tools=definitions, tool_choice="auto")

    assert litellm.backend.asked[0].body["tools"] == definitions
    assert [made["function"]["name"] for made in definitions] == list(builtin_names())


async def test_tool_definition_format_is_that_of_openais_client(tools: EmbeddedTools) -> None:
    definitions = await tools.definitions()
    read = {"id": "call_1", "type": "function", "function": {"name": "Read", "arguments": '{"file_path": "@note.txt"}'}}
    failing = {**read, "id": "call_2", "function": {"name": "Read", "arguments": "{"}}

    turn = await tools.run([read, failing])

    await anyio.to_thread.run_sync(check_with_openais_own_types, definitions, turn.messages)


async def test_a_tools_answer_reaches_the_model_as_a_tool_message(litellm: LiteLlm, tools: EmbeddedTools) -> None:
    litellm.backend.script(calls("Read", file_path="@note.txt"), Says("It says: buy hay."))
    definitions = await tools.definitions()

    asked = await complete(litellm, [QUESTION], tools=definitions)
    turn = await tools.run(asked["tool_calls"])
    final = await complete(litellm, [QUESTION, dict(asked), *turn.messages], tools=definitions)

    assert final["content"] == "It says: buy hay."
    assert litellm.backend.asked[1].messages[-1] == {
        "role": "tool",
        "tool_call_id": asked["tool_calls"][0]["id"],
        "content": "1\tbuy hay",
    }


async def test_calls_of_one_turn_are_answered_in_their_order_and_failures_in_text(
    litellm: LiteLlm, tools: EmbeddedTools
) -> None:
    wrong = '{"file_path": '
    asked_for = (
        ToolCall("Bash", {"command": "sleep 0.3; echo slow"}),
        ToolCall("Read", {"file_path": "@missing.txt"}),
        ToolCall("Read", wrong),
        ToolCall("Read", {"file_path": "@note.txt"}),
    )
    litellm.backend.script(Calls(asked_for), Says("Done."))
    definitions = await tools.definitions()

    asked = await complete(litellm, [QUESTION], tools=definitions, parallel_tool_calls=True)
    turn = await tools.run(asked["tool_calls"])
    await complete(litellm, [QUESTION, dict(asked), *turn.messages], tools=definitions)

    answered = litellm.backend.asked[1].messages[-4:]
    assert [message["tool_call_id"] for message in answered] == [call["id"] for call in asked["tool_calls"]]
    slow, missing, broken, note = (message["content"] for message in answered)
    assert (slow.strip(), note) == ("slow", "1\tbuy hay")
    assert missing.startswith("Error: ") and "[E_NOT_FOUND]" in missing
    assert broken.startswith("Error: function.arguments is not JSON") and "[E_INPUT]" in broken
    assert json.loads(json.dumps(turn.messages)) == answered
