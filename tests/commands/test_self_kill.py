"""Whether a script would end the server."""

from __future__ import annotations

import os

import pytest

from goat_mcp.commands.self_kill import kill_of_this_server


@pytest.mark.parametrize(
    "script",
    [
        "pkill -f goat-mcp",
        "pkill goat-mcp",
        "pkill -9 -f goat_mcp",
        "killall goat-mcp",
        "sudo pkill -KILL -f 'goat.mcp'",
        "true && bash -c 'pkill -f goat-mcp'",
        "echo $(pkill -fi GOAT-MCP)",
        "kill -9 $PPID",
        "kill -- -1",
        "kill -9 -1",
        pytest.param(f"kill {os.getpid()}", id="kill-own-pid"),
        pytest.param(f"kill -s TERM {os.getpid()}", id="kill-term-own-pid"),
        "pkill -f .",
        "pkill -x goat-mcp",
        "pkill --full goat-mcp",
    ],
)
def test_a_kill_that_would_hit_the_server_is_seen(script: str) -> None:
    assert kill_of_this_server(script) is not None


@pytest.mark.parametrize(
    "script",
    [
        "pkill -f my-dev-server-4711",
        "kill 999999999",
        "kill -1 999999999",
        "kill %1",
        "echo pkill -f goat-mcp",
        "pgrep -f goat-mcp",
        "pkill -P 4242 -f goat",
        "grep 'pkill goat-mcp' notes",
        "killall node-4711",
    ],
)
def test_other_kills_are_let_through(script: str) -> None:
    assert kill_of_this_server(script) is None
