"""Calls of upstreams that take long, over stdio and HTTP, in both eras on both sides: each becomes a task (D20)."""

from __future__ import annotations

import asyncio
import itertools
import re
import subprocess
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client

from tests.e2e.conftest import UNASKED, fill, upstream_file
from tests.e2e.goat import Launch, connected, http_goat, listed_with
from tests.e2e.upstream_launch import UPSTREAMS, started
from tests.e2e.visits import PYTHON, Kind
from tests.e2e.wire import text_of
from tests.quick_start import goat_command

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

AFTER_S = 0.5
BOUND_S = 60.0
every_python = pytest.mark.parametrize("kind", PYTHON, ids=str)
TRANSPORTS = ("stdio", "http")
every_transport = pytest.mark.parametrize("transport", TRANSPORTS)


def crossed(*upstreams: str) -> pytest.MarkDecorator:
    """Each upstream, transport and client: `make test` has half of them, in which each two meet."""
    ways = itertools.product(enumerate(upstreams), enumerate(TRANSPORTS), enumerate(PYTHON))
    cells = [
        pytest.param(kind, transport, upstream, id=f"{kind}-{transport}-{upstream}", marks=[pytest.mark.full] * odd)
        for (u, upstream), (t, transport), (k, kind) in ways
        for odd in [(u + t + k) % 2]
    ]
    return pytest.mark.parametrize(("kind", "transport", "upstream"), cells)


@asynccontextmanager
async def served(
    folder: Path,
    upstream: str = "old_stdio",
    kind: Kind = PYTHON[0],
    transport: str = "stdio",
    *options: str,
    members: dict[str, Any] | None = None,
    **client: Any,
) -> AsyncGenerator[Client]:
    """A client of goat-mcp before that upstream. Its calls take the fast path: a plain one has gone before."""
    with started(upstream, "slow", str(folder), **(members or {})) as up:
        file = upstream_file(folder / "upstreams.json", up=up)
        settings = (*UNASKED, "--upstreams", str(file), "--set", f"tasks.after_s={AFTER_S}", *options)
        launch = Launch(folder, fill(folder / "workspace"), settings)
        if transport == "http":
            with http_goat(launch) as goat:
                async with connected(goat, kind.era, **client) as connection:
                    yield await ready(connection)
        else:
            async with connected(launch, kind.era, **client) as connection:
                yield await ready(connection)


async def ready(client: Client) -> Client:
    await listed_with(client, "mcp__up__plain")
    assert text(await client.call_tool("mcp__up__plain", {})) == "plain"
    return client


def text(result: types.CallToolResult) -> str:
    return text_of(result.model_dump(by_alias=True))


def task_of(result: types.CallToolResult) -> str:
    found = re.match(r"Task started: ([a-z2-7]{32})\n", text(result))
    assert found is not None, text(result)
    return found.group(1)


async def seen(path: Path) -> None:
    with anyio.fail_after(BOUND_S):
        while not path.exists():  # noqa: ASYNC110, ASYNC240 - another process makes it
            await anyio.sleep(0.01)


@crossed(*UPSTREAMS)
async def test_a_call_that_takes_long_is_answered_with_a_task_that_has_its_whole_result(
    tmp_path: Path, kind: Kind, transport: str, upstream: str
) -> None:
    """ERA-7, design D20."""
    async with served(tmp_path, upstream, kind, transport) as client:
        task = task_of(await client.call_tool("mcp__up__slow", {}))
        running = await client.call_tool("TaskOutput", {"task_id": task, "block": False})
        beside = await client.call_tool("mcp__up__plain", {})
        (tmp_path / "go").touch()
        ended = await client.call_tool("TaskOutput", {"task_id": task})
        again = await client.call_tool("TaskOutput", {"task_id": task})

    assert text(running).startswith(f"Task {task}: running, ")
    assert text(beside) == "plain"
    header, said, image, link = ended.content
    assert isinstance(header, types.TextContent) and header.text.startswith(f"Task {task}: completed, ")
    assert isinstance(said, types.TextContent) and said.text == "done"
    assert isinstance(image, types.ImageContent) and image.data == "aGk="
    assert isinstance(link, types.ResourceLink) and str(link.uri) == "file:///report"
    assert (ended.structured_content, ended.is_error) == ({"answer": 42}, False)
    assert (ended.meta or {})["example.com/cost"] == 3
    assert again.content == ended.content
    assert not (tmp_path / "cancelled").exists()


@crossed(*UPSTREAMS)
async def test_stopping_the_task_cancels_the_call_at_the_upstream(
    tmp_path: Path, kind: Kind, transport: str, upstream: str
) -> None:
    """FLW-2."""
    async with served(tmp_path, upstream, kind, transport) as client:
        task = task_of(await client.call_tool("mcp__up__slow", {}))
        stopped = await client.call_tool("TaskStop", {"task_id": task})
        await seen(tmp_path / "cancelled")
        after = await client.call_tool("TaskOutput", {"task_id": task})

    assert text(stopped).startswith(f"Stopped task {task} (mcp__up__slow).")
    assert "it may have taken effect" in text(stopped)
    assert text(after).startswith(f"Task {task}: stopped, ") and "it may have taken effect" in text(after)


@every_transport
@every_python
async def test_the_first_call_of_a_client_may_take_long_too(tmp_path: Path, kind: Kind, transport: str) -> None:
    """It goes the SDK's way."""
    with started("old_stdio", "slow", str(tmp_path)) as up:
        file = upstream_file(tmp_path / "upstreams.json", up=up)
        launch = Launch(
            tmp_path,
            fill(tmp_path / "workspace"),
            (*UNASKED, "--upstreams", str(file), "--set", f"tasks.after_s={AFTER_S}"),
        )

        async def check(client: Client) -> types.CallToolResult:
            await listed_with(client, "mcp__up__slow")
            task = task_of(await client.call_tool("mcp__up__slow", {}))
            (tmp_path / "go").touch()
            return await client.call_tool("TaskOutput", {"task_id": task})

        if transport == "http":
            with http_goat(launch) as goat:
                async with connected(goat, kind.era) as client:
                    ended = await check(client)
        else:
            async with connected(launch, kind.era) as client:
                ended = await check(client)

    assert ended.structured_content == {"answer": 42}


@pytest.mark.parametrize("upstream", ["old_stdio", "new_http"])
@every_python
async def test_a_client_that_wants_progress_hears_it_until_it_has_the_task(
    tmp_path: Path, kind: Kind, upstream: str
) -> None:
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    async with served(tmp_path, upstream, kind) as client:
        task = task_of(await client.call_tool("mcp__up__slow", {}, progress_callback=hear))
        running = await client.call_tool("TaskOutput", {"task_id": task, "block": False})
        before = list(heard)
        (tmp_path / "go").touch()
        ended = await client.call_tool("TaskOutput", {"task_id": task})

    assert "step one" in before and heard == before
    assert "1 of 3: step one" in text(running)
    assert ended.structured_content == {"answer": 42}


async def test_a_tool_that_promised_an_object_answers_the_task_as_an_error(tmp_path: Path) -> None:
    """Clients refuse any other result without that object."""
    async with served(tmp_path) as client:
        handle = await client.call_tool("mcp__up__typed", {})
        (tmp_path / "go").touch()
        ended = await client.call_tool("TaskOutput", {"task_id": task_of(handle)})

    assert handle.is_error
    assert (ended.is_error, ended.structured_content) == (False, {"answer": 42})


@pytest.mark.parametrize("tool", ["fails", "refuses"])
async def test_a_call_that_fails_in_the_background_fails_the_task(tmp_path: Path, tool: str) -> None:
    async with served(tmp_path) as client:
        task = task_of(await client.call_tool(f"mcp__up__{tool}", {}))
        (tmp_path / "go").touch()
        ended = await client.call_tool("TaskOutput", {"task_id": task})

    assert ended.is_error and text(ended).startswith(f"Task {task}: failed, ")
    assert {"fails": "it did not work", "refuses": "not today (JSON-RPC -32050)"}[tool] in text(ended)


async def test_an_upstream_that_dies_fails_the_task_within_a_second(tmp_path: Path) -> None:
    """LIF-9, LIF-6."""
    async with served(tmp_path) as client:
        task = task_of(await client.call_tool("mcp__up__exits", {}))
        (tmp_path / "go").touch()
        before_s = time.monotonic()
        ended = await client.call_tool("TaskOutput", {"task_id": task})
        took_s = time.monotonic() - before_s

    assert ended.is_error and "E_OUTCOME_UNKNOWN" in text(ended)
    assert took_s < 5  # a second, and what a busy machine adds


async def test_the_time_limit_of_the_upstream_holds_for_the_task(tmp_path: Path) -> None:
    """FLW-3."""
    async with served(tmp_path, members={"timeout_s": 2}) as client:
        task = task_of(await client.call_tool("mcp__up__slow", {}))
        ended = await client.call_tool("TaskOutput", {"task_id": task})
        await seen(tmp_path / "cancelled")

    assert ended.is_error and "[E_TIMEOUT]" in text(ended) and "did not answer within 2 s" in text(ended)


@crossed("old_stdio", "new_stdio")
async def test_what_an_upstream_asks_in_the_background_is_refused_at_once(
    tmp_path: Path, kind: Kind, transport: str, upstream: str
) -> None:
    """ERA-3: nobody can be asked on that call any more."""
    asked: list[str] = []

    async def person(context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"day": "Monday"})

    async with served(tmp_path, upstream, kind, transport, elicitation_callback=person) as client:
        task = task_of(await client.call_tool("mcp__up__asks", {}))
        (tmp_path / "go").touch()
        ended = await client.call_tool("TaskOutput", {"task_id": task})

    assert asked == []
    assert "the call goes on in the background, where nobody can be asked" in text(ended)


@crossed("old_stdio", "new_stdio")
async def test_a_call_that_waits_for_a_person_becomes_a_task_only_after_the_answer(
    tmp_path: Path, kind: Kind, transport: str, upstream: str
) -> None:
    async def person(context: Any, params: Any) -> types.ElicitResult:
        await anyio.sleep(3 * AFTER_S)
        return types.ElicitResult(action="accept", content={"day": "Monday"})

    async with served(tmp_path, upstream, kind, transport, elicitation_callback=person) as client:
        task = task_of(await client.call_tool("mcp__up__asks_first", {}))
        (tmp_path / "go").touch()
        ended = await client.call_tool("TaskOutput", {"task_id": task})

    assert "accept {'day': 'Monday'}" in text(ended)


@pytest.mark.parametrize("options", [("--set", "tasks.after_s=0"), ("--set", 'catalog.deny=["TaskStop"]')], ids=str)
async def test_a_call_is_waited_for_if_tasks_are_off_or_cannot_be_read(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    async with served(tmp_path, "old_stdio", PYTHON[0], "stdio", *options) as client:
        call = asyncio.create_task(client.call_tool("mcp__up__slow", {}))
        await seen(tmp_path / "waiting")
        await anyio.sleep(3 * AFTER_S)
        (tmp_path / "go").touch()
        result = await call

    assert result.structured_content == {"answer": 42}


async def test_a_long_text_is_cut_once_and_kept_whole_in_one_file(tmp_path: Path) -> None:
    """SPL-1."""
    async with served(tmp_path) as client:
        task = task_of(await client.call_tool("mcp__up__large", {}))
        (tmp_path / "go").touch()
        ended = await client.call_tool("TaskOutput", {"task_id": task})

    assert text(ended).count("characters cut; the whole is in") == 1
    sizes = [one.stat().st_size for one in (tmp_path / "state").rglob("*.txt")]
    assert [size for size in sizes if size > 10_000] == [50_000]


async def test_the_record_of_calls_has_the_real_outcome_at_the_real_end(tmp_path: Path) -> None:
    async with served(tmp_path) as client:
        task = task_of(await client.call_tool("mcp__up__fails", {}))
        (tmp_path / "go").touch()
        await client.call_tool("TaskOutput", {"task_id": task})

    lines = [line for file in (tmp_path / "state").rglob("*.jsonl") for line in file.read_text().splitlines()]
    outcomes = [line for line in lines if "mcp__up__fails" in line and '"outcome"' in line]
    assert len(outcomes) == 1 and "E_UPSTREAM" in outcomes[0], lines


@every_python
async def test_a_task_outlives_the_session_that_started_it(tmp_path: Path, kind: Kind) -> None:
    with started("old_stdio", "slow", str(tmp_path)) as up:
        file = upstream_file(tmp_path / "upstreams.json", up=up)
        settings = (
            *UNASKED,
            "--upstreams",
            str(file),
            "--set",
            f"tasks.after_s={AFTER_S}",
            "--set",
            "profiles.narrow={}",
        )
        with http_goat(Launch(tmp_path, fill(tmp_path / "workspace"), settings)) as goat:
            async with connected(goat, kind.era) as client:
                task = task_of(await (await ready(client)).call_tool("mcp__up__slow", {}))
            async with connected(goat, kind.era) as client:
                running = await client.call_tool("TaskOutput", {"task_id": task, "block": False})
                (tmp_path / "go").touch()
                ended = await client.call_tool("TaskOutput", {"task_id": task})

    assert text(running).startswith(f"Task {task}: running, ")
    assert ended.structured_content == {"answer": 42}


@pytest.mark.parametrize("upstream", ["old_http", "new_http"])
@every_transport
async def test_the_end_of_the_server_cancels_the_call(tmp_path: Path, transport: str, upstream: str) -> None:
    with started(upstream, "slow", str(tmp_path)) as up:
        file = upstream_file(tmp_path / "upstreams.json", up=up)
        settings = (*UNASKED, "--upstreams", str(file), "--set", f"tasks.after_s={AFTER_S}")
        launch = Launch(tmp_path, fill(tmp_path / "workspace"), settings)
        if transport == "http":
            with http_goat(launch) as goat:
                async with connected(goat, "legacy") as client:
                    task_of(await (await ready(client)).call_tool("mcp__up__slow", {}))
        else:
            async with connected(launch, "legacy") as client:
                task_of(await (await ready(client)).call_tool("mcp__up__slow", {}))

        await seen(tmp_path / "cancelled")


async def test_an_entry_that_is_taken_away_finishes_its_task(tmp_path: Path) -> None:
    """CFG-4."""
    async with served(tmp_path) as client:
        task = task_of(await client.call_tool("mcp__up__slow", {}))
        upstream_file(tmp_path / "upstreams.json")
        with anyio.fail_after(BOUND_S):
            while any(tool.name == "mcp__up__slow" for tool in (await client.list_tools()).tools):  # noqa: ASYNC110 - polled
                await anyio.sleep(0.1)
        (tmp_path / "go").touch()
        ended = await client.call_tool("TaskOutput", {"task_id": task})

    assert ended.structured_content == {"answer": 42}


async def test_goat_mcp_call_waits_for_the_result_itself(tmp_path: Path) -> None:
    with started("old_stdio", "slow", str(tmp_path)) as up:
        file = upstream_file(tmp_path / "upstreams.json", up=up)
        launch = Launch(tmp_path, fill(tmp_path / "workspace"))
        settings = (*UNASKED, "--upstreams", str(file), "--set", f"tasks.after_s={AFTER_S}")
        command = goat_command("call", "--workspace", str(launch.workspace), *settings, "mcp__up__slow")
        process = await anyio.open_process(
            command, env=launch.environment, cwd=launch.workspace, stdin=subprocess.DEVNULL
        )
        await seen(tmp_path / "waiting")
        await anyio.sleep(3 * AFTER_S)
        (tmp_path / "go").touch()
        assert process.stdout is not None
        with anyio.fail_after(BOUND_S):
            said = b"".join([chunk async for chunk in process.stdout])
            assert await process.wait() == 0

    assert said.decode().splitlines()[0] == "done"


async def test_a_script_that_takes_long_is_a_task_and_waits_for_its_own_calls(tmp_path: Path) -> None:
    """Design D20: the script gets the result of a long call, and its client the id of a task."""
    script = {"script": "print('begun')\nawait mcp__up__slow()"}
    async with served(tmp_path, "old_stdio", PYTHON[0], "stdio", "--toolset", "code") as client:
        task = task_of(await client.call_tool("run_script", script))
        (tmp_path / "go").touch()
        ended = await client.call_tool("TaskOutput", {"task_id": task})

    header, said = ended.content
    assert isinstance(header, types.TextContent) and header.text.startswith(f"Task {task}: completed, ")
    assert isinstance(said, types.TextContent) and said.text == 'begun\n{"answer": 42}'
