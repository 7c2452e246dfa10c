"""`goat-mcp` alone: a short overview for a person, and the server for a host."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from goat_mcp.calls.approvals.record import Kind, Request
from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.core.version import __version__
from goat_mcp.state.directory import StateDirectory
from tests.cli.desktop import CLAUDE_DESKTOP, PROGRAMS
from tests.cli.terminal_runs import COLUMNS, run_on_terminal
from tests.cli.test_import import written
from tests.quick_start import goat_command

pytestmark = pytest.mark.e2e
MAX_LINES = 19


def overview(home: Path) -> dict[str, list[str]]:
    """The lines of each section."""
    code, shown = run_on_terminal(cwd=home)
    lines = shown.splitlines()
    assert code == 0 and lines[0] == f"goat-mcp {__version__}"
    assert len(lines) <= MAX_LINES and max(map(len, lines)) < COLUMNS
    found: dict[str, list[str]] = {}
    for line in lines[1:]:
        label = line[:10].strip() or [*found][-1]
        found.setdefault(label, []).append(line[10:])
    return found


def test_on_a_new_computer_it_says_what_to_do_first(tmp_path: Path) -> None:
    found = overview(tmp_path)

    assert [*found] == ["Hosts", "Servers", "Running", "Waiting", "Next"]
    assert found["Next"] == [
        "goat-mcp demo: see the main job in a throw-away workspace",
        "goat-mcp install HOST: start it from a host",
        "goat-mcp help: all commands",
    ]
    assert [*tmp_path.iterdir()] == []


def test_a_program_that_is_gone_and_a_file_that_cannot_be_read_lead_to_doctor(tmp_path: Path) -> None:
    gone = {"command": "/gone/goat-mcp", "args": ["serve"]}
    written(tmp_path / ".cursor" / "mcp.json", {"mcpServers": {"goat": gone}})
    written(tmp_path / ".config" / "goat-mcp" / "upstreams.json", "{")

    found = overview(tmp_path)

    assert found["Hosts"] == ["Cursor names a goat-mcp that does not exist"]
    assert found["Servers"] == ["upstreams.json cannot be read"]
    assert found["Next"][:2] == [
        "goat-mcp install cursor: start it from a host",
        "goat-mcp doctor: see what is wrong, and how to fix it",
    ]


def test_it_shows_hosts_servers_and_what_waits(tmp_path: Path) -> None:
    ours = {"command": sys.executable, "args": ["-m", "goat_mcp", "serve"]}
    written(tmp_path / CLAUDE_DESKTOP, {"mcpServers": {"goat": ours}})
    written(tmp_path / ".cursor" / "mcp.json", {"mcpServers": {"a": {"command": "x"}}})
    written(tmp_path / ".gemini" / "settings.json", "{")
    entries = {"off": {"command": "x", "disabled": True}, "new": {"command": "y"}, "bad": {"command": "z"}}
    written(tmp_path / ".config" / "goat-mcp" / "upstreams.json", {"mcpServers": entries})
    run = {"reason_code": "start_failed", "detail": "it exited", "failed_at_s": time.time() - 7200}
    rest = {"worked_at_s": 0.0, "stderr_tail": "", "stderr_at_s": 0.0, "pid": 1, "origin": ""}
    written(tmp_path / "state" / "last_runs" / "bad-0.json", {"name": "bad", **run, **rest})
    written(tmp_path / "state" / "review" / "0.json", {})
    ApprovalStore(StateDirectory(tmp_path / "state")).add(Request(Kind.CALL, "s", "Bash: make", "local"))

    found = overview(tmp_path)

    assert found["Hosts"] == [
        "Claude Desktop starts goat-mcp",
        "Cursor is here without it",
        "Gemini CLI has a file that cannot be read",
    ]
    assert found["Servers"] == ["bad: failed 2 h ago: it exited", "off: off", "new: no failure is known"]
    assert found["Running"] == ["no goat-mcp runs now; hosts start it"]
    assert found["Waiting"] == ["1 call: goat-mcp approvals", "1 change of files: goat-mcp review list"]
    assert found["Next"][0].startswith("goat-mcp doctor")


def test_many_of_everything_stay_under_20_lines(tmp_path: Path) -> None:
    """The limit is checked by `overview`."""
    names = [f"a-server-with-quite-a-long-name-{number}" for number in range(40)]
    written(tmp_path / "up.json", {"mcpServers": {name: {"command": "x"} for name in names}})
    written(tmp_path / ".config" / "goat-mcp" / "goat-mcp.yaml", f"upstreams: [{tmp_path / 'up.json'}]\n")
    for folder in (PROGRAMS / "Claude", PROGRAMS / "Code/User", ".config/zed", ".config/opencode", ".config/goose"):
        (tmp_path / folder).mkdir(parents=True)
    for folder in (".cursor", ".codex", ".gemini", ".copilot", ".lmstudio", ".codeium/windsurf", ".junie/mcp"):
        (tmp_path / folder).mkdir(parents=True)

    found = overview(tmp_path)

    assert found["Servers"][-1] == "36 more: goat-mcp status"
    assert "more" in " ".join(found["Hosts"])


@pytest.mark.parametrize("name", ["upstreams.json", "goat-mcp.yaml"])
def test_a_broken_file_of_ours_does_not_hide_the_rest(tmp_path: Path, name: str) -> None:
    written(tmp_path / ".config" / "goat-mcp" / name, "{[")

    shown = ["upstreams.json cannot be read"] if name == "upstreams.json" else ["none yet"]
    assert overview(tmp_path)["Servers"] == shown


def test_a_process_that_runs_is_shown(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "status"
    folder.mkdir(parents=True)
    code = (
        "from goat_mcp.gateway.status.process_files import ProcessFiles; "
        "from goat_mcp.state.directory import StateDirectory; import os, sys; "
        "ProcessFiles(StateDirectory.default()).write({'pid': os.getpid(), 'transport': 'stdio', 'started': 'NOW', "
        "'workspace': ['/src'], 'upstreams': [{'name': 'a', 'state': 'ready', 'reason_code': '', 'tool_count': 1}]}); "
        "print(flush=True); sys.stdin.read()"
    )
    environment = {**os.environ, "GOAT_MCP_STATE_DIR": str(tmp_path / "state")}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()

        found = overview(tmp_path)
        process.stdin.close()

    assert found["Running"] == [f"process {process.pid} over stdio since NOW in /src"]
    assert found["Servers"] == ["a: ready, 1 tool"]


def test_what_is_heavy_is_not_imported(tmp_path: Path) -> None:
    """So that it stays under 300 ms: settings, the SDK and a gateway take longer than that."""
    look = "import sys; print([name for name in ('pydantic', 'mcp', 'rich', 'yaml') if name in sys.modules])"
    code = f"from goat_mcp.cli.overview import show_overview; show_overview(); {look}"

    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "HOME": str(tmp_path), "GOAT_MCP_STATE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines()[-1] == "[]"


def test_without_a_terminal_on_stdout_it_is_the_same_text(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            goat_command(),
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GOAT_MCP_STATE_DIR": str(tmp_path / "state")},
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=60,
        )
    finally:
        os.close(ours)
        os.close(theirs)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == run_on_terminal(cwd=tmp_path)[1]


def test_for_a_host_it_serves(tmp_path: Path) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})

    done = subprocess.run(
        goat_command(),
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GOAT_MCP_STATE_DIR": str(tmp_path / "state")},
        input=f"{request}\n",
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]["name"]
