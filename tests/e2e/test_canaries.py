"""Secrets in every place a user may put one, everything made to fail, and a look for them in every output.

R-SECRET-1, R-SECRET-2. What an upstream's tool returns as its result is not looked at: that is content, and relayed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import fill, ours, upstream_file
from tests.e2e.goat import Launch
from tests.e2e.wire import Wire

pytestmark = [pytest.mark.real_processes, pytest.mark.e2e]

CANARIES = {
    "variable": "canary-1-variable-aa01",
    "file": "canary-2-file-bb02",
    "literal": "canary-3-literal-cc03",
    "header": "canary-4-header-dd04",
    "model key": "canary-5-model-key-ee05",
    "search key": "canary-6-search-key-ff06",
    "command": "sk-ant-canary-7-command-gg07",
    "keyring": "canary-8-keyring-hh08",
    "own environment": "canary-9-environment-ii09",
}
KEYRING = """
from keyring.backend import KeyringBackend

class Backend(KeyringBackend):
    priority = 9
    def get_password(self, service, username): return {secret!r}
    def set_password(self, service, username, password): ...
    def delete_password(self, service, username): ...
"""


class _Tattler(BaseHTTPRequestHandler):
    """Answers everything with a failure that holds what it was sent."""

    def _fail(self) -> None:
        body = json.dumps({"error": {"message": f"refused: {dict(self.headers)}"}}).encode()
        self.send_response(400)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = _fail

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture(scope="module")
def tattling_url() -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Tattler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory, tattling_url: str) -> Launch:
    folder = tmp_path_factory.mktemp("canaries")
    secret_file = folder / "secret"
    secret_file.write_text(CANARIES["file"] + "\n")
    secret_file.chmod(0o600)
    (folder / "backend_of_test.py").write_text(KEYRING.format(secret=CANARIES["keyring"]))
    env = {
        "FROM_VARIABLE": "${env:INNOCENT_NAME}",
        "FROM_FILE": f"Bearer ${{file:{secret_file}}}",
        "FROM_KEYRING": "${keyring:service/user}",
        "WRITTEN_OUT": CANARIES["literal"],
    }
    upstreams = upstream_file(
        folder / "upstreams.json",
        tattler={**ours("tattler"), "env": env},
        web={"url": f"{tattling_url}/mcp", "headers": {"Authorization": f"Bearer {CANARIES['header']}"}},
        wrong={"command": "x", "args": [f"${{file:{secret_file}}}"]},
        missing={"command": str(folder / "none"), "env": env},
    )
    settings = {
        "log_level": "debug",
        "agent.base_url": tattling_url,
        "agent.key": "${MODEL_KEY}",
        "agent.model": "m",
        "web.search.provider": "brave",
        "web.search.base_url": tattling_url,
        "web.search.key": CANARIES["search key"],
    }
    variables = {
        "INNOCENT_NAME": CANARIES["variable"],
        "MODEL_KEY": CANARIES["model key"],
        "MY_OWN_TOKEN": CANARIES["own environment"],
        "PYTHON_KEYRING_BACKEND": "backend_of_test.Backend",
        "PYTHONPATH": str(folder),
    }
    options = ["--upstreams", str(upstreams)]
    settings_file = folder / "config" / "goat-mcp" / "goat-mcp.yaml"
    settings_file.parent.mkdir(parents=True)
    settings_file.write_text(json.dumps(_tree(settings)))
    settings_file.chmod(0o600)
    return Launch(folder, fill(folder / "workspace"), tuple(options), variables)


def _tree(settings: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in settings.items():
        *levels, last = key.split(".")
        below = tree
        for level in levels:
            below = below.setdefault(level, {})
        below[last] = value
    return tree


@pytest.fixture(scope="module")
def outputs(launch: Launch) -> dict[str, bytes]:
    """Every output of a session in which all fails, by what it is."""
    with Wire(launch.command, launch.environment, launch.workspace, launch.folder / "stderr") as wire:
        wire.handshake()
        wire.listed_with("mcp__tattler__fails")
        arguments = _command_lines(wire.process.pid)
        for tool, given in (
            ("mcp__tattler__fails", {}),
            ("mcp__tattler__crashes", {}),
            ("mcp__tattler__fails", {}),
            ("mcp__web__any", {}),
            ("mcp__missing__any", {}),
            ("WebSearch", {"query": "cats"}),
            ("Agent", {"description": "d", "prompt": "p", "subagent_type": "general-purpose"}),
            ("Bash", {"command": f"curl --nope -H 'Authorization: Bearer {CANARIES['command']}' x >/dev/null 2>&1"}),
            ("Bash", {"command": 5, "Bearer": CANARIES["command"]}),
            ("Config", {"setting": "agent.key"}),
            ("Config", {"setting": "web.search.key"}),
            ("Read", {"file_path": f"/nowhere/token={CANARIES['command']}"}),
            (f"Nope token={CANARIES['command']}", {}),
        ):
            wire.answer(wire.start("tools/call", {"name": tool, "arguments": given}))
        for resource in wire.request("resources/list")["result"]["resources"]:
            wire.answer(wire.start("resources/read", {"uri": resource["uri"]}))
        arguments += _command_lines(wire.process.pid)
        frames = b"".join(wire.lines)
    state = {
        f"state/{file.relative_to(launch.folder / 'state')}": file.read_bytes()
        for file in (launch.folder / "state").rglob("*")
        if file.is_file()
    }
    assert any(name.endswith("audit.jsonl") for name in state)
    return {"frames": frames, "stderr": (launch.folder / "stderr").read_bytes(), "argv": arguments, **state}


def _command_lines(pid: int) -> bytes:
    """The arguments of a process and of all its descendants."""
    found = b""
    with suppress(OSError):  # one that has ended meanwhile
        found += Path(f"/proc/{pid}/cmdline").read_bytes()
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            found += _command_lines(int(child))
    return found


# CFG-3
@pytest.mark.linux_only("other processes' arguments are read from /proc")
@pytest.mark.parametrize("place", list(CANARIES))
def test_R_SECRET_2_no_output_holds_a_secret(outputs: dict[str, bytes], place: str) -> None:
    canary = CANARIES[place].encode()

    leaks = [
        (name, output[max(0, at - 200) :][:300]) for name, output in outputs.items() if (at := output.find(canary)) >= 0
    ]

    assert leaks == []


def test_AU_03_the_failures_themselves_are_told(outputs: dict[str, bytes]) -> None:
    """The scan would find nothing either if nothing had been told."""
    frames = outputs["frames"].decode()

    for told in ("failed with {", "refused: {", "[redacted]", "E_MODEL", "set"):
        assert told in frames
    assert b"is a secret and would be seen there" in outputs["stderr"]
    assert b"tattler.py" in outputs["argv"]
