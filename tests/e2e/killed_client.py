"""A client that is going to be killed: it starts goat-mcp, goes to a given moment of its life, and waits there.

Usage: killed_client.py JOB, JSON with `command`, `environment`, `workspace` and `moment`. Prints `ready`, and for the
moment `pipe held` the number of the process that holds goat-mcp's stdin open as well. Starts fast: no SDK.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MOMENTS = ("starting", "connected", "calling an upstream", "running a command", "background tasks", "asking the user")
PIPE_HELD = "pipe held"
WAIT_S = 60.0


class Goat:
    """Just enough of a client."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.process = subprocess.Popen(
            job["command"],
            env=job["environment"],
            cwd=job["workspace"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.last_id = 0

    def send(self, method: str, params: dict[str, Any], *, id: int | None = None) -> None:
        assert self.process.stdin is not None
        message = {"jsonrpc": "2.0", "method": method, "params": params, **({} if id is None else {"id": id})}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def start(self, method: str, params: dict[str, Any]) -> int:
        self.last_id += 1
        self.send(method, params, id=self.last_id)
        return self.last_id

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        wanted = self.start(method, params)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == wanted:
                return message["result"]
        raise SystemExit("goat-mcp ended")

    def wait_for_request(self, method: str) -> None:
        """Until the server asks for it."""
        assert self.process.stdout is not None
        if not any(json.loads(line).get("method") == method for line in self.process.stdout):
            raise SystemExit("goat-mcp ended")

    def handshake(self) -> None:
        client = {"name": "e2e-killed", "version": "1.0.0"}
        abilities: dict[str, Any] = {"elicitation": {}}
        self.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": abilities, "clientInfo": client})
        self.send("notifications/initialized", {})
        # What was never seen before is started by the first list.
        self.request("tools/list", {})

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return self.request("tools/call", {"name": tool, "arguments": arguments})


def go_to(moment: str, goat: Goat, workspace: Path) -> str:
    """Bring the session to that moment; what to say beside `ready`."""
    if moment == "starting":
        return ""
    goat.handshake()
    if moment == PIPE_HELD:
        assert goat.process.stdin is not None
        holder = subprocess.Popen(["sleep", "60"], pass_fds=(goat.process.stdin.fileno(),), start_new_session=True)
        return str(holder.pid)
    if moment == "calling an upstream":
        goat.call("mcp__plain__pid", {})
        goat.start("tools/call", {"name": "mcp__plain__nap", "arguments": {"seconds": 600}})
    elif moment == "running a command":
        command = "touch running; sleep 600 & sleep 600"
        goat.start("tools/call", {"name": "Bash", "arguments": {"command": command}})
        wait_for(workspace / "running")
    elif moment == "background tasks":
        goat.call("mcp__plain__pid", {})
        endless = "trap '' TERM; touch running; while :; do sleep 600; done"
        goat.call("Bash", {"command": endless, "run_in_background": True})
        goat.call("Bash", {"command": "setsid sleep 600 & sleep 600", "run_in_background": True})
        wait_for(workspace / "running")
    elif moment == "asking the user":
        options = [{"label": label, "description": ""} for label in ("yes", "no")]
        question = {"question": "Go on?", "header": "Go on", "options": options}
        goat.start("tools/call", {"name": "AskUserQuestion", "arguments": {"questions": [question]}})
        goat.wait_for_request("elicitation/create")
    return ""


def wait_for(path: Path) -> None:
    ends_at_s = time.monotonic() + WAIT_S
    while not path.exists():
        if time.monotonic() > ends_at_s:
            raise SystemExit(f"{path} did not appear")
        time.sleep(0.02)


def main() -> None:
    job: dict[str, Any] = json.loads(sys.argv[1])
    said = go_to(job["moment"], Goat(job), Path(job["workspace"]))
    print("ready", said, flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main()
