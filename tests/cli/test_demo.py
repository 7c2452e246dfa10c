"""`goat-mcp demo`: it shows goat-mcp as it comes, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from goat_mcp.cli import demo as demo_module
from goat_mcp.cli.demo import demo
from tests.cli.terminal_session import TerminalSession
from tests.quick_start import goat_command

pytestmark = pytest.mark.e2e


def test_settings_of_the_machine_change_nothing_and_no_log_line_is_shown(tmp_path: Path) -> None:
    settings = tmp_path / ".config" / "goat-mcp"
    settings.mkdir(parents=True)
    (settings / "goat-mcp.yaml").write_text("no_such_setting: 1\n")
    variables = {"HOME": str(tmp_path), "GOAT_MCP_MODE": "no such mode"}

    with TerminalSession(goat_command("demo"), cwd=tmp_path, variables=variables) as session:
        code = session.end()

    assert code == 0, session.shown
    assert "FAILED" not in session.shown and "warning" not in session.shown and '{"' not in session.shown
    assert session.shown.count("  ok  ") == 7 and "refused, as it should be" in session.shown
    assert "8 of 8 steps" in session.shown and "goat-mcp install HOST --workspace DIR" in session.shown
    assert max(map(len, session.shown.splitlines())) <= 80


def test_a_server_that_does_not_start_is_reported_with_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_module, "_without_settings", lambda: {**os.environ, "GOAT_MCP_MODE": "no such mode"})

    done = CliRunner().invoke(demo)

    assert done.exit_code == 1
    assert "the server of the demo ended:" in done.output and "got 'no such mode'" in done.output
    assert "Traceback" not in done.output
