"""The image's entry point as a container runs it: not as root, the root file system read-only, secrets as links.

A container runtime is not needed: bubblewrap makes the same surroundings of this machine's files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.deploy.files import DEPLOY, ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.linux_only(reason="containers are Linux")]
TOKEN = "a-token-for-the-container-0123456789abcdef"
RUN_TIMEOUT_S = 120
CLIENT = """
import json, sys, time, urllib.error, urllib.request as r
base, token = sys.argv[1:3]
for _ in range(600):
    try:
        r.urlopen(base + "/mcp", timeout=5)
    except urllib.error.HTTPError:
        break
    except OSError:
        time.sleep(0.1)
def call(name, arguments):
    about = {"protocolVersion": "2026-07-28", "clientInfo": {"name": "t", "version": "1"}, "clientCapabilities": {}}
    meta = {"io.modelcontextprotocol/" + key: value for key, value in about.items()}
    params = {"name": name, "arguments": arguments, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"authorization": "Bearer " + token, "content-type": "application/json", "mcp-method": "tools/call",
        "mcp-name": name, "accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28"}
    answer = r.urlopen(r.Request(base + "/mcp", json.dumps(body).encode(), headers), timeout=60).read().decode()
    return json.loads(answer.split("data: ")[-1])["result"]
print(json.dumps([call(name, arguments) for name, arguments in json.loads(sys.argv[3])]))
"""


class Container:
    """Folders of the host that stand for its volumes, and what is mounted where."""

    def __init__(self, folder: Path, *more: str) -> None:
        self._more = more
        self.program = folder / "bin"
        self.program.mkdir()
        for name, words in (("goat-mcp", "-m goat_mcp"), ("python3", "")):
            file = self.program / name
            file.write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
            file.chmod(0o755)
        # As Kubernetes mounts a secret: a link to a link, which others may read.
        secrets = folder / "secrets"
        (secrets / "..data").mkdir(parents=True)
        (secrets / "..data" / "goat-token").write_text(TOKEN)
        (secrets / "goat-token").symlink_to("..data/goat-token")
        self.secrets = secrets

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        program = shutil.which("bwrap")
        if program is None:
            pytest.skip("no bubblewrap here: run `make bubblewrap`")
        variables = {
            "PATH": f"{self.program}:/usr/bin:/bin",
            "PYTHONPATH": str(ROOT),
            "HOME": "/srv/state",
            "GOAT_MCP_STATE_DIR": "/srv/state",
            "GOAT_MCP_RESIDENT": "0",
            "GOAT_MCP_SANDBOX": "required",
            "GOAT_MCP_UI__ENABLED": "false",
            "GOAT_ADDRESS": "127.0.0.1",
        }
        volumes = ["--tmpfs", "/run", "--tmpfs", "/srv", "--tmpfs", "/dev/shm"]
        volumes += [
            word for path in ("/run/goat-mcp", "/srv/state", "/srv/ws") for word in ("--perms", "0700", "--dir", path)
        ]
        command: Sequence[str] = [
            *(
                "bwrap",
                "--unshare-user",
                "--uid",
                "10001",
                "--gid",
                "10001",
                "--unshare-pid",
                "--unshare-net",
                *self._more,
            ),
            *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *volumes),
            *("--ro-bind", str(self.secrets), "/run/secrets", "--chdir", "/srv/ws", "--clearenv"),
            *(word for name, value in variables.items() for word in ("--setenv", name, value)),
            *("sh", "-c", script),
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, env={"PATH": os.defpath})


ENTRY = DEPLOY / "entrypoint.sh"


def served(calls: str, *options: str) -> str:
    """A script that starts the server, makes these calls and shows what they gave, then the server's own words."""
    client = CLIENT.replace("'", "'\\''")
    return f"""
        {ENTRY} serve --workspace /srv/ws --mode bypassPermissions {" ".join(options)} 2>/srv/said &
        server=$!
        python3 -c '{client}' http://127.0.0.1:8765 {TOKEN} '{calls}' || {{ cat /srv/said >&2; exit 1; }}
        {ENTRY} healthcheck && echo healthy || echo sick
        kill $server; wait $server; echo "ended: $?"
        touch /etc/changed 2>/dev/null && echo "the root is written" || echo "the root is read-only"
        stat -c '%a' /run/goat-mcp/token
    """


@pytest.mark.parametrize("more", [(), ("--disable-userns",)], ids=["namespaces", "no namespaces"])
def test_it_serves_and_commands_are_confined_or_refused(tmp_path: Path, more: tuple[str, ...]) -> None:
    container = Container(tmp_path, *more)
    calls = '[["Bash", {"command": "id -u; echo inside > f && cat f; echo out > /srv/state/outside"}]]'

    done = container.run(served(calls))

    assert done.returncode == 0, done.stderr
    result, *after = done.stdout.splitlines()
    assert after == ["healthy", "ended: 0", "the root is read-only", "600"]
    if "E_SANDBOX" in result:  # no kind of it works here, and the server says so
        assert "inside" not in result
    else:
        assert "inside" in result
        assert "/srv/state/outside" in result
        assert "denied" in result or "Read-only" in result or "No such file" in result


def test_doctor_says_in_the_container_what_confines_commands(tmp_path: Path) -> None:
    container = Container(tmp_path, "--disable-userns")

    done = container.run("goat-mcp doctor; true")

    assert "sandbox" in done.stdout.lower(), done.stderr


def test_a_server_without_its_token_does_not_serve_without_one(tmp_path: Path) -> None:
    container = Container(tmp_path)
    (container.secrets / "..data" / "goat-token").write_text("short")

    done = container.run(f"timeout 60 {ENTRY} serve --workspace /srv/ws")

    assert done.returncode not in (0, 124)
    assert "token" in done.stderr
