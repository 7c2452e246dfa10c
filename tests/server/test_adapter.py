"""The server as a client sees it, in both protocol eras, over an in-memory connection."""

from __future__ import annotations

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

from goat_mcp.gateway import Gateway
from goat_mcp.permissions.mode import Approval
from goat_mcp.server.adapter import Adapter
from goat_mcp.settings import Settings
from goat_mcp.state.directory import StateDirectory
from tests.tool_doubles import fake

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
        return types.ListRootsResult(roots=[types.Root(uri=folder.as_uri(), name="project")])  # type: ignore[arg-type]

    return answer


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
        with anyio.fail_after(5):
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
