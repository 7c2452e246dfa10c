"""Started as a desktop does it: in the root directory, with an empty environment."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import fill

pytestmark = [pytest.mark.e2e, pytest.mark.real_processes, pytest.mark.posix_only("a home and a user of Unix")]

SCRIPT = 'echo "$HOME"; echo "$USER"; echo "$LOGNAME"; command -v git'


def message(method: str, number: int | None = None, **params: Any) -> str:
    head = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(head if number is None else {**head, "id": number}) + "\n"


def test_tools_are_listed_and_a_command_has_its_users_home_and_programs(tmp_path: Path) -> None:
    workspace = fill(tmp_path / "workspace")
    goat = [sys.executable, "-m", "goat_mcp", "serve", "--workspace", str(workspace)]
    # All that keeps it away from the settings of whoever runs the tests, and from their resident process.
    named = {"GOAT_MCP_STATE_DIR": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    named["GOAT_MCP_RESIDENT"] = "0"
    server = subprocess.Popen(goat, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", env=named, text=True)
    assert server.stdin is not None and server.stdout is not None
    requests, answers = server.stdin, server.stdout

    def answer(number: int) -> dict[str, Any]:
        requests.flush()
        for line in answers:
            said = json.loads(line)
            if said.get("id") == number and "method" not in said:
                return said["result"]
        raise AssertionError("it has left")

    try:
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        requests.write(message("initialize", 1, **client))
        answer(1)
        requests.write(message("notifications/initialized") + message("tools/list", 2))
        names = [tool["name"] for tool in answer(2)["tools"]]
        requests.write(message("tools/call", 3, name="Bash", arguments={"command": SCRIPT}))
        text = answer(3)["content"][0]["text"]
    finally:
        requests.close()
        server.wait(60)

    user = pwd.getpwuid(os.getuid())
    assert "Bash" in names
    assert text.splitlines()[:3] == [user.pw_dir, user.pw_name, user.pw_name]
    assert Path(text.splitlines()[3]).name == "git"
