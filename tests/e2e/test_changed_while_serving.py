"""A running stdio server follows add, disable, enable, restart and remove within two seconds, and its client is
notified. CFG-4."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.gateway.status.process_files import ProcessFiles
from goat_mcp.state.directory import StateDirectory
from tests.cli.test_undo import Shell
from tests.e2e.wire import Wire
from tests.quick_start import goat_command, script_command

pytestmark = pytest.mark.e2e

WEATHER = Path(__file__).parents[2] / "examples" / "weather_stdio.py"
PLAIN = Path(__file__).parent / "servers" / "plain.py"
TOWNS = "mcp__weather__list_towns"
FOLLOWS_WITHIN_S = 2.0
BUSY_S = 8.0
"""For a machine that is busy with other tests; the time is compared without them."""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    folder = tmp_path / "ws"
    folder.mkdir()
    return Shell(folder, tmp_path / "state")


@pytest.fixture
def wire(shell: Shell) -> Generator[Wire]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GOAT_MCP_")}
    environment["GOAT_MCP_RESIDENT"] = "0"
    environment |= {"GOAT_MCP_STATE_DIR": str(shell.state), "XDG_CONFIG_HOME": str(shell.state / "config")}
    command = goat_command("serve", "--workspace", str(shell.folder))
    with Wire(command, environment, shell.folder, shell.state.parent / "log") as wire:
        wire.handshake()
        yield wire


def names(wire: Wire) -> set[str]:
    return {tool["name"] for tool in wire.request("tools/list")["result"]["tools"]}


def done(shell: Shell, *words: str) -> dict[str, Any]:
    """What the command says with --json."""
    options, separator, target = " ".join(words).partition(" -- ")
    ran = shell.run(*options.split(), "--json", *(["--", *target.split()] if separator else []))
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def followed(wire: Wire, happens: Callable[[set[str]], bool]) -> float:
    """List again after each notice of a change, and only then, until `happens`. How long that took, in seconds."""
    began_s = time.monotonic()
    while True:
        message = wire.next_message(BUSY_S)
        if message.get("method") == "notifications/tools/list_changed" and happens(names(wire)):
            return time.monotonic() - began_s


def publishes(shell: Shell) -> None:
    """Wait until the server is known to commands."""
    running = ProcessFiles(StateDirectory(shell.state))
    ends_s = time.monotonic() + BUSY_S
    while not running.running():
        assert time.monotonic() < ends_s
        time.sleep(0.02)


def test_a_running_server_follows_what_the_user_changes(shell: Shell, wire: Wire) -> None:
    assert "Bash" in names(wire)
    publishes(shell)
    took_s: list[float] = []

    added = done(shell, "add", "weather", "--", *script_command(WEATHER))
    assert added["check"]["ok"] and TOWNS in added["check"]["tools"]
    assert [one["transport"] for one in added["running"]] == ["stdio"]
    took_s.append(followed(wire, lambda now: TOWNS in now))

    off = done(shell, "disable", "Bash", TOWNS)
    assert [one["transport"] for one in off["files"][0]["running"]] == ["stdio"]
    took_s.append(followed(wire, lambda now: not {"Bash", TOWNS} & now))
    refused = wire.request("tools/call", {"name": "Bash", "arguments": {"command": "echo hi"}})
    assert "E_TOOL_NOT_IN_CATALOG" in json.dumps(refused)

    done(shell, "enable", "Bash", TOWNS)
    took_s.append(followed(wire, lambda now: {"Bash", TOWNS} <= now))

    done(shell, "disable", "weather")
    took_s.append(followed(wire, lambda now: TOWNS not in now))
    done(shell, "enable", "weather")
    took_s.append(followed(wire, lambda now: TOWNS in now))

    began_s = time.monotonic()
    (answer,) = done(shell, "restart", "weather")["running"]
    assert (answer["state"], answer["tool_count"]) == ("ready", 3)
    assert time.monotonic() - began_s < BUSY_S
    assert TOWNS in names(wire)

    done(shell, "config", "preset", "read_only")
    took_s.append(followed(wire, lambda now: "Write" not in now and "Read" in now))
    done(shell, "config", "preset", "--all")
    took_s.append(followed(wire, lambda now: "Write" in now))

    done(shell, "remove", "weather")
    took_s.append(followed(wire, lambda now: TOWNS not in now))

    assert sorted(took_s)[len(took_s) // 2] < FOLLOWS_WITHIN_S, took_s


def test_a_call_goes_on_while_servers_and_tools_change(shell: Shell, wire: Wire) -> None:
    names(wire)
    sleeping = wire.start("tools/call", {"name": "Bash", "arguments": {"command": "sleep 4; echo awake"}})

    done(shell, "add", "weather", "--no-check", "--", *script_command(WEATHER))
    followed(wire, lambda now: TOWNS in now)
    done(shell, "disable", "Edit")
    followed(wire, lambda now: "Edit" not in now)

    assert "awake" in json.dumps(wire.answer(sleeping))


def test_a_restarted_server_is_another_process_and_its_neighbour_is_not(shell: Shell, wire: Wire) -> None:
    for name in ("one", "two"):
        done(shell, "add", name, "--no-check", "--", sys.executable, str(PLAIN))
    wire.listed_with("mcp__one__pid", "mcp__two__pid")
    publishes(shell)
    before = {name: wire.text(f"mcp__{name}__pid", {}) for name in ("one", "two")}

    done(shell, "restart", "one")

    after = {name: wire.text(f"mcp__{name}__pid", {}) for name in ("one", "two")}
    assert after["one"] != before["one"]
    assert after["two"] == before["two"]


def test_of_restarts_at_the_same_time_each_succeeds(shell: Shell, wire: Wire) -> None:
    done(shell, "add", "one", "--no-check", "--", sys.executable, str(PLAIN))
    wire.listed_with("mcp__one__pid")
    publishes(shell)

    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(done, shell, "restart", "one") for _ in range(2)]

    assert [one.result()["running"][0]["state"] for one in running] == ["ready", "ready"]


def test_a_server_that_does_not_start_again_is_named_and_one_that_nobody_has(shell: Shell, wire: Wire) -> None:
    done(shell, "add", "gone", "--no-check", "--", "/nowhere/server")
    names(wire)
    publishes(shell)

    failed = shell.run("restart", "gone")
    unknown = shell.run("restart", "gnoe")

    assert failed.returncode == 4
    assert "(stdio, in " in failed.stdout and "command_not_found" in failed.stdout
    assert unknown.returncode == 1
    assert "no server is called 'gnoe'" in unknown.stderr
    assert not list((shell.state / "requests").iterdir())


def test_a_broken_settings_file_is_shown_by_status_and_changes_nothing(shell: Shell, wire: Wire) -> None:
    names(wire)
    done(shell, "disable", "Bash")
    followed(wire, lambda now: "Bash" not in now)
    publishes(shell)
    own = shell.state / "config" / "goat-mcp" / "goat-mcp.yaml"

    own.write_text("catalog: {deny: [Bsh]}\n")

    ends_s = time.monotonic() + BUSY_S
    while "settings: broken_settings: " not in (shown := shell.run("status").stdout):
        assert time.monotonic() < ends_s, shown
    assert "'Bsh' names no tool" in shown
    assert "Bash" not in names(wire)
