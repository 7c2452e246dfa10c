"""Upstreams as child processes: what a client sees of good, bad and dying ones."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from goat_mcp.core.calling_client import ClientRequest
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, UpstreamError
from goat_mcp.upstreams.retry_policy import RetryLimits
from goat_mcp.upstreams.status import UpstreamState
from goat_mcp.upstreams.transports.child_pipes import STDERR_TAIL_BYTES
from tests.upstreams.fleet import QUICK, fleet, server, warm

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

PING = [{"name": "ping", "inputSchema": {"type": "object"}}]


class Debugging:
    """A client that wants to see all messages, and is never asked anything."""

    protocol_version = "2025-11-25"
    is_stateless = False
    capabilities: Mapping[str, Any] = {}
    log_level = "debug"
    given: Mapping[str, Any] = {}
    notices = None
    known_roots: Sequence[Path] = ()

    async def roots(self) -> Sequence[Path]:
        return ()

    async def ask(self, requests: Mapping[str, ClientRequest]) -> Mapping[str, dict[str, Any]]:
        raise AssertionError("nothing is asked here")

    async def notify(self, method: str, params: Mapping[str, Any]) -> None: ...


def lines(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pid_of(log: Path) -> int:
    return int(next(line for line in reversed(lines(log)) if line.startswith("start")).split()[1])


# REL-1
@pytest.mark.parametrize(("version", "era"), [("", "stateless"), ("2025-11-25", "handshake")])
async def test_a_result_reaches_the_client_as_the_upstream_sent_it(tmp_path: Path, version: str, era: str) -> None:
    entries = {"good": server("good.py")}
    if version:
        warm(
            tmp_path,
            entries,
            {"good": [{"name": name, "inputSchema": {"type": "object"}} for name in ("everything", "seen")]},
            version,
        )

    async with fleet(tmp_path, entries) as running:
        everything = (await running.call("mcp__good__everything")).wire()
        seen = (
            await running.call(
                "mcp__good__seen",
                meta={"vendor/x": 1, "progressToken": 5, "io.modelcontextprotocol/clientInfo": {"name": "liar"}},
            )
        ).wire()

    assert everything == {
        "content": [
            # The SDK's server drops null members of `_meta` in the stateless era.
            {
                "type": "text",
                "text": "t",
                "annotations": {"priority": 0.5},
                "_meta": {"c": 1} if era == "stateless" else {"b": None, "c": 1},
            },
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "x://y", "name": "y"},
            {"type": "resource", "resource": {"uri": "x://z", "text": "zz"}},
        ],
        "isError": False,
        "structuredContent": {"none": None, "big": 123456789012345678901234567890, "list": [1, 2.5]},
        "_meta": {"vendor/answer": 42},
        "resultType": "complete",
    }
    assert seen["structuredContent"]["era"] == era
    meta: dict[str, Any] = seen["structuredContent"]["meta"]
    assert meta["vendor/x"] == 1
    assert "progressToken" not in meta and "progress_token" not in meta
    assert meta.get("io.modelcontextprotocol/clientInfo", {}).get("name") == (
        "goat-mcp" if era == "stateless" else None
    )


# NAM-3, REL-2
async def test_a_listed_tool_is_shown_whole_under_its_new_name(tmp_path: Path) -> None:
    async with fleet(tmp_path, {"good": server("good.py", naming="g")}) as running:
        tool = running.registry.get("g__echo")

    assert tool is not None
    assert tool.spec.rule_name == "mcp__good__echo"
    assert tool.spec.wire() == {
        "name": "g__echo",
        "title": "Echo",
        "description": "Says it again.",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string"}, "region": {"type": "string", "x-mcp-header": "Region"}},
        },
        "annotations": {"readOnlyHint": True},
        "_meta": {"vendor/key": [1, None]},
        "icons": [{"src": "https://example.org/i.png"}],
    }


# REL-6
async def test_a_json_rpc_error_of_the_upstream_keeps_code_message_and_data(tmp_path: Path) -> None:
    async with fleet(tmp_path, {"good": server("good.py")}) as running:
        with pytest.raises(UpstreamError) as refused:
            await running.call("mcp__good__refuse", {"a": [1, None]})

    assert (refused.value.code, refused.value.message, refused.value.data) == (
        -32602,
        "no such thing",
        {"asked": {"a": [1, None]}},
    )


# FLW-1
async def test_progress_of_the_upstream_reaches_a_client_that_asked_for_it(tmp_path: Path) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def listen(done: float, total: float | None = None, message: str | None = None, **_: object) -> None:
        heard.append((done, total, message))

    async with fleet(tmp_path, {"good": server("good.py")}) as running:
        result = await running.call("mcp__good__work", {"steps": 3}, progress=listen, wants_progress=True)

    assert result.text == "worked"
    assert heard == [(1.0, 3.0, "step 1"), (2.0, 3.0, "step 2"), (3.0, 3.0, "step 3")]


# LIF-6
@pytest.mark.parametrize("wants_progress", [True, False])
async def test_a_word_of_the_other_era_in_a_result_does_not_run_the_call_again(
    tmp_path: Path, wants_progress: bool
) -> None:
    log = tmp_path / "log"
    async with fleet(tmp_path, {"raw": server("raw.py", "foreign-word", log)}) as running:
        result = await running.call("mcp__raw__ping", wants_progress=wants_progress)

    assert (result.text, result.is_error) == ("pong", False)
    assert lines(log).count("ping") == 1


# FLW-2
async def test_cancelling_a_call_cancels_it_in_the_upstream_and_keeps_the_process(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with fleet(tmp_path, {"good": server("good.py", log)}) as running:
        async with anyio.create_task_group() as group:
            group.start_soon(running.call, "mcp__good__hang")
            await running.until(lambda: lines(log) == ["hang"])
            group.cancel_scope.cancel()
        await running.until(lambda: lines(log) == ["hang", "cancelled"])
        await running.call("mcp__good__mark")

    assert lines(log) == ["hang", "cancelled", "mark"]


# FLW-3
async def test_a_timeout_cancels_the_call_and_says_that_it_may_have_taken_effect(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with fleet(tmp_path, {"good": server("good.py", log, timeout_s=0.3)}) as running:
        error = await running.failing("mcp__good__hang")
        await running.until(lambda: "cancelled" in lines(log))

    assert error.code is ErrorCode.TIMEOUT
    assert (
        error.message == "upstream good did not answer within 0.3 s; the call was cancelled but may have taken effect"
    )


# FLW-3
async def test_progress_extends_the_idle_timeout_but_not_the_whole_one(tmp_path: Path) -> None:
    entries = {
        # A busy machine may be late by seconds: so long is the silence that the first is given beside its pauses.
        "kept": server("good.py", timeout_s=120, idle_timeout_s=4),
        "silent": server("good.py", timeout_s=120, idle_timeout_s=0.4),
        "long": server("good.py", timeout_s=1.5, idle_timeout_s=60),
    }
    texts: list[str] = []
    messages: dict[str, str] = {}
    async with fleet(tmp_path, entries) as running:

        async def work() -> None:
            texts.append((await running.call("mcp__kept__work", {"steps": 20, "pause_s": 0.25})).text)

        async def fail(name: str, arguments: Mapping[str, float]) -> None:
            messages[name] = (await running.failing(f"mcp__{name}__work", arguments)).message

        async with anyio.create_task_group() as group:
            group.start_soon(work)
            group.start_soon(fail, "silent", {"steps": 2, "pause_s": 600})
            group.start_soon(fail, "long", {"steps": 6000, "pause_s": 0.1})

    assert texts == ["worked"]
    assert messages["silent"].startswith("upstream silent was silent for 0.4 s")
    assert messages["long"].startswith("upstream long did not answer within 1.5 s")


# LIF-6, LIF-9
async def test_a_call_during_which_the_process_died_is_not_repeated(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with fleet(tmp_path, {"good": server("good.py", log)}) as running:
        error = await running.failing("mcp__good__die")
        afterwards = await running.call("mcp__good__mark")

    assert error.code is ErrorCode.OUTCOME_UNKNOWN
    assert "exited with status 7" in error.message and "last words of die" in error.message
    assert afterwards.text == "marked"
    assert lines(log) == ["die", "mark"]


# LIF-9
async def test_the_death_of_a_child_is_noticed_although_its_own_child_holds_the_pipes(tmp_path: Path) -> None:
    async with fleet(tmp_path, {"raw": server("raw.py", "plain")}) as running:
        error = await running.failing("mcp__raw__leave")

    # The child keeps them for ten minutes, and the call had one: it would have ended as E_TIMEOUT.
    assert error.code is ErrorCode.OUTCOME_UNKNOWN


# LIF-5
async def test_a_new_process_is_told_the_log_level_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with fleet(tmp_path, {"raw": server("raw.py", "logs", log)}) as running:
        await running.call("mcp__raw__ping", client=Debugging())
        await running.call("mcp__raw__ping", client=Debugging())
        os.kill(pid_of(log), signal.SIGKILL)
        await running.until(lambda: running.status("raw").state is not UpstreamState.READY)
        await running.call("mcp__raw__ping", client=Debugging())

    said = [line.split()[0] for line in lines(log)]
    assert [word for word in said if word != "list"] == ["start", "level", "ping", "ping", "start", "level", "ping"]


# LIF-5
async def test_a_process_that_was_killed_while_idle_is_started_again_for_the_next_call(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with fleet(tmp_path, {"raw": server("raw.py", "plain", log)}) as running:
        pid = pid_of(log)
        os.kill(pid, signal.SIGKILL)
        await running.until(lambda: running.status("raw").state is not UpstreamState.READY)
        result = await running.call("mcp__raw__ping")

    assert result.text == "pong"
    assert [line for line in lines(log) if line == "ping"] == ["ping"]


# LIF-6
async def test_a_call_right_after_a_death_was_noticed_never_ran_and_is_tried_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    states: list[UpstreamState] = []
    texts: list[str] = []
    async with fleet(tmp_path, {"raw": server("raw.py", "plain", log)}) as running:
        # That moment is short, and on a busy machine it may have passed.
        while UpstreamState.READY not in states and len(states) < 20:
            pid = pid_of(log)
            os.kill(pid, signal.SIGKILL)
            # Reaped, and the event loop has had a turn to hear of it; the connection itself still drains.
            await running.until(lambda pid=pid: not psutil.pid_exists(pid))
            await anyio.sleep(0.02)
            states.append(running.status("raw").state)
            texts.append((await running.call("mcp__raw__ping")).text)

    assert UpstreamState.READY in states
    assert set(texts) == {"pong"}


# LIF-1
async def test_known_tools_are_listed_without_starting_anything(tmp_path: Path) -> None:
    log = tmp_path / "log"
    entries = {"raw": server("raw.py", "plain", log)}
    warm(tmp_path, entries, {"raw": PING})

    async with fleet(tmp_path, entries) as running:
        listed = running.registry.names()
        await anyio.sleep(0.3)
        before_the_call = lines(log)
        result = await running.call("mcp__raw__ping")
        await running.until(lambda: len(running.registry.names()) == 6)

    assert listed == ("mcp__raw__ping",)
    assert before_the_call == []
    assert result.text == "pong"


# LIF-1
async def test_an_eager_upstream_starts_by_itself(tmp_path: Path) -> None:
    log = tmp_path / "log"
    entries = {"raw": server("raw.py", "plain", log, start="eager")}
    warm(tmp_path, entries, {"raw": PING})

    async with fleet(tmp_path, entries, first_list=False) as running:
        await running.until(lambda: "list" in lines(log))

        assert running.status("raw").state is UpstreamState.READY


# LIF-2
async def test_what_was_listed_once_is_known_to_the_next_run(tmp_path: Path) -> None:
    entries = {"raw": server("raw.py", "plain")}
    async with fleet(tmp_path, entries) as first:
        listed = first.registry.names()
    async with fleet(tmp_path, entries, first_list=False) as second:
        known = second.registry.names()

    assert len(listed) == 6
    assert known == listed


# ISO-1
async def test_a_hanging_upstream_delays_neither_the_list_nor_the_calls_of_others(tmp_path: Path) -> None:
    entries = {"hung": server("raw.py", "hang"), "raw": server("raw.py", "plain")}
    limits = replace(QUICK, start_timeout_s=60)
    async with fleet(tmp_path, entries, limits=limits, first_list=False) as running:
        await running.upstreams.first_list(1.0)
        # That one waits once only, however long it would have been now.
        await running.upstreams.first_list(600.0)
        await running.until(lambda: "mcp__raw__ping" in running.registry.names())
        result = await running.call("mcp__raw__ping")

        assert result.text == "pong"
        # Else somebody has waited for it to the end.
        assert running.status("hung").state is UpstreamState.STARTING
        why = running.upstreams.why_missing("mcp__hung__ping")
        assert why is not None
        assert (why.code, why.facts) == (ErrorCode.UPSTREAM_DOWN, {"upstream": "hung", "reason": "starting"})
        assert "upstream hung is still starting" in why.message


async def test_up_42_shell_syntax_is_a_programs_name_and_a_path_of_dots_finds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "planted"
    planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    planted.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    entries = {
        "shell": {"command": f"sh; touch {tmp_path}/ran"},
        "spaced": {"command": f"/bin/sh -c 'touch {tmp_path}/ran'"},
        "dots": {"command": "planted", "env": {"PATH": ".:"}},
    }
    async with fleet(tmp_path, entries) as running:
        told = {name: running.status(name).reason_code for name in entries}

    assert told == {"shell": "config_error", "spaced": "command_not_found", "dots": "command_not_found"}
    assert not (tmp_path / "ran").exists()


async def test_an_upstream_that_cannot_start_fails_alone_and_says_why(tmp_path: Path) -> None:
    entries = {
        "exits": server("raw.py", "exit"),
        "missing": {"command": "no-such-program-here"},
        "homeless": server("raw.py", cwd=str(tmp_path / "gone")),
        "raw": server("raw.py"),
    }
    async with fleet(tmp_path, entries) as running:
        exits, missing, homeless = (running.status(name) for name in ("exits", "missing", "homeless"))
        result = await running.call("mcp__raw__ping")

    assert result.text == "pong"
    assert exits.reason_code == "start_failed"
    assert "exited with status 4" in exits.detail and "cannot find my configuration" in exits.detail
    assert missing.reason_code == "command_not_found"
    assert "no-such-program-here" in missing.detail
    assert (homeless.reason_code, homeless.detail) == (
        "folder_not_found",
        f"cwd '{tmp_path}/gone': there is no such folder",
    )


# LIF-4
async def test_after_five_failures_calls_fail_at_once_and_a_probe_mends_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = tmp_path / "sometimes.py"
    script.write_text("raise SystemExit(9)")
    entries = {"raw": {"command": server("raw.py")["command"], "args": [str(script), "plain", str(log)]}}
    warm(tmp_path, entries, {"raw": PING})
    limits = replace(QUICK, retry=RetryLimits(backoff_min_s=0.01, backoff_max_s=0.02, probe_after_s=4.0))

    async with fleet(tmp_path, entries, limits=limits) as running:
        first = await running.failing("mcp__raw__ping")
        await running.until(lambda: running.status("raw").state is UpstreamState.FAILED)
        refused = await running.failing("mcp__raw__ping")
        script.write_text((Path(__file__).parent / "servers" / "raw.py").read_text())
        await running.until(lambda: running.status("raw").state is UpstreamState.READY)
        repaired = await running.call("mcp__raw__ping")

    assert first.code is ErrorCode.UPSTREAM_DOWN and "exited with status 9" in first.message
    # The next try, which it might have waited for, was still to come.
    assert refused.code is ErrorCode.UPSTREAM_DOWN and "next try in" in refused.message
    assert repaired.text == "pong"


# ISO-3
async def test_garbage_on_stdout_is_counted_and_stderr_is_kept_to_its_end(tmp_path: Path) -> None:
    async with fleet(tmp_path, {"raw": server("raw.py", "garbage")}) as running:
        result = await running.call("mcp__raw__ping")
        status = running.status("raw")

    assert result.text == "pong"
    assert status.junk_lines == 4
    assert 0 < len(status.stderr_tail) <= STDERR_TAIL_BYTES


# REL-4
async def test_a_broken_answer_fails_its_call_and_odd_content_becomes_text(tmp_path: Path) -> None:
    async with fleet(tmp_path, {"raw": server("raw.py", "plain")}) as running:
        broken = await running.failing("mcp__raw__broken")
        odd = await running.call("mcp__raw__odd")
        status = running.status("raw")

    assert broken.code is ErrorCode.UPSTREAM and "is not JSON" in broken.message
    assert [block["type"] for block in odd.content] == ["text", "text"]
    assert json.loads(odd.content[0]["text"]) == {"type": "hologram", "depth": 3}
    assert odd.content[1]["text"] == "\ud83d half"
    assert status.unknown_blocks == 1


# AGG-4
async def test_all_pages_are_listed_and_a_repeated_cursor_ends_the_list(tmp_path: Path) -> None:
    entries = {"pages": server("raw.py", "pages"), "endless": server("raw.py", "endless")}
    async with fleet(tmp_path, entries) as running:
        names = running.registry.names()
        status = running.status("endless")

    assert names == (
        "mcp__pages__tool_0",
        "mcp__pages__tool_1",
        "mcp__pages__tool_2",
        "mcp__endless__tool_None",
        "mcp__endless__tool_again",
    )
    assert (status.reason_code, status.detail) == ("list_truncated", "a cursor came twice")


# SCH-3
async def test_a_broken_tool_is_rejected_alone(tmp_path: Path) -> None:
    async with fleet(tmp_path, {"raw": server("raw.py", "broken-tools")}) as running:
        names = running.registry.names()
        rejected = running.status("raw").rejected

    assert names == ("mcp__raw__fine",)
    assert [tool.name for tool in rejected] == ["", "schemaless", "x"]


# OBS-1, SCH-3
async def test_what_is_rejected_is_known_to_the_next_run_with_its_reasons(tmp_path: Path) -> None:
    entries = {"raw": server("raw.py", "broken-tools")}
    async with fleet(tmp_path, entries) as first:
        rejected = first.status("raw").rejected
    async with fleet(tmp_path, entries, first_list=False) as second:
        await second.upstreams.first_list(20)
        known, state = second.status("raw").rejected, second.status("raw").state
        why = second.upstreams.why_missing("mcp__raw__schemaless")

    assert len(rejected) == 3
    assert (known, state) == (rejected, UpstreamState.IDLE)
    assert why is not None
    assert "is rejected" in why.message


# CHG-1
async def test_a_flood_of_change_notices_costs_at_most_one_list_per_interval(tmp_path: Path) -> None:
    log = tmp_path / "log"
    limits = replace(QUICK, relist_interval_s=0.5)
    async with fleet(tmp_path, {"raw": server("raw.py", "flood", log)}, limits=limits) as running:
        began_s, before = time.monotonic(), lines(log).count("list")
        await running.until(lambda: lines(log).count("list") >= before + 3)
        relists, flooded_s = lines(log).count("list") - before, time.monotonic() - began_s
        result = await running.call("mcp__raw__ping")

    assert result.text == "pong"
    assert relists <= flooded_s / 0.5 + 2
    assert len(running.generations) == 1


# CHG-2
@pytest.mark.parametrize("version", ["", "2025-11-25"])
async def test_a_tool_that_appears_is_listed_after_the_upstream_says_so(tmp_path: Path, version: str) -> None:
    entries = {"good": server("good.py")}
    if version:
        warm(tmp_path, entries, {"good": [{"name": "grow", "inputSchema": {"type": "object"}}]}, version)
    async with fleet(tmp_path, entries) as running:
        await running.call("mcp__good__echo" if not version else "mcp__good__grow")
        await running.until(lambda: "mcp__good__echo" in running.registry.names())
        await anyio.sleep(0.3)
        await running.call("mcp__good__grow")

        await running.until(lambda: "mcp__good__extra_0" in running.registry.names())


# CHG-2
@pytest.mark.parametrize("takes_s", ["0.1", "2"])
async def test_what_changed_before_the_change_stream_began_is_listed_all_the_same(tmp_path: Path, takes_s: str) -> None:
    log = tmp_path / "log"
    async with fleet(tmp_path, {"late": server("late_stream.py", takes_s, log)}) as running:
        await running.until(lambda: running.registry.names() == ("mcp__late__one", "mcp__late__two"))

    assert lines(log)[-2:] == ["hears", "list"]


# ERA-3
async def test_a_request_of_the_upstream_is_answered_with_an_error_at_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with fleet(tmp_path, {"raw": server("raw.py", "asks", log)}) as running:
        await running.until(lambda: any(line.startswith("answer") for line in lines(log)))

    (answer,) = [line for line in lines(log) if line.startswith("answer")]
    assert json.loads(answer.removeprefix("answer ")) == {
        "jsonrpc": "2.0",
        "id": "q1",
        "error": {"code": -32601, "message": "goat-mcp declared no capability for roots/list"},
    }


# ISO-5
async def test_a_child_sees_only_allowed_and_declared_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_INNOCENT_SETTING", "canary")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    async with fleet(tmp_path, {"good": server("good.py", env={"DECLARED": "yes"})}) as running:
        seen = (await running.call("mcp__good__seen")).wire()["structuredContent"]["env"]

    assert "DECLARED" in seen and "PATH" in seen and "LC_ALL" in seen
    assert "MY_INNOCENT_SETTING" not in seen


# LIF-7
async def test_an_idle_process_is_ended_and_its_tools_stay(tmp_path: Path) -> None:
    log = tmp_path / "log"
    limits = replace(QUICK, idle_reap_s=0.4)
    async with fleet(tmp_path, {"raw": server("raw.py", "plain", log)}, limits=limits) as running:
        await running.call("mcp__raw__slow", {"s": 0.8})
        pid = pid_of(log)
        await running.until(lambda: running.status("raw").state is UpstreamState.IDLE)

        assert not is_alive(pid)
        assert "mcp__raw__ping" in running.registry.names()
        assert (await running.call("mcp__raw__ping")).text == "pong"


# LIF-7
@pytest.mark.parametrize("version", ["", "2025-11-25"])
async def test_a_watched_upstream_is_not_idle_until_nobody_watches(tmp_path: Path, version: str) -> None:
    entries = {"shelf": server("shelf.py", "a")}
    if version:
        warm(tmp_path, entries, {"shelf": [{"name": "subscribed", "inputSchema": {"type": "object"}}]}, version)
    limits = replace(QUICK, idle_reap_s=0.4)
    # Its first list would come too late: it is idle for so short a time that it may not even have started.
    async with fleet(tmp_path, entries, limits=limits, first_list=False) as running:
        watches = running.upstreams.upstream("upstream:shelf").views.watches
        unwatch = await watches.add(ToolContext(call_id="c"), "a://one", 20)
        await anyio.sleep(1.2)  # three times as long as one that is idle lives
        while_watched = running.status("shelf").state
        unwatch()

        await running.until(lambda: running.status("shelf").state is UpstreamState.IDLE)

    assert while_watched is UpstreamState.READY


# LIF-8
@pytest.mark.parametrize("mode", ["plain", "hang", "stubborn"])
async def test_no_process_survives_the_end(tmp_path: Path, mode: str) -> None:
    log = tmp_path / "log"
    async with fleet(tmp_path, {"raw": server("raw.py", mode, log)}, first_list=False) as running:
        with anyio.move_on_after(0.5):
            await running.upstreams.first_list(5)
        await running.until(lambda: bool(lines(log)))

    assert not is_alive(pid_of(log))


# ISO-2
async def test_too_many_calls_wait_and_far_too_many_are_refused_at_once(tmp_path: Path) -> None:
    entry = server("good.py", concurrency=2)
    busy = 0
    in_flight = 0
    async with fleet(tmp_path, {"good": entry}) as running:

        async def one() -> None:
            nonlocal busy
            error = await running.failing("mcp__good__hang")
            assert error.code is ErrorCode.BUSY
            busy += 1

        async with anyio.create_task_group() as group:
            for _ in range(2 + 64 + 3):
                group.start_soon(one)
            # Those that wait have a minute: whoever is told earlier was told at once.
            await running.until(lambda: busy == 3, 50)
            in_flight = running.status("good").calls_in_flight
            group.cancel_scope.cancel()
        result = await running.call("mcp__good__echo", {"text": "free again"})

    assert in_flight == 2
    assert result.text == "free again"
