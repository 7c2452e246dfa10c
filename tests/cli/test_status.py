"""`goat-mcp status` where nothing runs; what it shows of running ones is in tests/e2e."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal_runs import run_on_terminal
from tests.cli.test_call import run
from tests.upstreams.fleet import server, warm

pytestmark = pytest.mark.e2e


def test_where_none_runs_the_configured_upstreams_are_shown_with_what_is_known_of_them(tmp_path: Path) -> None:
    # OBS-1
    entries: dict[str, Any] = {"known": server("raw.py"), "bad": {"command": 3}}
    warm(tmp_path, entries, {"known": [{"name": "ping", "inputSchema": {"type": "object"}}]}, "2025-11-25")
    flags = ("--upstreams", str(tmp_path / "upstreams.json"), "--workspace", str(tmp_path))

    shown = run("status", *flags, cwd=tmp_path)
    document = json.loads(run("status", "--json", *flags, cwd=tmp_path).stdout)

    assert shown.stdout.startswith("No goat-mcp is running.")
    known, bad = document["configured"]["upstreams"]
    assert document["running"] == []
    assert (known["state"], known["tool_count"], known["version"], known["era"]) == (
        "idle",
        1,
        "2025-11-25",
        "handshake",
    )
    assert known["catalog_age_s"] >= 0
    assert (bad["state"], bad["reason_code"], bad["file"]) == (
        "refused",
        "config_error",
        str(tmp_path / "upstreams.json"),
    )


def test_what_a_server_writes_cannot_steer_the_terminal_through_status(tmp_path: Path) -> None:
    file = tmp_path / "upstreams.json"
    file.write_text(json.dumps({"mcpServers": {"a\x1b[2Jb": {"command": 3}}}))

    shown = run("status", "--upstreams", str(file), "--workspace", str(tmp_path), cwd=tmp_path)

    assert "\x1b" not in shown.stdout and "\\x1b[2J" in shown.stdout


@pytest.fixture
def failed(tmp_path: Path) -> tuple[str, ...]:
    """Flags of a process that had an upstream which failed, and is gone."""
    complaint = "import sys; sys.exit('first line\\nno such table: prices')"
    file = tmp_path / "upstreams.json"
    entries = {"shop": {"command": sys.executable, "args": ["-c", complaint]}, "good": server("raw.py")}
    file.write_text(json.dumps({"mcpServers": entries}))
    flags = ("--upstreams", str(file), "--workspace", str(tmp_path))
    assert run("doctor", *flags, cwd=tmp_path).returncode == 4
    return flags


def test_the_last_failure_is_shown_when_nothing_runs(tmp_path: Path, failed: tuple[str, ...]) -> None:
    shown = run("status", *failed, cwd=tmp_path)
    document = json.loads(run("status", "--json", *failed, cwd=tmp_path).stdout)

    # On a busy machine the end of its pipe may be seen long before its exit.
    assert re.search(r"ago \(start_failed\): (the process exited with status 1|the connection closed)\n", shown.stdout)
    assert "shop: stderr: no such table: prices\n" in shown.stdout
    shop, good = document["configured"]["upstreams"]
    assert (shop["last_run"]["reason_code"], good["last_run"]) == ("start_failed", None)


def test_one_server_is_shown_whole(tmp_path: Path, failed: tuple[str, ...]) -> None:
    _, text = run_on_terminal("status", "shop", *failed, cwd=tmp_path)
    shown = text.splitlines()
    document = json.loads(run("status", "shop", "--json", *failed, cwd=tmp_path).stdout)

    assert shown[1] == "shop"
    assert "    first line" in shown and "    no such table: prices" in shown
    assert [each["name"] for each in document["configured"]["upstreams"]] == ["shop"]


def test_logs_of_a_server_show_its_last_failure_and_its_stderr(tmp_path: Path, failed: tuple[str, ...]) -> None:
    shown = run("logs", "shop", cwd=tmp_path).stdout.splitlines()
    lines = [json.loads(line) for line in run("logs", "shop", "--json", cwd=tmp_path).stdout.splitlines()]

    assert "last failure" in shown[0] and "reason=start_failed" in shown[0]
    assert [line.partition("] ")[2] for line in shown[1:]] == ["shop: first line", "shop: no such table: prices"]
    assert [line.get("stderr") for line in lines] == [None, "first line", "no such table: prices"]


@pytest.mark.parametrize("command", ["status", "logs", "doctor"])
def test_a_name_that_no_server_has_is_an_error_with_the_nearest(
    tmp_path: Path, failed: tuple[str, ...], command: str
) -> None:
    flags = () if command == "logs" else failed

    wrong = run(command, "shp", *flags, cwd=tmp_path)
    as_json = run(command, "shp", "--json", *flags, cwd=tmp_path)

    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert wrong.stderr.startswith("goat-mcp: no server is called 'shp'; did you mean shop?\n")
    assert (as_json.returncode, json.loads(as_json.stderr)["error"]["code"]) == (1, "E_NOT_FOUND")
