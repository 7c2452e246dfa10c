"""A catalog too large to list, as a client meets it in both eras: search, describe, call through (DEF-1 to DEF-3)."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client

from goat_mcp.catalog.builtin_contracts import meta_contracts
from goat_mcp.catalog.filter import token_cost
from tests.server.asking import accepts
from tests.server.test_adapter import both_eras, connected, gateway
from tests.upstreams.fleet import server

pytestmark = [pytest.mark.anyio, pytest.mark.matrix]

META_NAMES = tuple(spec.name for spec in meta_contracts())


@asynccontextmanager
async def behind_search(
    folder: Path,
    mode: str,
    *,
    entry: dict[str, Any] | None = None,
    client: dict[str, Any] | None = None,
    **settings: Any,
) -> AsyncGenerator[Client]:
    """A client of a gateway with one real upstream, `good`, that has listed its tools."""
    file = folder / "upstreams.json"
    file.write_text(json.dumps({"mcpServers": {"good": server("good.py", **(entry or {}))}}))
    catalog = {"mode": "search", **settings.pop("catalog", {})}
    if permission_mode := settings.pop("settings_mode", ""):
        settings["mode"] = permission_mode
    served = gateway(folder, upstreams=[str(file)], catalog=catalog, **settings)
    async with connected(served, mode, **(client or {})) as connection:
        assert await served.upstreams.first_list(20) is None
        await connection.list_tools()
        yield connection


def text_of(answer: types.CallToolResult) -> str:
    assert answer.content and answer.content[0].type == "text"
    return answer.content[0].text


async def through(client: Client, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> Any:
    return await client.call_tool("call_tool", {"name": name, "arguments": arguments or {}}, **options)


@both_eras
async def test_DEF_2_tools_that_are_not_listed_are_found_described_and_called(tmp_path: Path, mode: str) -> None:
    async with behind_search(tmp_path, mode) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("search_tools", {"query": "say something again"})
        described = await client.call_tool("describe_tool", {"name": "mcp__good__echo"})
        called = await through(client, "mcp__good__echo", {"text": "hello"})

    assert listed[-4:] == list(META_NAMES) and not any(name.startswith("mcp__") for name in listed)
    assert text_of(found).splitlines()[0] == "mcp__good__echo(text?: str, region?: str)"
    assert json.loads(text_of(described))["inputSchema"]["properties"]["text"] == {"type": "string"}
    assert text_of(called) == "hello" and not called.is_error


@both_eras
async def test_DEF_1_all_tools_are_listed_where_they_fit_the_budget(tmp_path: Path, mode: str) -> None:
    async with behind_search(tmp_path, mode, catalog={"mode": "auto"}) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        refused = await through(client, "mcp__good__echo", {"text": "hello"})

    assert "mcp__good__echo" in listed and not set(listed) & set(META_NAMES)
    assert refused.structured_content["error"]["code"] == "E_TOOL_NOT_IN_CATALOG"


@both_eras
async def test_DEF_1_growth_beyond_the_budget_is_told_and_the_new_list_is_short(tmp_path: Path, mode: str) -> None:
    told = anyio.Event()

    async def on_message(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            told.set()

    async with behind_search(tmp_path, mode, catalog={"mode": "auto"}) as client:
        entries = [tool.model_dump(by_alias=True, exclude_unset=True) for tool in (await client.list_tools()).tools]
    budget = sum(map(token_cost, entries))
    catalog = {"mode": "auto", "token_budget": budget}
    async with behind_search(tmp_path, mode, catalog=catalog, client={"message_handler": on_message}) as client:
        before = [tool.name for tool in (await client.list_tools()).tools]
        with anyio.fail_after(60):
            if mode == "legacy":
                await client.call_tool("mcp__good__grow", {})
                await told.wait()
            else:
                async with client.listen(tools_list_changed=True) as changes:
                    await client.call_tool("mcp__good__grow", {})
                    await anext(aiter(changes))
        after = [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools]

    assert "mcp__good__grow" in before
    assert after == [*(name for name in before if not name.startswith("mcp__")), *META_NAMES]


@both_eras
async def test_DEF_3_a_result_comes_back_as_it_does_directly(tmp_path: Path, mode: str) -> None:
    async with behind_search(tmp_path, mode) as client:
        direct = await client.call_tool("mcp__good__everything", {})
        called = await through(client, "mcp__good__everything")

    assert called.model_dump(by_alias=True) == direct.model_dump(by_alias=True)
    assert called.structured_content == {"none": None, "big": 123456789012345678901234567890, "list": [1, 2.5]}


@both_eras
async def test_DEF_3_a_denied_tool_is_denied_by_call_through_and_not_found(tmp_path: Path, mode: str) -> None:
    rules = {"deny": ["mcp__good__echo"], "allow": ["call_tool"]}
    async with behind_search(tmp_path, mode, permissions=rules) as client:
        called = await through(client, "mcp__good__echo", {"text": "hello"})
        found = await client.call_tool("search_tools", {"query": "echo"})
        described = await client.call_tool("describe_tool", {"name": "mcp__good__echo"})

    assert called.structured_content["error"]["code"] == "E_PERMISSION"
    assert "mcp__good__echo" in text_of(called) and "rule mcp__good__echo" in text_of(called)
    assert "mcp__good__echo" not in text_of(found)
    assert text_of(described).endswith("[E_PERMISSION]")


@both_eras
async def test_PRF_2_a_hidden_tool_is_neither_found_nor_described_nor_called_through(tmp_path: Path, mode: str) -> None:
    async with behind_search(tmp_path, mode, catalog={"deny": ["mcp__good__echo"]}) as client:
        answers = [
            await through(client, "mcp__good__echo", {"text": "hello"}),
            await client.call_tool("describe_tool", {"name": "mcp__good__echo"}),
        ]
        found = await client.call_tool("search_tools", {"query": "echo"})
        of_server = await client.call_tool("search_tools", {"query": "", "server": "good"})

    assert [text_of(answer).rsplit("\n", 1)[1] for answer in answers] == ["[E_TOOL_NOT_IN_CATALOG]"] * 2
    assert "mcp__good__echo" not in text_of(found) + text_of(of_server)
    assert "mcp__good__mark" in text_of(of_server)


@both_eras
async def test_DEF_3_an_allow_rule_for_call_tool_allows_no_target(tmp_path: Path, mode: str) -> None:
    async with behind_search(
        tmp_path, mode, approval="deny", permissions={"allow": ["call_tool", "mcp__good__mark"]}
    ) as client:
        echo = await through(client, "mcp__good__echo", {"text": "hello"})
        mark = await through(client, "mcp__good__mark")

    assert echo.structured_content["error"]["code"] == "E_PERMISSION"
    assert text_of(mark) == "marked"


@both_eras
@pytest.mark.parametrize("effect", ["deny", "ask"])
async def test_DEF_3_a_rule_against_call_tool_holds_for_whatever_it_calls(
    tmp_path: Path, mode: str, effect: str
) -> None:
    rules = {effect: ["call_tool"], "allow": ["mcp__good__echo"]}
    async with behind_search(tmp_path, mode, permissions=rules, approval={"wait_s": 0}) as client:
        called = await through(client, "mcp__good__echo", {"text": "hello"})
        direct = await client.call_tool("mcp__good__echo", {"text": "hello"})

    refused = {"deny": "E_PERMISSION", "ask": "E_APPROVAL_PENDING"}[effect]
    assert called.structured_content["error"]["code"] == refused and "rule call_tool" in text_of(called)
    assert text_of(direct) == "hello"


@both_eras
async def test_DEF_3_plan_mode_decides_on_the_target(tmp_path: Path, mode: str) -> None:
    async with behind_search(tmp_path, mode, settings_mode="plan") as client:
        called = await through(client, "mcp__good__mark")
        read = await through(client, "Glob", {"pattern": "*.json"})

    assert called.structured_content["error"]["code"] == "E_PLAN_MODE"
    assert text_of(read).endswith("upstreams.json")


@both_eras
async def test_DEF_2_the_read_only_call_refuses_what_only_the_server_calls_read_only(tmp_path: Path, mode: str) -> None:
    async def called(name: str, **settings: Any) -> Any:
        async with behind_search(tmp_path, mode, **settings) as client:
            arguments = {"name": name, "arguments": {"text": "hello"}}
            return await client.call_tool("call_tool_readonly", arguments)

    claimed = await called("mcp__good__echo")
    trusted = await called("mcp__good__echo", entry={"trust_annotations": True})
    allowed = await called("mcp__good__echo", permissions={"allow": ["mcp__good__echo"]})
    changing = await called("mcp__good__mark", permissions={"allow": ["mcp__good__mark"]})
    bypassed = await called("mcp__good__mark", settings_mode="bypassPermissions")

    assert claimed.structured_content["error"]["message"] == (
        "call_tool_readonly does not call mcp__good__echo: nobody but its server says that it only reads"
    )
    assert [text_of(trusted), text_of(allowed)] == ["hello", "hello"]
    assert [one.structured_content["error"]["message"] for one in (changing, bypassed)] == [
        "call_tool_readonly does not call mcp__good__mark: it may change something"
    ] * 2


async def test_DEF_3_progress_of_the_target_reaches_the_client(tmp_path: Path) -> None:
    """Of the older era only: the SDK's in-memory connection of the other carries no progress at all."""
    seen: list[str | None] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(message)

    async with behind_search(tmp_path, "legacy") as client:
        answer = await through(client, "mcp__good__work", {"pause_s": 0.2}, progress_callback=on_progress)

    assert text_of(answer) == "worked"
    assert seen[:-1] == ["mcp__good__work started", "step 1", "step 2", "step 3"]
    assert str(seen[-1]).startswith("mcp__good__work finished in ")


@both_eras
async def test_DEF_3_the_person_is_asked_about_the_target_with_its_arguments(tmp_path: Path, mode: str) -> None:
    person = accepts(decision="allow_once")
    rules = {"ask": ["mcp__good__echo"]}
    async with behind_search(tmp_path, mode, permissions=rules, client={"elicitation_callback": person}) as client:
        answer = await through(client, "mcp__good__echo", {"text": "hello"})

    assert text_of(answer) == "hello"
    assert len(person.shown) == 1
    assert "mcp__good__echo" in person.shown[0].message and "call_tool" not in person.shown[0].message


@both_eras
async def test_DEF_3_the_record_names_the_target(tmp_path: Path, mode: str) -> None:
    async with behind_search(tmp_path, mode) as client:
        await through(client, "mcp__good__echo", {"text": "hello"})

    lines = [json.loads(line) for path in (tmp_path / "state").rglob("audit*.jsonl") for line in path.open()]
    assert [(line["event"], line["tool"]) for line in lines if "tool" in line] == [
        ("decision", "mcp__good__echo"),
        ("outcome", "mcp__good__echo"),
    ]


@both_eras
async def test_DEF_2_a_tool_that_came_after_the_clients_list_is_reached(tmp_path: Path, mode: str) -> None:
    async with behind_search(tmp_path, mode) as client:
        await through(client, "mcp__good__grow")
        for _ in range(200):
            found = await client.call_tool("search_tools", {"query": "extra"})
            if "mcp__good__extra_0" in text_of(found):
                break
            await anyio.sleep(0.05)
        described = await client.call_tool("describe_tool", {"name": "mcp__good__extra_0"})

    assert json.loads(text_of(described))["name"] == "mcp__good__extra_0"


@both_eras
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"name": "mcp__good__nothing"}, "E_TOOL_NOT_FOUND"),
        ({}, "E_INPUT"),
        ({"name": "mcp__good__echo", "arguments": [1]}, "E_INPUT"),
        ({"name": "call_tool", "arguments": {"name": "mcp__good__echo"}}, "E_INPUT"),
        ({"name": "call_tool_readonly", "arguments": {"name": "mcp__good__echo"}}, "E_INPUT"),
    ],
)
async def test_DEF_3_a_call_through_that_names_nothing_to_call_is_a_tool_error(
    tmp_path: Path, mode: str, arguments: dict[str, Any], code: str
) -> None:
    async with behind_search(tmp_path, mode) as client:
        answer = await client.call_tool("call_tool", arguments)

    assert answer.is_error and text_of(answer).endswith(f"[{code}]")


@both_eras
async def test_DEF_2_a_search_of_a_server_that_is_not_there_names_those_that_are(tmp_path: Path, mode: str) -> None:
    async with behind_search(tmp_path, mode) as client:
        answer = await client.call_tool("search_tools", {"query": "echo", "server": "god"})
        nothing = await client.call_tool("search_tools", {"query": "zebra"})

    assert answer.is_error and "Servers: good." in text_of(answer)
    assert text_of(nothing) == "No tool fits 'zebra', of 9 searched. Servers: good."


@both_eras
async def test_DEF_2_a_call_that_does_not_fit_says_what_the_fields_take(tmp_path: Path, mode: str) -> None:
    wrong = {"text": {"not": "text"}}
    async with behind_search(tmp_path, mode) as client:
        called = await through(client, "mcp__good__echo", wrong)
        direct = await client.call_tool("mcp__good__echo", wrong)

    assert called.is_error and text_of(called) == text_of(direct)
    assert 'Their schema: {"text":{"type":"string"}}' in text_of(called)


@both_eras
async def test_D21_the_list_stays_as_it_is_in_a_session_and_has_what_was_used_most_in_the_next(
    tmp_path: Path, mode: str
) -> None:
    async with behind_search(tmp_path, mode) as client:
        before = (await client.list_tools(cache_mode="bypass")).model_dump_json(by_alias=True, exclude={"meta"})
        for _ in range(2):
            await client.call_tool("search_tools", {"query": "say something again"})
            await client.call_tool("describe_tool", {"name": "mcp__good__echo"})
            await through(client, "mcp__good__echo", {"text": "hello"})
        after = (await client.list_tools(cache_mode="bypass")).model_dump_json(by_alias=True, exclude={"meta"})
    async with behind_search(tmp_path, mode) as client:
        later = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("search_tools", {"query": "say something again"})
        called = await client.call_tool("mcp__good__echo", {"text": "hello"})

    assert before == after and "mcp__good__" not in before
    assert [name for name in later if name.startswith("mcp__")] == ["mcp__good__echo"]
    assert text_of(found).startswith("mcp__good__echo(") and text_of(called) == "hello"
