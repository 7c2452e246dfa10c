"""What a handler that logs without end may put into the server's log, in one call and in a minute."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from goat_mcp.gateway.gateway import Gateway
from goat_mcp.manifests.handler_log import LINES_OF_CALL, LINES_OF_MINUTE, HandlerLog
from goat_mcp.state.telemetry import Telemetry
from tests.manifests.declared import call, gateway_over, python, tool, write

pytestmark = pytest.mark.anyio


def said(telemetry: Telemetry) -> list[dict[str, Any]]:
    """Where its lines will be, without time and ids."""
    lines: list[dict[str, Any]] = []

    def take(line: str) -> None:
        fields = json.loads(line)
        lines.append({name: fields[name] for name in ("event", "message", "lines", "why") if name in fields})

    telemetry.copy_to(take)
    return lines


def messages(lines: list[dict[str, Any]]) -> list[str]:
    return [line["message"] for line in lines if line["event"] == "a handler says"]


def left_out(lines: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return [(line["lines"], line["why"]) for line in lines if line["event"] == "lines of a handler are left out"]


FLOODS = """
import asyncio, time
async def flood(ctx, input):
    for number in range(input["lines"]):
        ctx.logger.info("line %d", number)
    ctx.logger.error("the one that matters")
    return "done"

def forever(ctx, input):
    while True:
        ctx.logger.warning("and on")

handlers = {"flood": flood, "forever": forever}
"""
EXPORTS = ("flood", {"name": "forever", "timeoutMs": 2500})


def over(tmp_path: Path) -> tuple[Gateway, list[dict[str, Any]]]:
    python(tmp_path / "tools", "probe", FLOODS, *EXPORTS)
    gateway = gateway_over(tmp_path, tmp_path / "tools", log_level="debug")
    return gateway, said(gateway.telemetry)


async def test_a_call_logs_so_many_lines_and_one_that_tells_of_the_others(tmp_path: Path) -> None:
    gateway, lines = over(tmp_path)

    async with gateway.running():
        result = await call(gateway, "probe__flood", lines=5000)
        at_its_end = list(lines)

    assert result.text == "done"
    assert messages(at_its_end) == [*(f"line {number}" for number in range(LINES_OF_CALL)), "the one that matters"]
    assert left_out(at_its_end) == [(5000 - LINES_OF_CALL, f"over {LINES_OF_CALL} in a call")]


async def test_so_does_one_that_never_ends_of_its_own(tmp_path: Path) -> None:
    gateway, lines = over(tmp_path)

    async with gateway.running():
        await call(gateway, "probe__flood", lines=0)  # its time begins when it has been loaded
        lines.clear()
        result = await call(gateway, "probe__forever")

    assert result.error_code == "E_TIMEOUT"
    assert messages(lines) == ["and on"] * LINES_OF_CALL
    ((count, why),) = left_out(lines)
    assert (count > LINES_OF_CALL, why) == (True, f"over {LINES_OF_CALL} in a call")


async def test_a_call_that_logs_a_little_has_no_such_line(tmp_path: Path) -> None:
    gateway, lines = over(tmp_path)

    async with gateway.running():
        await call(gateway, "probe__flood", lines=LINES_OF_CALL)

    assert len(messages(lines)) == LINES_OF_CALL + 1
    assert left_out(lines) == []


async def test_calls_of_one_minute_have_a_bound_together(tmp_path: Path) -> None:
    now_s = 0.0
    telemetry = Telemetry("debug")
    lines = said(telemetry)
    log = HandlerLog(telemetry, lambda: now_s)

    def one_call(resource: str, count: int) -> None:
        logger = log.of(resource, "c")
        for number in range(count):
            logger.info("line %d", number)
        for handler in logger.handlers:
            handler.close()

    for _ in range(LINES_OF_MINUTE):
        one_call("probe", 2)
    one_call("other", 1)
    in_the_first = list(lines)
    now_s = 61.0
    one_call("probe", 1)
    in_the_second = lines[len(in_the_first) :]
    log.close()

    assert len(messages(in_the_first)) == LINES_OF_MINUTE + 1
    assert left_out(in_the_first) == []
    assert left_out(in_the_second) == [(LINES_OF_MINUTE, f"over {LINES_OF_MINUTE} in a minute")]
    assert messages(in_the_second) == ["line 0"]
    assert len(lines) == len(in_the_first) + 2


async def test_what_a_minute_left_out_is_told_at_the_latest_when_the_server_ends(tmp_path: Path) -> None:
    script = "#!/bin/sh\ncat >/dev/null\necho complaint >&2\necho 1\n"
    write(tmp_path / "tools", tool("script", {"command": ["./script.sh"]}, "say"), script_sh=script)
    gateway = gateway_over(tmp_path, tmp_path / "tools", log_level="debug")
    lines = said(gateway.telemetry)
    log = gateway.declared._manifests._services.log  # pyright: ignore  # nobody else is handed it
    for _ in range(LINES_OF_MINUTE):
        log.has_room("script", is_grave=False)

    async with gateway.running():
        await call(gateway, "script__say")
        before = left_out(lines)

    assert messages(lines) == []
    assert (before, left_out(lines)) == ([], [(1, f"over {LINES_OF_MINUTE} in a minute")])


MISTAKES = """
class Mute:
    def __str__(self): raise ValueError
    __repr__ = __str__
def slip(ctx, input):
    ctx.logger.info("done %d", "x")
    ctx.logger.warning("%s of %s", 1)
    ctx.logger.error(Mute())
    ctx.logger.info("%s", Mute())
    ctx.logger.info("fine")
    return "done"
handlers = {"slip": slip}
"""
TOLD = [
    "'done %d' cannot be logged with what it was given: TypeError",
    "'%s of %s' cannot be logged with what it was given: TypeError",
    "a Mute cannot be logged with what it was given: ValueError",
    "'%s' cannot be logged with what it was given: ValueError",
    "fine",
]


async def test_a_mistake_in_a_line_fails_no_call_and_is_told_in_its_place(tmp_path: Path) -> None:
    python(tmp_path / "tools", "probe", MISTAKES, "slip")
    gateway = gateway_over(tmp_path, tmp_path / "tools", log_level="debug")
    lines = said(gateway.telemetry)

    async with gateway.running():
        result = await call(gateway, "probe__slip")

    assert (result.is_error, result.text) == (False, "done")
    assert messages(lines) == TOLD


def test_nor_does_one_of_a_handler_of_ours(tmp_path: Path) -> None:
    namespace: dict[str, Any] = {}
    exec(MISTAKES, namespace)  # the same handlers, in this process
    telemetry = Telemetry("debug")
    lines = said(telemetry)
    logger = HandlerLog(telemetry).of("probe", "call-1")

    done = namespace["handlers"]["slip"](SimpleNamespace(logger=logger), {})

    assert (done, messages(lines)) == ("done", TOLD)
