"""Each way in which an upstream can be wrong has a reason code of its own in status, and the others work."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import TextResourceContents

from goat_mcp.gateway.status.gateway_status import upstream_entry
from goat_mcp.upstreams.retry_policy import SupervisorLimits
from goat_mcp.upstreams.status import ReasonCode
from tests.e2e.conftest import fill
from tests.e2e.goat import Launch, connected
from tests.quick_start import goat_command
from tests.upstreams.fleet import fleet, server

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]
WAIT_S = 60
SHOWN_ELSEWHERE = {
    ReasonCode.GATEWAY_CYCLE,  # test_gateway_chains
    ReasonCode.CONNECTION_BROKE,  # a bug of ours: none is known that a test could provoke
    ReasonCode.LAUNCH_CHANGED,  # tests/upstreams/pinning/test_pinned_upstreams.py
    ReasonCode.FOLDER_NOT_FOUND,  # tests/upstreams/test_stdio_upstreams.py
    ReasonCode.QUARANTINED,  # of a changed definition: tests/upstreams/test_pin*.py
    ReasonCode.TOOL_DISABLED,  # of a tool that its entry turns off: tests/upstreams
    ReasonCode.STARTING,  # tests/upstreams/test_downloads.py
    ReasonCode.NO_WORKSPACE,  # of a server in `/`: test_upstreams_that_ask
    ReasonCode.START_TIMEOUT,  # below, with a shorter time
    ReasonCode.SANDBOX_UNAVAILABLE,  # below, where nobody can make one
}


class _Strangers(BaseHTTPRequestHandler):
    """What else may be under a URL."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        page = b"<html>hello</html>"
        self.send_response(401 if self.path == "/wants-a-token" else 200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def strangers() -> Generator[str]:
    served = ThreadingHTTPServer(("127.0.0.1", 0), _Strangers)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{served.server_address[1]}"
    served.shutdown()
    served.server_close()


def wrong_entries(strangers: str, file: Path) -> dict[str, tuple[str, Any]]:
    """By name, the reason that must be shown and an entry that gives cause for it."""
    command = {"command": sys.executable}
    return {
        "no-object": ("config_error", 7),
        "no-program": ("config_error", {"command": 3}),
        "neither": ("config_error", {}),
        "both": ("config_error", {**command, "url": "http://h/"}),
        "no-url": ("config_error", {"url": "ftp://host/"}),
        "no-such-variable": ("config_error", {**command, "env": {"TOKEN": "${env:NO_SUCH_VARIABLE_HERE}"}}),
        "secret-in-args": ("config_error", {**command, "args": ["${file:/etc/hostname}"]}),
        "twin.a": ("", server("raw.py")),
        "twin a": ("config_error", server("raw.py")),
        "off": ("disabled", {**command, "disabled": True}),
        "itself": ("self_launch", {**command, "args": ["-m", "goat_mcp", "serve", "--upstreams", str(file)]}),
        "no-command": ("command_not_found", {"command": "no-such-command-here"}),
        "ends": ("start_failed", {**command, "args": ["-c", "raise SystemExit('cannot work')"]}),
        "nobody": ("unreachable", {"url": "http://127.0.0.1:9/mcp"}),
        "token": ("auth_required", {"url": f"{strangers}/wants-a-token", "headers": {"authorization": "Bearer wrong"}}),
        "a-page": ("handshake_failed", {"url": f"{strangers}/page"}),
        "crashes": ("lost", server("troubled.py", "crash", start="eager")),
        "cannot-list": ("list_failed", server("troubled.py", "no-list")),
        "endless": ("list_truncated", server("raw.py", "endless")),
    }


REJECTED = {
    "broken": ({"": "broken_entry", "schemaless": "broken_schema", "x": "broken_schema"}, ("raw.py", "broken-tools")),
    "large": ({"large": "schema_too_large"}, ("troubled.py", "large")),
    "deep": ({"deep": "schema_too_deep"}, ("troubled.py", "deep")),
    "tasks": ({"task": "tasks_only"}, ("troubled.py", "tasks")),
    "twice": ({"twice": "listed_twice"}, ("troubled.py", "twice")),
    "hidden": ({"hidden": "hidden_data"}, ("troubled.py", "hidden")),
}


async def status_of(client: Client) -> dict[str, Any]:
    (content,) = (await client.read_resource("goat://status")).contents
    assert isinstance(content, TextResourceContents)
    return json.loads(content.text)


# ERA-7
async def test_whatever_is_wrong_with_upstreams_has_its_reason_in_status_and_the_others_work(
    tmp_path: Path, strangers: str
) -> None:
    # OBS-1, COL-1
    file = tmp_path / "upstreams.json"
    wrong = wrong_entries(strangers, file)
    entries = {
        "good": server("raw.py", tpyo=1),
        **{name: entry for name, (_, entry) in wrong.items()},
        **{name: server(*command) for name, (_, command) in REJECTED.items()},
        "flat-one": server("raw.py", naming="flat"),
        "flat-two": server("raw.py", naming="flat"),
    }
    file.write_text(json.dumps({"mcpServers": entries}))
    launch = Launch(tmp_path, fill(tmp_path / "ws"), ("--upstreams", str(file)))
    reasons = {name: reason for name, (reason, _) in wrong.items()}

    async with connected(launch, "2026-07-28") as client:
        await client.list_tools()
        seen: dict[str, str] = {}
        with anyio.fail_after(WAIT_S):
            while True:
                shown = await status_of(client)
                by_name = {one["name"]: one for one in shown["upstreams"]}
                # What crashes again and again is at times alive, and counts once it was seen.
                seen |= {name: by_name[name]["reason_code"] for name in reasons if seen.get(name) != reasons[name]}
                if seen == reasons and collisions(by_name) and all(by_name[n]["rejected"] for n in REJECTED):
                    break
                await anyio.sleep(0.1)
        answers = [await client.call_tool(name, {}) for name in ("mcp__good__ping", "ping", "mcp__large__fine")]
        refused = await client.call_tool("mcp__no-program__x", {})
        listed = await _status_command(launch)

    assert {name: {w["name"]: w["reason_code"] for w in by_name[name]["rejected"]} for name in REJECTED} == {
        name: rejected for name, (rejected, _) in REJECTED.items()
    }
    collided = {problem["reason_code"] for problem in shown["problems"] if problem["name"] == "ping"}
    assert collided == {"name_collision"}
    assert [(one["name"], one["detail"]) for one in shown["ignored_keys"]] == [("good", "tpyo: unknown key, ignored")]
    assert not any(answer.is_error for answer in answers)
    assert refused.is_error and "upstream no-program is not in use (config_error)" in str(refused.content)
    (running,) = listed["running"]
    assert [one["name"] for one in running["upstreams"]] == [one["name"] for one in shown["upstreams"]]
    provoked = {*reasons.values(), "name_collision", "unknown_key"} - {""}
    provoked |= {code for rejected, _ in REJECTED.values() for code in rejected.values()}
    assert provoked | SHOWN_ELSEWHERE == set(ReasonCode)


def collisions(by_name: dict[str, Any]) -> list[str]:
    """Whichever listed first keeps the names."""
    return [*by_name["flat-one"]["collisions"], *by_name["flat-two"]["collisions"]]


async def _status_command(launch: Launch) -> dict[str, Any]:
    """What it prints once the server has told of itself, which it does some time after its first list."""
    command = goat_command("status", "--json")
    with anyio.fail_after(WAIT_S):
        while True:
            done = await anyio.run_process(command, env=launch.environment)
            if (listed := json.loads(done.stdout))["running"]:
                return listed


# FLW-3
async def test_one_that_never_answers_and_one_without_its_sandbox_have_reasons_too(tmp_path: Path) -> None:
    entries = {
        "silent": {"command": sys.executable, "args": ["-c", "import time; time.sleep(600)"]},
        "confined": server("raw.py", sandbox="required"),
        "good": server("raw.py"),
    }
    async with fleet(tmp_path, entries, limits=SupervisorLimits(start_timeout_s=1.5)) as running:
        await running.until(lambda: running.status("silent").reason_code != "")
        shown = [upstream_entry(status, None, 0.0) for status in running.upstreams.status()]
        answer = await running.call("mcp__good__ping")

    assert [(one["name"], one["reason_code"]) for one in shown] == [
        ("silent", "start_timeout"),
        ("confined", "sandbox_unavailable"),
        ("good", ""),
    ]
    assert not answer.is_error
