"""`goat-mcp status` where nothing runs; what it shows of running ones is in tests/e2e."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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
