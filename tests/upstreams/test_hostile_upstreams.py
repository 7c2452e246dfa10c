"""The UP attacks by upstreams over stdio, each beside a healthy one that is called all the while (R-UP-1 to R-UP-8)."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult
from goat_mcp.embed import EmbeddedTools, open_tools
from goat_mcp.upstreams.config.entry import StdioLaunch
from goat_mcp.upstreams.listing.entry_validation import MAX_DESCRIPTION_CHARS
from goat_mcp.upstreams.retry_policy import SupervisorLimits
from goat_mcp.upstreams.status import UpstreamState, UpstreamStatus
from goat_mcp.upstreams.transports.child_pipes import STDERR_TAIL_BYTES
from tests.repetitions import times
from tests.upstreams.fleet import QUICK, Fleet, fleet, load, server, warm
from tests.upstreams.test_stdio_upstreams import is_alive, lines, pid_of

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

BOUND_S = 120.0
GOOD_S = 60.0
"""A call of the healthy one. Its neighbour's calls may take four times as long."""
MIB = 1024 * 1024
CANARY = "canary-of-the-upstream-cases"
T = [{"name": "t", "inputSchema": {"type": "object"}}]


@dataclass
class Pair:
    """`evil` and `good` behind one pipeline.

    `computed_s` is, for each call of `good` meanwhile, how long the event loop computed until it was answered: what
    held it up there, however busy the machine is.
    """

    tools: EmbeddedTools
    log: Path
    computed_s: list[float] = field(default_factory=list[float])

    async def evil(self, name: str, arguments: dict[str, Any] | None = None) -> ToolResult:
        with anyio.fail_after(BOUND_S):
            return await self.tools.call(f"mcp__evil__{name}", arguments or {})

    def status(self, name: str = "evil") -> UpstreamStatus:
        return next(status for status in self.tools.gateway.upstreams.status() if status.name == name)

    async def keep_calling_good(self) -> None:
        while True:
            started_s = time.thread_time()
            with anyio.fail_after(GOOD_S):
                result = await self.tools.call("mcp__good__ping", {})
            self.computed_s.append(time.thread_time() - started_s)
            assert result.text == "pong"
            await anyio.sleep(0.01)

    async def good_was_called(self, times: int) -> None:
        """So many times more."""
        wanted = len(self.computed_s) + times
        with anyio.fail_after(BOUND_S):
            while len(self.computed_s) < wanted:  # noqa: ASYNC110  # another task counts
                await anyio.sleep(0.01)


@asynccontextmanager
async def pair(folder: Path, evil: dict[str, Any] | None = None, **settings: Any) -> AsyncGenerator[Pair]:
    log = folder / "evil.log"
    (folder / "ws").mkdir()
    entries = {
        "evil": {**server("evil.py", log), "timeout_s": 60, **(evil or {})},
        "good": server("raw.py", "plain", env={"TOKEN_OF_GOOD": CANARY}),
    }
    file = folder / "upstreams.json"
    file.write_text(json.dumps({"mcpServers": entries}))
    wanted = {"workspace": [str(folder / "ws")], "upstreams": [str(file)], "mode": "bypassPermissions", **settings}
    async with open_tools(wanted, state_directory=folder / "state") as tools:
        with anyio.fail_after(BOUND_S):
            while len([name for name in tools.gateway.registry.names() if name.startswith("mcp__")]) < 20:
                await tools.definitions()
                await anyio.sleep(0.05)
        running = Pair(tools, log)
        async with anyio.create_task_group() as group:
            group.start_soon(running.keep_calling_good)
            await running.good_was_called(2)
            yield running
            await running.good_was_called(3)
            group.cancel_scope.cancel()
    ordered = sorted(running.computed_s)
    assert ordered[len(ordered) * 95 // 100] < 1.0, "the healthy upstream was held up"


def peak_memory_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


async def test_up_02_one_that_never_answers_the_handshake_is_given_up_while_others_work(tmp_path: Path) -> None:
    entries = {"evil": server("raw.py", "hang"), "good": server("raw.py", "plain")}
    warm(tmp_path, entries, {"evil": T})
    limits = replace(QUICK, connect_wait_s=1.0, start_timeout_s=60)
    async with fleet(tmp_path, entries, limits=limits, first_list=False) as running:
        answers: list[str] = []
        errors: list[ToolError] = []

        async def beside() -> None:
            for _ in range(5):
                answers.append((await running.call("mcp__good__ping")).text)

        async with anyio.create_task_group() as group:
            await running.upstreams.first_list(1.0)
            group.start_soon(beside)
            errors.append(await running.failing("mcp__evil__t"))
        state = running.status("evil").state

    assert [error.code for error in errors] == [ErrorCode.UPSTREAM_DOWN]
    assert "still starting" in errors[0].message and "did not run" in errors[0].message
    assert answers == ["pong"] * 5
    assert state is UpstreamState.STARTING, "the caller waited for its whole time to start"
    assert SupervisorLimits().connect_wait_s <= 10


async def test_up_03_a_call_that_hangs_ends_is_cancelled_and_gives_its_place_back(tmp_path: Path) -> None:
    async with pair(tmp_path, {"timeout_s": 4, "concurrency": 1}) as running:
        hung = await running.evil("t")
        in_flight = running.status().calls_in_flight
        next_one = await running.evil("add", {"x": 1})

    assert (hung.is_error, hung.error_code) == (True, "E_TIMEOUT")
    assert in_flight == 0
    assert next_one.text == '{"x": 1}'
    assert "cancelled" in lines(running.log)


async def test_up_06_banners_log_lines_and_garbage_are_dropped_and_counted(tmp_path: Path) -> None:
    async with pair(tmp_path) as running:
        results = [await running.evil("banner") for _ in range(3)]
        status = running.status()

    assert [result.text for result in results] == ["after the noise"] * 3
    assert status.state is UpstreamState.READY
    assert status.junk_lines >= 3 * 5


# ISO-3
async def test_up_07_a_line_of_500_mb_is_never_held(tmp_path: Path) -> None:
    """R-UP-2. The full size is 500 MB."""
    async with pair(tmp_path) as running:
        before = peak_memory_bytes()
        result = await running.evil("endless_line", {"mib": times(128, in_full_run=500)})
        grown = peak_memory_bytes() - before
        after = await running.evil("add")
        status = running.status()

    assert (result.is_error, result.error_code) == (True, "E_UPSTREAM")
    assert (status.state, status.oversized_frames) == (UpstreamState.READY, 1)
    assert "larger than 16777216 bytes" in result.text
    assert grown < 64 * MIB
    assert not after.is_error


async def test_up_09_a_flood_on_stderr_is_drained_and_its_end_kept(tmp_path: Path) -> None:
    """R-UP-2. The full size is 1 GB."""
    async with pair(tmp_path) as running:
        before = peak_memory_bytes()
        result = await running.evil("stderr_flood", {"mib": times(256, in_full_run=1024)})
        grown = peak_memory_bytes() - before
        status = running.status()

    assert result.text == "flooded"
    assert 0 < len(status.stderr_tail) <= STDERR_TAIL_BYTES
    assert grown < 64 * MIB


@pytest.mark.parametrize("name", ["huge_text", "huge_image"])
async def test_up_10_an_answer_over_the_cap_is_an_error(tmp_path: Path, name: str) -> None:
    """R-UP-3"""
    async with pair(tmp_path) as running:
        before = peak_memory_bytes()
        result = await running.evil(name)
        grown = peak_memory_bytes() - before

    assert (result.is_error, result.error_code) == (True, "E_UPSTREAM")
    assert grown < 64 * MIB


# ISO-3
async def test_up_10_ten_thousand_blocks_are_cut_with_a_notice(tmp_path: Path) -> None:
    async with pair(tmp_path) as running:
        result = await running.evil("many_blocks")

    assert not result.is_error
    assert len(json.dumps(result.wire())) < 200_000
    assert "block 0\n" in result.text and "10000" not in result.text.split("\n")[0]
    assert "characters" in result.text and "Read" in result.text


@pytest.mark.parametrize("name", ["no_object", "no_content", "both", "string_error", "unknown_id"])
async def test_up_11_what_is_no_result_is_an_error_that_names_the_upstream(tmp_path: Path, name: str) -> None:
    """R-UP-3"""
    async with pair(tmp_path, {"timeout_s": 4}) as running:
        result = await running.evil(name)
        after = await running.evil("add")

    assert result.is_error
    if name == "string_error":
        assert result.wire()["isError"] is True
    else:
        assert "evil" in result.text
        assert not any(raw in result.text for raw in ("just text", "good", "for nobody", "meaning"))
    assert not after.is_error


async def test_up_12_only_own_open_calls_are_answered_and_only_once(tmp_path: Path) -> None:
    """R-UP-3. `good` is called under ids the evil one guesses; ids are each connection's own."""
    async with pair(tmp_path) as running:
        guessed = [(await running.evil("guess")).text for _ in range(3)]
        after = (await running.evil("add", {"y": 2})).text

    assert guessed == ["own"] * 3
    assert after == '{"y": 2}'


async def test_up_20_hidden_orders_in_a_description_are_shown_and_counted(tmp_path: Path) -> None:
    """R-UP-7"""
    async with pair(tmp_path) as running:
        spec = running.tools.gateway.registry.snapshot.tools["mcp__evil__add"].spec
        status = running.status()

    assert not any(hidden in spec.description for hidden in "\x1b\u200b\u202e\U000e0041\U000e0042")
    assert "\\x1b[8m<IMPORTANT>" in spec.description or "\\u001b[8m<IMPORTANT>" in spec.description
    assert len(spec.description) <= MAX_DESCRIPTION_CHARS
    assert (status.escaped_tools, status.shortened_descriptions) == (1, 1)


@pytest.mark.parametrize("trusted", [False, True])
async def test_up_22_a_read_only_claim_lets_nothing_through_unless_the_operator_vouches(
    tmp_path: Path, trusted: bool
) -> None:
    """R-UP-7, RSK-3"""
    async with pair(
        tmp_path, {"trust_annotations": trusted}, mode="dontAsk", permissions={"allow": ["mcp__good"]}
    ) as running:
        result = await running.evil("delete_all")

    assert result.is_error is not trusted
    assert result.error_code == (None if trusted else "E_PERMISSION")


async def test_up_25_a_schema_that_refers_to_itself_harms_nobody(tmp_path: Path) -> None:
    """R-SCHEMA-3"""
    async with pair(tmp_path) as running:
        result = await running.evil("looping", {"a": {"a": {"a": {}}}})

    assert not result.is_error
    assert "Recursion" not in result.text


# SCH-4
@pytest.mark.parametrize("depth", [150, 5000])
async def test_up_25_a_schema_thousands_deep_is_rejected(tmp_path: Path, depth: int) -> None:
    """R-SCHEMA-3"""
    entries = {"deep": server("evil.py", tmp_path / "log", str(depth)), "good": server("raw.py")}
    async with fleet(tmp_path, entries) as running:
        names = running.registry.names()
        status = running.status("deep")
        pong = await running.call("mcp__good__ping")

    assert pong.text == "pong"
    assert "mcp__deep__deep" not in names
    if depth == 150:
        assert "mcp__deep__t" in names
        assert [(tool.name, tool.reason) for tool in status.rejected] == [
            ("deep", "its inputSchema is nested more than 128 levels deep")
        ]
    else:
        assert status.reason_code == "list_failed" and "nested too deeply" in status.detail


async def test_up_27_a_pattern_of_an_upstream_does_not_hold_up_the_loop(tmp_path: Path) -> None:
    """R-SCHEMA-4: of outputs see test_output_check."""
    async with pair(tmp_path) as running:
        refused = await running.evil("pattern", {"a": "a" * 32 + "!"})
        result = await running.evil("pattern", {"a": "a" * 32})

    # `pair` calls the other one meanwhile, and measures how long the loop computed.
    assert refused.error_code == ErrorCode.INPUT
    assert json.loads(result.text) == {"a": "a" * 32}


# ERA-3
async def test_up_29_questions_nobody_allowed_are_refused_at_once(tmp_path: Path) -> None:
    """R-UP-8"""
    async with pair(tmp_path) as running:
        result = await running.evil("asks")
        # Its own answers come in order, so that by the next one it has heard ours.
        await running.evil("add")

    answers = [json.loads(line.removeprefix("answer ")) for line in lines(running.log) if line.startswith("answer")]
    assert result.text == "asked"
    assert {answer["id"]: answer["error"]["code"] for answer in answers} == {"e": -32601, "s": -32601, "r": -32601}


# ISO-5
async def test_up_30_a_child_sees_no_secret_of_ours_or_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-UP-8, R-PROC-7"""
    monkeypatch.setenv("SECRET", CANARY)
    monkeypatch.setenv("GOAT_INNOCENT", CANARY)
    async with pair(tmp_path, {"env": {"OWN": "declared"}}) as running:
        seen = (await running.evil("environment")).text

    assert CANARY not in seen and "TOKEN_OF_GOOD" not in seen
    assert "OWN=declared" in seen and "PATH=" in seen


# LIF-8
async def test_up_32_nothing_survives_not_even_a_grandchild_in_a_session_of_its_own(tmp_path: Path) -> None:
    """R-PROC-5: it ignores the end of its input and TERM, and so does what it left behind."""
    async with pair(tmp_path) as running:
        grandchild = int((await running.evil("leave_a_child")).text)
        evil = pid_of(running.log)
        assert is_alive(grandchild) and is_alive(evil)

    assert not is_alive(evil)
    assert not is_alive(grandchild)


async def test_up_37_a_result_that_gives_orders_is_data(tmp_path: Path) -> None:
    """R-UP-7. It is passed on as it came, fetches nothing, changes no decision, and its data is held to its schema."""
    async with pair(tmp_path, mode="dontAsk", permissions={"allow": ["mcp__evil", "mcp__good"]}) as running:
        result = await running.evil("orders")
        obeyed = await running.tools.call("Bash", {"command": "echo obeyed"})
        status = running.status()

    assert [block["type"] for block in result.content] == ["text", "resource_link", "resource"]
    assert "root:" not in json.dumps(result.wire())
    assert obeyed.error_code == "E_PERMISSION"
    assert status.output_mismatches == 1


async def test_up_38_a_description_that_speaks_of_another_servers_tools_is_reported_and_changes_nothing(
    tmp_path: Path,
) -> None:
    """R-UP-7"""
    async with pair(tmp_path, mode="dontAsk", permissions={"allow": ["mcp__good"]}) as running:
        status, healthy = running.status(), running.status("good")
        steered = await running.evil("helper")

    assert status.mentions == ("helper: mcp__good__send",)
    assert healthy.mentions == ()
    assert steered.error_code == "E_PERMISSION"


async def test_up_40_what_only_the_protocol_may_say_is_stripped(tmp_path: Path) -> None:
    """REL-5"""
    async with pair(tmp_path) as running:
        stamped = (await running.evil("forge_meta")).wire()
        quiet = await running.evil("forge_progress")

    assert stamped["_meta"] == {"vendor/kept": True}
    assert quiet.text == "quiet"


@pytest.mark.parametrize(
    ("launch", "reason"),
    [
        ({"command": "evil; touch ran"}, "command_not_found"),
        ({"command": "$(touch ran)"}, "command_not_found"),
        ({"command": "./server"}, "config_error"),
        ({"command": "bin/server"}, "config_error"),
        ({"command": "server"}, "command_not_found"),
    ],
)
async def test_up_42_a_command_is_a_program_and_never_the_repositorys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launch: dict[str, Any], reason: str
) -> None:
    """R-UP-8: `server` lies in the folder we work in, which even stands on PATH, as `.`"""
    for place in (tmp_path / "server", tmp_path / "bin" / "server"):
        place.parent.mkdir(exist_ok=True)
        place.write_text("#!/bin/sh\ntouch ran\n")
        place.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".:bin:{os.environ['PATH']}")
    async with fleet(tmp_path, {"evil": launch, "good": server("raw.py")}) as running:
        status = running.status("evil")
        pong = await running.call("mcp__good__ping")

    assert status.reason_code == reason
    assert launch["command"] in status.detail
    assert pong.text == "pong"
    assert "ran" not in {name for _, _, names in os.walk(tmp_path) for name in names}


def test_up_42_arguments_are_passed_as_they_are(tmp_path: Path) -> None:
    files = load(tmp_path, {"evil": {"command": "x", "args": ["-rf", "; touch ran", "$(id)"]}})

    assert files.configs[0].target == StdioLaunch("x", ("-rf", "; touch ran", "$(id)"))


async def test_up_43_a_process_that_was_stopped_is_found_out_and_started_anew(tmp_path: Path) -> None:
    """R-UP-4"""
    log = tmp_path / "log"
    limits = replace(QUICK, ping_timeout_s=0.5)
    entries = {"evil": server("evil.py", log, timeout_s=4.0), "good": server("raw.py")}
    async with fleet(tmp_path, entries, limits=limits) as running:
        stopped = pid_of(log)
        os.kill(stopped, signal.SIGSTOP)
        error = await running.failing("mcp__evil__add")
        pong = await running.call("mcp__good__ping")
        await running.until(lambda: running.status("evil").reason_code == "lost" or pid_of(log) != stopped)
        await running.until(lambda: not is_alive(stopped))
        repaired = await running.call("mcp__evil__add", {"z": 3})

    assert error.code is ErrorCode.TIMEOUT
    assert (pong.text, repaired.text) == ("pong", '{"z": 3}')
    assert pid_of(log) != stopped


async def test_up_43_a_busy_process_is_not_taken_for_a_hung_one(tmp_path: Path) -> None:
    """R-UP-4: it works 2.5 s on a call that had 1 s, and answers nothing else meanwhile."""
    log = tmp_path / "log"
    async with fleet(tmp_path, {"evil": server("evil.py", log, timeout_s=1.0)}) as running:
        error = await running.failing("mcp__evil__busy")
        busy = await wait_for_answer(running, "mcp__evil__add")

    assert error.code is ErrorCode.TIMEOUT
    assert busy == "{}"
    assert len([line for line in lines(log) if line.startswith("start")]) == 1


async def wait_for_answer(running: Fleet, name: str) -> str:
    with anyio.fail_after(60):
        while True:
            result = await first_result(running, name)
            if result is not None:
                return result
            await anyio.sleep(0.1)


async def first_result(running: Fleet, name: str) -> str | None:
    try:
        return (await running.call(name)).text
    except ToolError as error:
        assert error.code is ErrorCode.TIMEOUT
        return None


@pytest.mark.parametrize("name", ["MCP__EVIL__ADD", "mcp__evil__add ", "mcp__Evil__add", "mcp__evil__ADD", "evil__add"])
async def test_up_44_another_spelling_is_another_tool(tmp_path: Path, name: str) -> None:
    async with pair(tmp_path, permissions={"deny": ["mcp__evil__add"]}) as running:
        result = await running.tools.call(name, {})
        denied = await running.evil("add")

    assert result.error_code == "E_TOOL_NOT_FOUND"
    assert denied.is_error and denied.error_code in ("E_PERMISSION", "E_TOOL_NOT_IN_CATALOG")
