"""A running server and the secrets that its user stores meanwhile: what is missing is named, what comes is used."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e.conftest import UNASKED, upstream_file
from tests.e2e.goat import Launch
from tests.e2e.wire import Wire, text_of
from tests.quick_start import goat_command

pytestmark = pytest.mark.e2e
CURIOUS = Path(__file__).parents[1] / "upstreams" / "servers" / "curious.py"
FIRST, SECOND = "first-canary-9Qx1", "second-canary-7Zt2"
PATIENCE_S = 60.0
ASKED = {"kind": "environment", "what": ""}


def secret(launch: Launch, value: str, *words: str) -> None:
    subprocess.run(
        goat_command("secret", *words), env=launch.environment, input=value, text=True, check=True, capture_output=True
    )


def token_seen(wire: Wire, unlike: str = "") -> str:
    """The variable TOKEN of the upstream, as soon as it answers with another one."""
    ends_at_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends_at_s:
        answer = wire.request("tools/call", {"name": "mcp__curious__look", "arguments": ASKED})
        result = answer.get("result", {"isError": True})  # while it starts again, its tools are not there
        if not result.get("isError") and (token := json.loads(text_of(result))["TOKEN"]) != unlike:
            return token
        time.sleep(0.05)
    raise AssertionError("it never answered with another one")


# CFG-3, R-SECRET-1
def test_a_running_server_uses_a_stored_secret_and_a_new_value_and_shows_neither(launch: Launch) -> None:
    entry = {"command": sys.executable, "args": [str(CURIOUS)], "env": {"TOKEN": "${secret:CURIOUS_TOKEN}"}}
    file = upstream_file(launch.folder / "upstreams.json", curious=entry)
    variables = {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
    launch = replace(launch, options=(*UNASKED, "--upstreams", str(file)), variables=variables)
    log = launch.folder / "stderr"
    with Wire(launch.command, launch.environment, launch.workspace, log) as wire:
        wire.handshake()

        missing = wire.call("mcp__curious__look", ASKED)
        secret(launch, FIRST, "set", "CURIOUS_TOKEN", "--stdin")
        first = token_seen(wire)
        secret(launch, SECOND, "set", "CURIOUS_TOKEN", "--stdin")
        second = token_seen(wire, unlike=FIRST)

    assert "goat-mcp secret set CURIOUS_TOKEN" in text_of(missing)
    assert (first, second) == (FIRST, SECOND)
    state = launch.folder / "state"
    for path in (log, *(one for one in state.rglob("*") if one.is_file() and one.name != "secrets.json")):
        data = path.read_bytes()
        assert FIRST.encode() not in data and SECOND.encode() not in data, path


def test_no_tool_reads_the_file_of_secrets(launch: Launch) -> None:
    variables = {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
    # Even if the state directory lies in the workspace.
    state = launch.workspace / "state"
    launch = replace(launch, options=UNASKED, variables={**variables, "GOAT_MCP_STATE_DIR": str(state)})
    secret(launch, FIRST, "set", "T", "--stdin")
    with Wire(launch.command, launch.environment, launch.workspace) as wire:
        wire.handshake()
        read = wire.call("Read", {"file_path": str(state / "secrets" / "secrets.json")})
        found = wire.call("Grep", {"pattern": "canary", "path": str(launch.workspace), "output_mode": "content"})

    assert read["isError"] and FIRST not in text_of(read)
    assert FIRST not in text_of(found)
