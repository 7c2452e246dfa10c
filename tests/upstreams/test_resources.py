"""Lists and reads of upstreams' resources, with real processes: whole where all is well, bounded where it is not."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.resources import McpResources
from goat_mcp.upstreams.listing.paging import MAX_ENTRIES, MAX_PAGES
from goat_mcp.upstreams.status import UpstreamState
from tests.free_port import free_port
from tests.upstreams.fleet import QUICK, Fleet, fleet, server, warm
from tests.upstreams.test_hostile_upstreams import peak_memory_bytes
from tests.upstreams.test_http_upstreams import entry, web_server

pytestmark = [pytest.mark.anyio, pytest.mark.e2e, pytest.mark.matrix]

LIBRARY = Path(__file__).parents[1] / "e2e" / "servers" / "library.py"
PING = [{"name": "ping", "inputSchema": {"type": "object"}}]
WAIT_S = 20.0


def library(fault: str = "", *log: Path, **members: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(LIBRARY), fault, *map(str, log)], **members}


def of(running: Fleet) -> McpResources:
    return running.upstreams.resources()


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


async def failing_list(running: Fleet, name: str, max_wait_s: float = WAIT_S) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await of(running).list(name, max_wait_s)
    return caught.value


async def failing_read(running: Fleet, name: str, uri: str, max_wait_s: float = WAIT_S) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await of(running).read(name, uri, max_wait_s)
    return caught.value


# Lists


async def test_all_pages_and_templates_come_as_they_were_sent(tmp_path: Path) -> None:
    async with fleet(tmp_path, {"library": library(), "pages": library("pages")}) as running:
        whole, pages = await of(running).list_all(WAIT_S)

    assert [entry["uri"] for entry in whole.resources] == [
        "lib://text",
        "lib://image",
        "lib://blob.dat",
        "lib://several",
        "lib://evil",
    ]
    assert whole.templates == ({"uriTemplate": "lib://shelf/{number}", "name": "A shelf", "mimeType": "text/plain"},)
    assert [entry["uri"] for entry in pages.resources] == ["lib://0", "lib://1", "lib://2"]
    assert (whole.problem, pages.problem, pages.templates) == ("", "", ())


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
@pytest.mark.parametrize("link", ["stdio", "http"])
async def test_a_server_of_either_era_over_either_transport(tmp_path: Path, version: str, link: str) -> None:
    port = free_port()
    entries = {"good": entry(port) if link == "http" else server("good.py")}
    warm(tmp_path, entries, {"good": PING}, version)
    with web_server(port, tmp_path / "log") if link == "http" else nullcontext():
        async with fleet(tmp_path, entries) as running:
            listed = await of(running).list("good", WAIT_S)
            first = await of(running).read("good", "good://ü", WAIT_S, meta={"progressToken": 7, "trace": [1]})
            with pytest.raises(UpstreamError) as refused:
                await of(running).read("good", "good://nothing", WAIT_S)

    assert [(one["uri"], one["_meta"]) for one in listed.resources] == [
        (f"good://{number}", {"v": [1]}) for number in range(3)
    ]
    assert [one["uriTemplate"] for one in listed.templates] == ["good://large/{megabytes}"]
    era = "stateless" if version == "2026-07-28" else "handshake"
    seen = {"uri": "good://ü", "text": era, "_meta": {"seen": {"trace": [1]}}}
    assert first["contents"] == [seen]
    assert set(first) <= {"contents", "_meta"}
    assert refused.value.code in (-32602, -32002)


# LIF-1
async def test_a_list_starts_upstreams_of_earlier_runs_that_nobody_has_called_yet(tmp_path: Path) -> None:
    entries = {"library": library()}
    warm(tmp_path, entries, {"library": PING})
    async with fleet(tmp_path, entries, first_list=False) as running:
        before = running.status("library").state
        (listed,) = await of(running).list_all(WAIT_S)

    assert before is UpstreamState.IDLE
    assert len(listed.resources) == 5


# AGG-4
@pytest.mark.parametrize(
    ("fault", "count", "problem"),
    [
        ("cycle", 2, "its list was cut: a cursor came twice"),
        ("endless", MAX_PAGES, f"its list was cut: more than {MAX_PAGES} pages"),
        ("many", MAX_ENTRIES, ""),
        ("odd", 1, "3 entries have no URI"),
        ("none", 0, ""),
        ("undeclared", 0, ""),
        ("templates", 0, ""),
    ],
)
async def test_a_list_ends_and_says_why_it_is_not_all(tmp_path: Path, fault: str, count: int, problem: str) -> None:
    async with fleet(tmp_path, {"it": library(fault)}) as running:
        listed = await of(running).list("it", WAIT_S)

    assert (len(listed.resources), listed.problem) == (count, problem)
    assert len(listed.templates) == (fault == "templates")


async def test_a_server_that_declares_no_resources_is_not_asked_for_any(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with fleet(tmp_path, {"it": library("undeclared", log)}) as running:
        await of(running).list("it", WAIT_S)
        error = await failing_read(running, "it", "lib://text")

    assert lines(log) == ["start"]
    assert (error.code, error.message) == (ErrorCode.NOT_FOUND, "upstream it offers no resources")


# FLW-3
async def test_what_came_before_a_page_that_hangs_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with fleet(tmp_path, {"it": library("hangs-in-lists", log)}) as running:
        listed = await of(running).list("it", 1.0)
        await running.until(lambda: "cancelled" in lines(log))

    assert [entry["uri"] for entry in listed.resources] == ["lib://0"]
    assert listed.problem.startswith("did not list its resources within ")


async def test_a_crash_in_the_middle_of_a_list_is_tried_once_more_and_then_told(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with fleet(tmp_path, {"it": library("crashes-in-lists", log)}) as running:
        listed = await of(running).list("it", WAIT_S)

    assert [entry["uri"] for entry in listed.resources] == ["lib://0"]
    assert "exited with status 4" in listed.problem
    assert lines(log)[:6] == ["start", "list", "list", "start", "list", "list"]


async def test_a_server_that_refuses_its_list_says_so_on_one_line(tmp_path: Path) -> None:
    async with fleet(tmp_path, {"it": library("refuses")}) as running:
        error = await failing_list(running, "it")

    assert error.code is ErrorCode.UPSTREAM
    assert error.message.startswith("upstream it answered resources/list with error -32603: the catalogue")


# ISO-1
async def test_bad_neighbours_cost_a_healthy_server_nothing(tmp_path: Path) -> None:
    entries = {
        "hang": server("raw.py", "hang"),
        "crash": server("raw.py", "exit"),
        "missing": {"command": str(tmp_path / "none")},
        "slow": library("hangs-in-lists"),
        "healthy": library(),
    }
    warm(tmp_path, entries, dict.fromkeys(entries, PING))
    async with fleet(tmp_path, entries, first_list=False) as running:
        answers = await of(running).list_all(10.0)
        state = running.status("hang").state

    assert [answer.server for answer in answers] == list(entries)
    problems = {answer.server: answer.problem for answer in answers}
    assert problems.pop("healthy") == ""
    assert len(answers[-1].resources) == 5
    assert all(problems.values()) and "starting" in problems["hang"]
    # They are asked side by side: after the waits of two, its time to start would be over.
    assert state is UpstreamState.STARTING


# Servers


# AGG-6
async def test_a_server_is_found_by_its_configured_name_and_by_that_in_tool_names(tmp_path: Path) -> None:
    async with fleet(tmp_path, {"my library!": library()}) as running:
        configured = await of(running).list("my library!", WAIT_S)
        cleaned = await of(running).list("my_library", WAIT_S)

    assert configured == cleaned
    assert configured.server == "my library!"


async def test_an_unknown_server_is_refused_with_the_names_there_are(tmp_path: Path) -> None:
    async with fleet(tmp_path, {"library": library(), "other": library()}, first_list=False) as running:
        error = await failing_list(running, "libary")

    assert error.code is ErrorCode.NOT_FOUND
    assert error.message == "there is no MCP server 'libary'"
    assert error.suggestion == "Did you mean library? Servers are: library, other."


async def test_a_server_that_is_denied_as_a_whole_is_neither_started_nor_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    entries = {"my secrets": library("", log), "open": library()}
    warm(tmp_path, entries, dict.fromkeys(entries, PING))
    denied = {"my_secrets": "rule mcp__my_secrets"}
    async with fleet(tmp_path, entries, first_list=False, why_denied=lambda server: denied.get(server, "")) as running:
        secret, public = await of(running).list_all(WAIT_S)
        errors = [
            await failing_list(running, "my secrets"),
            await failing_read(running, "my_secrets", "lib://text"),
        ]

    assert (secret.resources, secret.problem) == ((), "is denied by rule mcp__my_secrets")
    assert len(public.resources) == 5
    assert [(error.code, error.message) for error in errors] == [
        (ErrorCode.PERMISSION, "upstream my secrets is denied by rule mcp__my_secrets")
    ] * 2
    assert lines(log) == []


async def test_an_entry_that_is_not_in_use_is_named_with_the_reason(tmp_path: Path) -> None:
    off = library(disabled=True)
    async with fleet(tmp_path, {"off": off, "wrong": {"args": []}}) as running:
        errors = [await failing_list(running, name) for name in ("off", "wrong", "none")]

    assert [error.code for error in errors] == [ErrorCode.NOT_FOUND] * 3
    assert "'off' is not in use (disabled)" in errors[0].message
    assert "'wrong' is not in use (config_error)" in errors[1].message
    assert errors[2].message == "there is no MCP server 'none': none is configured"


# Reads


async def test_a_read_that_lost_its_server_gets_a_new_one_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with fleet(tmp_path, {"it": library("crashes-once", log)}) as running:
        result = await of(running).read("it", "lib://text", WAIT_S)

    assert result["contents"][0]["text"] == "Grüße from the library\n"
    assert [line for line in lines(log) if line != "cancelled"] == ["start", "read", "start", "read"]


# LIF-6
async def test_a_read_that_always_kills_its_server_is_an_error_after_the_second_time(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with fleet(tmp_path, {"it": library("crashes-in-reads", log)}) as running:
        error = await failing_read(running, "it", "lib://text")

    assert error.code is ErrorCode.UPSTREAM
    assert error.message.startswith("upstream it cannot be reached: the process exited with status 5")
    assert "library: on fire" in error.message
    assert lines(log).count("read") == 2


async def test_a_server_that_cannot_start_is_an_error_of_the_upstream(tmp_path: Path) -> None:
    async with fleet(tmp_path, {"it": server("raw.py", "exit")}, first_list=False) as running:
        error = await failing_read(running, "it", "lib://text")

    assert error.code is ErrorCode.UPSTREAM
    assert "upstream it is down" in error.message
    assert "cannot find my configuration" in error.message


async def test_a_read_that_hangs_ends_in_time_and_is_cancelled(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with fleet(tmp_path, {"it": library("hangs-in-reads", log)}) as running:
        error = await failing_read(running, "it", "lib://text", 0.5)
        await running.until(lambda: "cancelled" in lines(log))
        listed = await of(running).list("it", WAIT_S)

    assert error.code is ErrorCode.TIMEOUT
    assert error.message.startswith("upstream it did not send this resource within ")
    assert len(listed.resources) == 5


async def test_the_upstreams_own_time_limit_holds_for_reads(tmp_path: Path) -> None:
    async with fleet(tmp_path, {"it": library("hangs-in-reads", timeout_s=0.5)}) as running:
        error = await failing_read(running, "it", "lib://text")

    assert error.message == "upstream it did not send this resource within 0.5 s"


async def test_an_answer_without_contents_is_an_error_of_the_upstream(tmp_path: Path) -> None:
    async with fleet(tmp_path, {"it": library("odd")}) as running:
        error = await failing_read(running, "it", "lib://text")

    assert (error.code, error.message) == (ErrorCode.UPSTREAM, "upstream it answered without a list of contents")


async def test_an_unknown_uri_is_refused_as_the_upstream_said_it(tmp_path: Path) -> None:
    async with fleet(tmp_path, {"it": library()}) as running:
        with pytest.raises(UpstreamError) as refused:
            await of(running).read("it", "file:///etc/passwd", WAIT_S)

    error = refused.value
    assert (error.code, error.message, error.data) == (
        -32002,
        "no such resource: file:///etc/passwd",
        {"uri": "file:///etc/passwd"},
    )


@pytest.mark.parametrize(
    ("uri", "problem"),
    [("x" * 8_001, "has 8,001 characters, at most 8,000 are sent"), ("x://\ud83d", "has half a surrogate pair")],
)
async def test_a_uri_that_no_connection_would_survive_is_not_sent(tmp_path: Path, uri: str, problem: str) -> None:
    log = tmp_path / "log"
    async with fleet(tmp_path, {"it": library("", log)}) as running:
        error = await failing_read(running, "it", uri)

    assert (error.code, error.message.startswith(f"uri: {problem}")) == (ErrorCode.INPUT, True)
    assert "read" not in lines(log)


# Beside tool calls


# ISO-2
async def test_reads_that_hang_leave_most_places_to_tool_calls(tmp_path: Path) -> None:
    log = tmp_path / "log"
    entries = {"it": library("hangs-in-reads", log, concurrency=8)}
    answers: list[str] = []
    reads = in_flight = 0
    async with fleet(tmp_path, entries) as running, anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(failing_read, running, "it", "lib://text", 120.0)
        await running.until(lambda: lines(log).count("read") == 2)
        with anyio.fail_after(60):
            answers += [(await running.call("mcp__it__ping")).text for _ in range(50)]
        in_flight = running.status("it").calls_in_flight
        reads = lines(log).count("read")
        group.cancel_scope.cancel()

    assert answers == ["pong"] * 50
    assert (reads, in_flight) == (2, 2)


# LIF-7
async def test_an_upstream_is_not_reaped_as_idle_during_a_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    limits = replace(QUICK, idle_reap_s=0.3)
    async with fleet(tmp_path, {"it": library("", log)}, limits=limits) as running:
        result = await of(running).read("it", "lib://nap/1.5", WAIT_S)

    assert result["contents"][0]["text"] == "rested"
    assert lines(log).count("start") == 1


@pytest.mark.parametrize("over", ["stdio", "http, an event stream", "http, one body"])
async def test_a_resource_of_100_megabytes_is_refused_once_never_held_and_disturbs_no_call(
    tmp_path: Path, over: str
) -> None:
    port = free_port()
    entries = {"it": library() if over == "stdio" else entry(port)}
    version = "2026-07-28" if over == "http, one body" else "2025-11-25"
    warm(tmp_path, entries, {"it": [*PING, {"name": "echo", "inputSchema": {"type": "object"}}]}, version)
    tool, large = ("ping", "lib://large/100000000") if over == "stdio" else ("echo", "good://large/100")
    pings: list[str] = []
    errors: list[ToolError] = []
    with web_server(port, tmp_path / "log") if over != "stdio" else nullcontext():
        async with fleet(tmp_path, entries) as running:

            async def ping() -> None:
                pings.append((await running.call(f"mcp__it__{tool}", {"text": "pong"})).text)

            async def read() -> None:
                errors.append(await failing_read(running, "it", large, 60.0))

            await ping()
            before = peak_memory_bytes()
            async with anyio.create_task_group() as group:
                for task in (ping, read, ping, ping):
                    group.start_soon(task)
            await ping()
            grown = peak_memory_bytes() - before
            status = running.status("it")

    (error,) = errors
    assert error.code is ErrorCode.UPSTREAM
    assert error.message.startswith("upstream it answered, but ") and "16777216" in error.message
    assert pings == ["pong"] * 5
    assert (status.state, status.reason_code, status.detail) == (UpstreamState.READY, "", "")
    assert grown < 64 * 1024 * 1024
