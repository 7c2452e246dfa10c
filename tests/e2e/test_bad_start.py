"""What cannot start says so: on stderr, naming the value and the next step, with exit code 1 and nothing on stdout."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.e2e.conftest import ours
from tests.e2e.goat import Launch
from tests.e2e.wire import Wire

pytestmark = pytest.mark.e2e

START_TIMEOUT_S = 60


def failed_start(launch: Launch, *options: str) -> str:
    """What stderr says about a start that must fail."""
    command = [*launch.command, *options]
    run = subprocess.run(
        command,
        env=launch.environment,
        cwd=launch.workspace,
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
        input="",
    )
    assert (run.returncode, run.stdout) == (1, ""), run.stderr
    assert "Traceback" not in run.stderr
    return run.stderr


def assert_says(stderr: str, *words: str) -> None:
    assert [word for word in words if word not in stderr] == [], stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mode: [unclosed\n", ("goat-mcp.yaml", "YAML")),
        ("mode: careful\n", ("mode", "careful", "plan")),
        ("moed: plan\n", ("moed", "mode")),
        ("output: {max_chars: 5}\n", ("output.max_chars", "5", "1000")),
        ("- a list\n", ("goat-mcp.yaml", "list")),
        ("permissions: {deny: ['Bash(']}\n", ("Bash(",)),
        (b"\xff\xfe\x00mode", ("goat-mcp.yaml",)),
    ],
)
def test_a_bad_config_file(launch: Launch, text: str | bytes, words: Sequence[str]) -> None:
    file = launch.folder / "goat-mcp.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())

    assert_says(failed_start(launch, "--config", str(file)), *words)


def test_a_missing_config_file(launch: Launch) -> None:
    missing = str(launch.folder / "none.yaml")

    assert_says(failed_start(launch, "--config", missing), missing)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{ not json", ("upstreams.json", "line 1")),
        ("[]", ("upstreams.json", "mcpServers")),
        ('{"servers": {}}', ("upstreams.json", "mcpServers")),
        ('{"mcpServers": []}', ("upstreams.json", "mcpServers")),
    ],
)
def test_a_bad_upstreams_file(launch: Launch, text: str, words: Sequence[str]) -> None:
    file = launch.folder / "upstreams.json"
    file.write_text(text)

    assert_says(failed_start(launch, "--upstreams", str(file)), *words)


def test_a_missing_upstreams_file(launch: Launch) -> None:
    missing = str(launch.folder / "none.json")

    assert_says(failed_start(launch, "--upstreams", missing), missing)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--mode", "careful"), ("mode", "careful", "acceptEdits")),
        (("--set", "output.max_chars=lots"), ("output.max_chars", "lots")),
        (("--set", "nonsense"), ("--set", "nonsense", "KEY=VALUE")),
        (("--set", "bash.auto_background=3"), ("bash.auto_background", "bash.auto_background_after_s")),
        (("--set", "mode.deep=1"), ("mode",)),
        (("--toolset", "wings"), ("wings",)),
        (("--frobnicate",), ("--frobnicate",)),
        (("--http", "8765"), ("8765", "HOST:PORT")),
        (("--http", "127.0.0.1:99999"), ("99999",)),
        (("--http", "0.0.0.0:0"), ("0.0.0.0",)),
        (("--http", "192.0.2.1:0", "--no-token"), ("--no-token", "192.0.2.1")),
        (("--token-file", "x"), ("--token-file", "--http")),
        (("--set", 'permissions.deny=["Bsh("]'), ("Bsh(",)),
    ],
)
def test_a_bad_flag_value(launch: Launch, options: Sequence[str], words: Sequence[str]) -> None:
    assert_says(failed_start(launch, *options), *words)


def test_a_bad_environment_variable(launch: Launch) -> None:
    stderr = failed_start(replace(launch, variables={"GOAT_MCP_OUTPUT__MAX_CHARS": "lots"}))

    assert_says(stderr, "output.max_chars", "lots")


def test_a_workspace_that_does_not_exist(launch: Launch) -> None:
    missing = launch.folder / "nowhere"

    assert_says(failed_start(launch, "--workspace", str(missing)), str(missing))


def test_a_port_in_use(launch: Launch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        stderr = failed_start(launch, "--http", address)

    assert_says(stderr, address)


def test_a_token_file_that_others_can_read(launch: Launch) -> None:
    token = launch.folder / "token"
    token.write_text("x" * 40)
    token.chmod(0o644)

    assert_says(
        failed_start(launch, "--http", "127.0.0.1:0", "--token-file", str(token)), str(token), "Name another file"
    )


def test_a_bad_upstream_entry_rejects_that_upstream_only(launch: Launch) -> None:
    file = launch.folder / "upstreams.json"
    entries = {
        "nothing": {},
        "both": {"command": "x", "url": "http://127.0.0.1:1/mcp"},
        "text": "just text",
        "number": {"command": 5},
        "variable": {"command": "x", "env": {"KEY": "${env:GOAT_E2E_NOT_SET}"}},
        "good": ours("plain"),
    }
    file.write_text(json.dumps({"mcpServers": entries}))
    log = launch.folder / "stderr"
    started = replace(launch, options=("--upstreams", str(file)))

    with Wire(started.command, started.environment, started.workspace, log) as wire:
        wire.handshake()
        names = wire.listed_with("mcp__good__echo")
        answer = wire.text("mcp__good__echo", {"text": "well"})

    assert {name.split("__")[1] for name in names if name.startswith("mcp__")} == {"good"}
    assert answer == "well"
    said = log.read_text()
    assert [name for name in entries if name != "good" and name not in said] == [], said


def test_an_entry_that_would_start_goat_again_is_skipped(launch: Launch) -> None:
    file = launch.folder / "desktop.json"
    log = launch.folder / "stderr"
    started = replace(launch, options=("--upstreams", str(file)))
    command, *arguments = started.command
    entries = {"goat": {"command": command, "args": arguments}, "good": ours("plain")}
    file.write_text(json.dumps({"mcpServers": entries}))

    with Wire(started.command, started.environment, started.workspace, log) as wire:
        wire.handshake()
        names = wire.listed_with("mcp__good__echo")

    assert {name.split("__")[1] for name in names if name.startswith("mcp__")} == {"good"}
    assert "goat" in log.read_text()
