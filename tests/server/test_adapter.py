"""The server as a client sees it, in both protocol eras, over an in-memory connection."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.shared.exceptions import MCPError

from goat_mcp.calls.audit.recorded_calls import recorded_calls
from goat_mcp.calls.audit.records import CallFilter
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import Adapter
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.upstreams.status import UpstreamState
from tests.tool_doubles import FakeTool, fake, spec
from tests.upstreams.fleet import server

pytestmark = pytest.mark.anyio
both_eras = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])


def gateway(folder: Path, *, ask_client_for_roots: bool = False, **settings: Any) -> Gateway:
    if not ask_client_for_roots:
        settings.setdefault("workspace", [folder])
    return Gateway(
        Settings.model_validate(settings),
        approval=Approval.HOST,
        ask_client_for_roots=ask_client_for_roots,
        state=StateDirectory(folder / "state"),
    )


@asynccontextmanager
async def connected(served: Gateway, mode: str, **options: Any) -> AsyncGenerator[Client]:
    adapter = Adapter(served, "stdio")
    async with served.running(), anyio.create_task_group() as group:
        await group.start(adapter.run)
        async with Client(adapter.server, mode=mode, **options) as client:
            yield client
        group.cancel_scope.cancel()


@both_eras
async def test_tools_are_listed_with_all_hints_and_list_changed_is_promised(tmp_path: Path, mode: str) -> None:
    async with connected(gateway(tmp_path), mode) as client:
        tools = (await client.list_tools()).tools

        assert [tool.name for tool in tools][:3] == ["Bash", "Read", "Write"]
        assert all(tool.annotations and tool.annotations.title for tool in tools)
        if mode == "legacy":
            assert client.server_capabilities.tools == types.ToolsCapability(list_changed=True)


@both_eras
async def test_an_unknown_tool_is_invalid_params_and_the_next_call_works(tmp_path: Path, mode: str) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    async with connected(gateway(tmp_path), mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("Raed", {})
        answer = await client.call_tool("Read", {"file_path": str(tmp_path / "a.txt")})

    assert caught.value.error.code == types.INVALID_PARAMS
    assert "tool not found: Raed" in caught.value.error.message and "Read" in caught.value.error.message
    assert answer.content[0].type == "text" and answer.content[0].text == "1\thello"


@both_eras
async def test_R_AUDIT_2_the_record_for_people_names_the_client(tmp_path: Path, mode: str) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    info = types.Implementation(name="cursor-vscode", version="1.9")
    async with connected(gateway(tmp_path), mode, client_info=info) as client:
        await client.call_tool("Read", {"file_path": str(tmp_path / "a.txt")})

    (call,) = recorded_calls(tmp_path / "state" / "calls.db", 10, CallFilter(client="cursor"))
    assert (call["client"], call["tool"], call["result_chars"]) == ("cursor-vscode 1.9", "Read", len("1\thello"))
    assert call["arguments"] == {"file_path": str(tmp_path / "a.txt")}


@both_eras
async def test_an_error_is_a_result_with_its_object(tmp_path: Path, mode: str) -> None:
    async with connected(gateway(tmp_path), mode) as client:
        answer = await client.call_tool("Read", {"file_path": "relative.txt"})

    assert answer.is_error
    assert answer.structured_content is not None
    assert answer.structured_content["error"]["code"] == "E_PATH_RELATIVE"


@both_eras
async def test_facts_travel_in_meta_unless_the_user_wants_them_structured(tmp_path: Path, mode: str) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    call = {"file_path": str(tmp_path / "a.txt")}

    async with connected(gateway(tmp_path), mode) as client:
        usual = await client.call_tool("Read", call)
    async with connected(gateway(tmp_path, output={"structured": "always"}), mode) as client:
        always = await client.call_tool("Read", call)

    assert usual.structured_content is None
    assert usual.meta is not None and usual.meta["goat-mcp/facts"]["total_lines"] == 1
    assert always.structured_content is not None and always.structured_content["total_lines"] == 1


async def _roots(folder: Path) -> Any:
    async def answer(context: ClientRequestContext) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=folder.as_uri(), name="project")])  # type: ignore[arg-type]  # the model takes text for a URL

    return answer


# ERA-6
@both_eras
async def test_where_no_workspace_was_named_the_clients_roots_are_it(tmp_path: Path, mode: str) -> None:
    project = tmp_path / "my project"
    project.mkdir()
    (project / "a.txt").write_text("hello\n")
    served = gateway(tmp_path, ask_client_for_roots=True)

    async with connected(served, mode, list_roots_callback=await _roots(project)) as client:
        answer = await client.call_tool("Read", {"file_path": "@a.txt"})

    assert not answer.is_error
    assert served.workspace.roots == (project,)


@both_eras
async def test_a_client_without_roots_gets_the_current_directory(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("hello\n")

    async with connected(gateway(tmp_path, ask_client_for_roots=True), mode) as client:
        answer = await client.call_tool("Read", {"file_path": "@a.txt"})

    assert not answer.is_error


async def test_a_handshake_client_is_told_once_that_the_list_changed(tmp_path: Path) -> None:
    served = gateway(tmp_path)
    told: list[str] = []
    arrived = anyio.Event()

    async def handler(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            told.append(message.method)
            arrived.set()

    async with connected(served, "legacy", message_handler=handler) as client:
        await client.list_tools()
        served.registry.replace_source("upstream:x", [fake("one")])
        served.registry.replace_source("upstream:x", [fake("one"), fake("two")])
        with anyio.fail_after(60):
            await arrived.wait()
        names = [tool.name for tool in (await client.list_tools()).tools]

    assert told == ["notifications/tools/list_changed"]
    assert names[-2:] == ["one", "two"]


async def test_nobody_is_told_of_a_change_before_the_first_list(tmp_path: Path) -> None:
    served = gateway(tmp_path)
    told: list[Any] = []

    async def handler(message: Any) -> None:
        told.append(message)

    async with connected(served, "legacy", message_handler=handler) as client:
        served.registry.replace_source("upstream:x", [fake("one")])
        assert "one" in [tool.name for tool in (await client.list_tools()).tools]
        await client.list_tools()
        await anyio.sleep(0.2)  # four times the debounce: the notice would have come

    assert told == []


@both_eras
async def test_a_bug_shows_its_call_id_and_nothing_else(
    tmp_path: Path, mode: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    served = gateway(tmp_path)
    served.registry.replace_source("upstream:x", [fake("broken", answer=RuntimeError("canary detail"))])

    async with connected(served, mode) as client:
        answer = await client.call_tool("broken", {})

    assert answer.is_error
    assert "canary" not in answer.model_dump_json()
    assert capsys.readouterr().err.count("canary detail") == 1
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def upstreams_file(folder: Path, **entries: Any) -> Path:
    file = folder / "upstreams.json"
    file.write_text(json.dumps({"mcpServers": entries}))
    return file


# AGG-3
async def test_capabilities_and_instructions_are_the_same_in_both_eras_whatever_is_up(tmp_path: Path) -> None:
    file = upstreams_file(tmp_path, missing={"command": "no-such-program-here"}, good=server("good.py"))
    said: list[tuple[dict[str, Any], str | None]] = []
    nothing_or_some: list[dict[str, Any]] = [{}, {"upstreams": [file]}]
    for settings in nothing_or_some:
        for mode in ("legacy", "auto"):
            async with connected(gateway(tmp_path, **settings), mode) as client:
                declared = client.server_capabilities.model_dump(by_alias=True, exclude_none=True)
                said.append((declared, client.instructions))

    always = {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {"listChanged": True},
        "completions": {},
        "logging": {},
    }
    ui, skills = {"mimeTypes": ["text/html;profile=mcp-app"]}, {"directoryRead": True}
    tasks: dict[str, object] = {}
    apps = {
        "extensions": {
            "io.modelcontextprotocol/ui": ui,
            "io.modelcontextprotocol/skills": skills,
            "io.modelcontextprotocol/tasks": tasks,
        }
    }
    instructions = said[0][1]
    # The handshake has no word for extensions of a server.
    assert said == [(always, instructions), (always | apps, instructions)] * 2
    assert instructions and len(instructions) <= 2_000


# AGG-4
@both_eras
async def test_the_tool_list_is_whole_on_one_page_however_long_it_is(tmp_path: Path, mode: str) -> None:
    many = [fake(f"tool_{number}") for number in range(1_500)]
    served = gateway(tmp_path, catalog={"mode": "full"})
    served.registry.replace_source("upstream:x", many)

    async with connected(served, mode) as client:
        answer = await client.list_tools()

    assert answer.next_cursor is None
    assert [tool.name for tool in answer.tools][-1_500:] == [tool.spec.name for tool in many]


# AGG-5
@both_eras
async def test_an_unchanged_list_is_the_same_in_every_answer(tmp_path: Path, mode: str) -> None:
    seen: list[str] = []
    for order in ((0, 1), (1, 0)):
        served = gateway(tmp_path)
        served.registry.declare("builtin", "upstream:0", "upstream:1")
        for number in order:
            served.registry.replace_source(f"upstream:{number}", [fake(f"of_{number}")])
        async with connected(served, mode) as client:
            seen += [(await client.list_tools()).model_dump_json() for _ in range(2)]

    assert len(set(seen)) == 1


# AGG-1
@both_eras
async def test_a_deny_rule_holds_for_a_built_in_tool_and_an_upstreams_alike(tmp_path: Path, mode: str) -> None:
    tool = FakeTool(spec("mcp__x__y", canonical_name="mcp__x__y", toolset="upstream"))
    served = gateway(tmp_path, mode="bypassPermissions", permissions={"deny": ["Read", "mcp__x"]})
    served.registry.replace_source("upstream:x", [tool])

    async with connected(served, mode) as client:
        answers = [await client.call_tool(name, {"file_path": str(tmp_path)}) for name in ("Read", "mcp__x__y")]

    assert [(answer.structured_content or {})["error"]["code"] for answer in answers] == ["E_PERMISSION"] * 2
    assert tool.calls == []


# NAM-2
async def test_rules_and_the_record_know_a_renamed_tool_by_its_full_name(tmp_path: Path) -> None:
    find, drop = (
        FakeTool(spec(f"gh__{name}", canonical_name=f"mcp__github__{name}", toolset="upstream"))
        for name in ("find", "drop")
    )
    rules = {"allow": ["mcp__github__find"], "deny": ["mcp__github__drop"]}
    served = gateway(tmp_path, mode="dontAsk", permissions=rules)
    served.registry.replace_source("upstream:github", [find, drop])

    async with connected(served, "legacy") as client:
        answers = [await client.call_tool(f"gh__{name}", {}) for name in ("find", "drop")]

    lines = [json.loads(line) for path in (tmp_path / "state").rglob("audit*.jsonl") for line in path.open()]
    assert [answer.is_error for answer in answers] == [False, True]
    assert (len(find.calls), len(drop.calls)) == (1, 0)
    assert [(line["tool"], line["decision"]) for line in lines if line["event"] == "decision"] == [
        ("mcp__github__find", "allow"),
        ("mcp__github__drop", "deny"),
    ]


# ERA-1
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_is_greeted_while_an_upstream_hangs(tmp_path: Path, mode: str) -> None:
    served = gateway(tmp_path, upstreams=[upstreams_file(tmp_path, hung=server("raw.py", "hang", start="eager"))])

    async with connected(served, mode) as client:
        version = client.protocol_version
        # It has not failed, and so its time to start is not over.
        states = [status.state for status in served.upstreams.status()]

    assert version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
    assert states == [UpstreamState.STARTING]
