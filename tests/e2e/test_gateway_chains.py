"""goat-mcp behind goat-mcp: in every pair of eras, over both transports; and in circles, which end (CHN-1, CHN-2)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextResourceContents

from goat_mcp.state.directory import StateDirectory
from goat_mcp.upstreams.cache.warm_catalog import StoredCatalog, WarmCatalog
from goat_mcp.upstreams.config.upstream_files import load_upstream_files
from tests.e2e.conftest import UNASKED, fill, upstream_file
from tests.e2e.goat import TOKEN, HttpGoat, Launch, connected, http_goat, wait_for_url
from tests.e2e.processes import end
from tests.free_port import free_port
from tests.upstreams.fleet import server

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.matrix]
BOTH_ERAS = ["legacy", "2026-07-28"]
WAIT_S = 60
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


def launch(folder: Path, name: str, **upstreams: Any) -> Launch:
    own = folder / name
    workspace = fill(own / "ws")
    file = upstream_file(own / "upstreams.json", **upstreams)
    return Launch(own, workspace, ("--upstreams", str(file), *UNASKED))


def as_entry(inner: Launch) -> dict[str, Any]:
    """An entry that starts the inner goat-mcp over stdio."""
    command, *arguments = inner.command
    variables = {name: inner.environment[name] for name in ("GOAT_MCP_STATE_DIR", "XDG_CONFIG_HOME")}
    return {"command": command, "args": arguments, "env": variables}


def expect_handshake(outer: Launch, upstream: str) -> None:
    """Let `outer` remember that this upstream spoke the handshake revision: it is tried first then (ERA-2)."""
    file = Path(outer.options[1])
    store = WarmCatalog(StateDirectory(outer.folder / "state"))
    for config in load_upstream_files([file]).configs:
        if config.name == upstream:
            store.store(config.server, config.fingerprint, StoredCatalog("2025-11-25", ()))


async def status_of(client: Client) -> dict[str, Any]:
    (content,) = (await client.read_resource("goat://status")).contents
    assert isinstance(content, TextResourceContents)
    return {upstream["name"]: upstream for upstream in json.loads(content.text)["upstreams"]}


async def until(client: Client, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    with anyio.fail_after(WAIT_S):
        while not holds(found := await status_of(client)):  # noqa: ASYNC110  # it happens in another process
            await anyio.sleep(0.1)
        return found


async def until_known(client: Client, name: str) -> CallToolResult:
    """Call a tool as soon as it is there."""
    with anyio.fail_after(WAIT_S):
        while True:
            try:
                answer = await client.call_tool(name, {})
            except MCPError as unknown:
                assert "not found" in str(unknown)
            else:
                if not answer.is_error or "E_UPSTREAM_DOWN" not in str(answer):
                    return answer
            await anyio.sleep(0.1)


async def names_of(goat: HttpGoat, era: str) -> set[str]:
    """What a client that was not there before gets: those that were keep their list for a while."""
    async with connected(goat, era) as client:
        return {tool.name for tool in (await client.list_tools()).tools}


@contextmanager
def inner_as(transport: str, inner: Launch) -> Generator[dict[str, Any]]:
    if transport == "stdio":
        yield as_entry(inner)
        return
    with http_goat(inner) as served:
        yield {"url": served.url, "headers": HEADERS}


@pytest.mark.parametrize("client_era", BOTH_ERAS)
@pytest.mark.parametrize("inner_era", ["handshake", "stateless"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_tool_behind_two_gateways_is_called_in_every_pair_of_eras(
    tmp_path: Path, transport: str, inner_era: str, client_era: str
) -> None:
    # CHN-1: `mcp__inner__mcp__gh__ping` is the tool `mcp__gh__ping` of the upstream `inner`.
    inner = launch(tmp_path, "inner", gh=server("raw.py"))
    with inner_as(transport, inner) as entry:
        outer = launch(tmp_path, "outer", inner={**entry, "start": "eager"})
        if inner_era == "handshake":
            expect_handshake(outer, "inner")
        async with connected(outer, client_era) as client:
            await client.list_tools()
            answer = await until_known(client, "mcp__inner__mcp__gh__ping")
            read = await client.call_tool("mcp__inner__Read", {"file_path": str(inner.workspace / "notes.md")})
            upstream = (await status_of(client))["inner"]

    assert [block.model_dump(exclude_none=True) for block in answer.content] == [{"type": "text", "text": "pong"}]
    assert not read.is_error
    # A process that nobody had asked for begins again in the era of its first client (ERA-2b).
    era = "handshake" if (transport, client_era) == ("stdio", "legacy") else inner_era
    assert (upstream["state"], upstream["era"], upstream["reason_code"]) == ("ready", era, "")


@contextmanager
def goat_at(port: int, started: Launch) -> Generator[HttpGoat]:
    token_file = started.folder / "token"
    token_file.write_text(TOKEN)
    token_file.chmod(0o600)
    process = subprocess.Popen(
        [*started.command, "--http", f"127.0.0.1:{port}", "--token-file", str(token_file)],
        env=started.environment,
        cwd=started.workspace,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield HttpGoat(wait_for_url(process), process)
    finally:
        end(process)


def at(port: int) -> dict[str, Any]:
    return {"url": f"http://127.0.0.1:{port}/mcp", "headers": HEADERS}


@pytest.mark.parametrize("era", BOTH_ERAS)
async def test_a_gateway_that_is_its_own_upstream_notices_and_serves_the_rest(tmp_path: Path, era: str) -> None:
    # CHN-2: a circle of one, which must be told its own address before it has one
    port = free_port()
    alone = launch(tmp_path, "alone", me=at(port), gh=server("raw.py"))
    with goat_at(port, alone) as goat:
        async with connected(goat, era) as client:
            await client.list_tools()
            found = await until(client, lambda status: status["me"]["reason_code"] == "gateway_cycle")
            names = await names_of(goat, era)
            answer = await client.call_tool("mcp__gh__ping", {})

    assert "mcp__gh__ping" in names
    assert [name for name in names if name.startswith("mcp__me__")] == []
    assert found["me"]["detail"] == "it is this very goat-mcp; remove the entry"
    assert not answer.is_error


@pytest.mark.parametrize("era", BOTH_ERAS)
async def test_two_gateways_that_are_each_others_upstreams_show_each_other_once(tmp_path: Path, era: str) -> None:
    # CHN-2: a circle of two
    left_port, right_port = free_port(), free_port()
    left = launch(tmp_path, "left", other=at(right_port), gh=server("raw.py"))
    right = launch(tmp_path, "right", other=at(left_port))
    with ExitStack() as goats:
        first = goats.enter_context(goat_at(left_port, left))
        second = goats.enter_context(goat_at(right_port, right))
        async with connected(first, era) as left_client, connected(second, era) as right_client:
            await left_client.list_tools()
            await right_client.list_tools()

            def is_settled(status: dict[str, Any]) -> bool:
                return status["other"]["reason_code"] == "gateway_cycle" and status["other"]["tool_count"] > 0

            left_status = await until(left_client, is_settled)
            await until(right_client, is_settled)
            of_left, of_right = await names_of(first, era), await names_of(second, era)
            # A round trip through the other one, and one that would come round.
            read = await left_client.call_tool("mcp__other__Glob", {"pattern": "*.md"})
            through = await right_client.call_tool("mcp__other__mcp__gh__ping", {})
            await anyio.sleep(2)
            later = await names_of(first, era)

    assert "mcp__other__Read" in of_left and "mcp__other__Read" in of_right
    assert "mcp__other__mcp__gh__ping" in of_right
    assert [name for name in of_left | of_right if name.startswith("mcp__other__mcp__other__")] == []
    assert later == of_left
    rejected = [each for each in left_status["other"]["rejected"] if each["kind"] == "tool"]
    assert {each["reason_code"] for each in rejected} == {"gateway_cycle"}
    assert "mcp__other__mcp__gh__ping" in {each["name"] for each in rejected}
    assert not read.is_error and not through.is_error


async def test_a_call_that_has_come_round_or_passed_eight_gateways_is_not_passed_on(tmp_path: Path) -> None:
    # CHN-2: "a hop list in `_meta` (limit 8)"
    inner = launch(tmp_path, "one", gh=server("raw.py"))
    async with connected(inner, "legacy") as client:
        await client.list_tools()
        fine = await client.call_tool("mcp__gh__ping", {}, meta={"goat-mcp/hops": [str(n) for n in range(7)]})
        with pytest.raises(MCPError, match="gateway_cycle: tools/call is not passed on: it has passed 8 gateways"):
            await client.call_tool("mcp__gh__ping", {}, meta={"goat-mcp/hops": [str(n) for n in range(8)]})

    assert not fine.is_error
