"""A server that its launcher must download first is still starting, not failed (FLW-3)."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.errors import ErrorCode
from goat_mcp.upstreams.config.entry import HttpEndpoint, StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.config.launchers import launcher_of, start_timeout_s
from goat_mcp.upstreams.retry_policy import SupervisorLimits
from goat_mcp.upstreams.status import ReasonCode, UpstreamState
from tests.upstreams.fleet import QUICK, SERVERS, fleet, load

pytestmark = pytest.mark.anyio
SHORT = replace(QUICK, start_timeout_s=0.3, download_timeout_s=60.0, connect_wait_s=0.3)


def slow_program(folder: Path, name: str) -> dict[str, Any]:
    """An entry whose program becomes a server once FOLDER/downloaded is there."""
    program = folder / name
    server = shlex.join([sys.executable, str(SERVERS / "raw.py"), "plain"])
    wait = f"while [ ! -e {shlex.quote(str(folder / 'downloaded'))} ]; do sleep 0.02; done"
    program.write_text(f"#!/bin/sh\n{wait}\nexec {server}\n")
    program.chmod(0o755)
    return {"command": str(program), "args": ["-y", "some-package"]}


async def test_a_download_reads_still_starting_and_goes_on_in_the_background(tmp_path: Path) -> None:
    entries = {"npm": slow_program(tmp_path, "npx"), "plain": slow_program(tmp_path, "program")}
    async with fleet(tmp_path, entries, limits=SHORT, first_list=False) as running:
        await running.upstreams.first_list(0.1)
        await running.until(lambda: running.status("plain").reason_code == ReasonCode.START_TIMEOUT)
        status = running.status("npm")
        missing = running.upstreams.why_missing("mcp__npm__ping")
        (tmp_path / "downloaded").touch()
        await running.until(lambda: running.registry.get("mcp__npm__ping") is not None)
        answer = await running.call("mcp__npm__ping")

    assert (status.state, status.reason_code) == (UpstreamState.STARTING, ReasonCode.STARTING)
    assert status.detail == "it is still starting; npx may be downloading it first and has 60 s for that"
    assert missing is not None and missing.code is ErrorCode.UPSTREAM_DOWN
    assert "upstream npm is still starting (starting)" in missing.message
    assert answer.text == "pong"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("npx -y pkg", "npx"),
        ("npx.cmd pkg", "npx"),
        ("bunx pkg", "bunx"),
        ("pnpm dlx pkg", "pnpm dlx"),
        ("npm exec pkg", "npm exec"),
        ("/usr/bin/uvx pkg", "uvx"),
        ("uv tool run pkg", "uv tool run"),
        ("pipx run pkg", "pipx run"),
        ("docker run -i image", "docker run"),
        ("docker exec box server", None),
        ("pipx list", None),
        ("npm start", None),
        ("python server.py", None),
    ],
)
def test_launchers_that_download_have_more_time_to_start(command: str, name: str | None) -> None:
    program, *args = command.split()
    target = StdioLaunch(program, tuple(args))
    launcher = launcher_of(target)

    assert (None if launcher is None else launcher.name) == name
    config = UpstreamConfig(name="s", server="s", target=target)
    assert start_timeout_s(config, SupervisorLimits()) == (30 if name is None else 300)


def test_an_entry_says_itself_how_long_its_start_may_take(tmp_path: Path) -> None:
    entries: dict[str, Any] = {
        "slow": {"command": "npx", "args": ["x"], "start_timeout_s": 7},
        "never": {"command": "x", "start_timeout_s": -1},
    }
    files = load(tmp_path, entries)

    assert [start_timeout_s(config, SupervisorLimits()) for config in files.configs] == [7]
    assert "start_timeout_s: -1 is not a number of seconds" in files.problems[0].message


def test_an_address_has_no_launcher() -> None:
    assert launcher_of(HttpEndpoint("http://127.0.0.1/npx")) is None
