"""One Ctrl-C on a real terminal: a server ends within two seconds, a question is answered with no."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
import pytest

from tests.cli.terminal_session import CTRL_C, TerminalSession
from tests.free_port import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.real_processes]

ENDS_WITHIN_S = 2.0
STUBBORN = "import signal, time; signal.signal(15, signal.SIG_IGN); signal.signal(2, signal.SIG_IGN); time.sleep(100)"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path


def on_terminal(folder: Path, *words: str, variables: Mapping[str, str] | None = None) -> TerminalSession:
    command = [sys.executable, "-m", "goat_mcp", *words]
    home = {"HOME": str(folder), "GOAT_MCP_STATE_DIR": str(folder / "state"), **(variables or {})}
    return TerminalSession(command, cwd=folder / "ws", variables=home)


def stubborn_upstreams(folder: Path) -> Sequence[str]:
    """Options for servers that never answer and do not end by themselves, nor by TERM."""
    file = folder / "upstreams.json"
    entry = {"command": sys.executable, "args": ["-c", STUBBORN], "start": "eager"}
    file.write_text(json.dumps({"mcpServers": {"stubborn": entry, "other": entry}}))
    return ("--upstreams", str(file))


def call_of(command: str) -> dict[str, object]:
    arguments = {"name": "Bash", "arguments": {"command": command}}
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": arguments}


def ends_in_time(session: TerminalSession) -> int:
    session.type(CTRL_C)
    assert session.seconds_to_end() < ENDS_WITHIN_S
    assert "Traceback" not in session.shown
    return session.process.returncode


def test_serve_says_what_it_waits_for_and_one_ctrl_c_ends_it(folder: Path) -> None:
    with on_terminal(folder, "serve") as session:
        session.wait_for("Ctrl-C ends it.")

        assert "waits here for an MCP client" in session.shown
        assert "goat-mcp install HOST" in session.shown
        assert max(map(len, session.shown.splitlines())) <= 100
        assert ends_in_time(session) == 0


def test_a_line_of_a_client_on_the_terminal_is_answered(folder: Path) -> None:
    with on_terminal(folder, "serve") as session:
        session.wait_for("Ctrl-C ends it.")
        session.type(json.dumps(INITIALIZE).encode() + b"\n")
        session.wait_for('"serverInfo"')

        assert ends_in_time(session) == 0


def test_the_end_of_input_ends_serve_as_well(folder: Path) -> None:
    with on_terminal(folder, "serve") as session:
        session.wait_for("Ctrl-C ends it.")
        session.type(b"\x04")

        assert session.end() == 0


def test_one_ctrl_c_ends_serve_during_a_call_and_with_servers_that_do_not_start(folder: Path) -> None:
    started = folder / "ws" / "started"
    words = ("serve", "--workspace", str(folder / "ws"), "--allowed-tool", "Bash", *stubborn_upstreams(folder))
    with on_terminal(folder, *words) as session:
        session.wait_for("Ctrl-C ends it.")
        session.type(json.dumps(INITIALIZE).encode() + b"\n")
        session.wait_for('"serverInfo"')
        session.type(json.dumps(call_of(f"trap '' TERM INT; touch {started}; sleep 60; sleep 60")).encode() + b"\n")
        wait_for_file(session, started)

        assert ends_in_time(session) == 0


def test_one_ctrl_c_ends_http_during_a_call_and_with_servers_that_do_not_start(folder: Path) -> None:
    started, port = folder / "ws" / "started", free_port()
    words = ("serve", "--http", f"127.0.0.1:{port}", "--no-token", "--workspace", str(folder / "ws"))
    with on_terminal(folder, *words, "--allowed-tool", "Bash", *stubborn_upstreams(folder)) as session:
        session.wait_for("listening on")
        with httpx.Client(headers={"Accept": "application/json, text/event-stream"}, timeout=30) as client:
            url = f"http://127.0.0.1:{port}/mcp"
            answer = client.post(url, json=INITIALIZE)
            client.headers["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]
            command = f"trap '' TERM INT; touch {started}; sleep 60; sleep 60"
            with client.stream("POST", url, json=call_of(command)):
                wait_for_file(session, started)

                assert ends_in_time(session) == 0


def test_one_interrupt_ends_a_server_whose_client_is_a_program(folder: Path) -> None:
    words = ["serve", "--workspace", str(folder / "ws"), *stubborn_upstreams(folder)]
    server = subprocess.Popen(
        [sys.executable, "-m", "goat_mcp", *words],
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        server.stdin.flush()
        assert server.stdout.readline()

        server.send_signal(signal.SIGINT)

        assert server.wait(ENDS_WITHIN_S) == 0


def test_ctrl_c_at_the_question_of_a_call_denies_it(folder: Path) -> None:
    with on_terminal(
        folder, "call", "Bash", f"command=touch {folder}/ws/made", "--workspace", str(folder / "ws")
    ) as at:
        at.wait_for("> ")

        assert ends_in_time(at) == 130
    assert not (folder / "ws" / "made").exists()


def test_an_answer_at_the_question_of_a_call_counts(folder: Path) -> None:
    with on_terminal(
        folder, "call", "Bash", f"command=touch {folder}/ws/made", "--workspace", str(folder / "ws")
    ) as at:
        at.wait_for("> ")
        at.type(b"1\n")

        assert at.end() == 0
    assert (folder / "ws" / "made").exists()


def test_ctrl_c_during_a_call_ends_it(folder: Path) -> None:
    started = folder / "ws" / "started"
    words = ("call", "Bash", f"command=touch {started}; sleep 60", "--workspace", str(folder / "ws"))
    with on_terminal(folder, *words, "--allowed-tool", "Bash") as session:
        wait_for_file(session, started)

        assert ends_in_time(session) == 130


def test_ctrl_c_at_trust_trusts_nothing(folder: Path) -> None:
    (folder / "ws" / "goat-mcp.yaml").write_text("log_level: error\n")
    with on_terminal(folder, "trust") as session:
        session.wait_for_question("Type yes:")

        assert ends_in_time(session) == 130
    with on_terminal(folder, "trust", "--list") as session:
        assert session.end() == 0
        assert "Nothing is trusted." in session.shown


@pytest.mark.parametrize(
    ("words", "question"),
    [(("install", "cursor"), "Workspace:"), (("secret", "set", "TOKEN"), "not shown")],
)
def test_ctrl_c_at_other_questions_changes_nothing(folder: Path, words: tuple[str, ...], question: str) -> None:
    with on_terminal(folder, *words) as session:
        session.wait_for_question(question)

        assert ends_in_time(session) == 130
    assert not (folder / ".cursor" / "mcp.json").exists()


def wait_for_file(session: TerminalSession, file: Path) -> None:
    session.wait_until(file.exists, f"{file} was not made")
