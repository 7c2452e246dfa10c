"""`goat-mcp docs`: one line on each tool, or all about one."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from goat_mcp.tools.docs import document
from goat_mcp.tools.grep import Grep
from tests.cli.test_call import run
from tests.quick_start import goat_command

WEATHER = Path(__file__).resolve().parents[2] / "examples" / "weather_stdio.py"
pytestmark = pytest.mark.e2e


def test_without_a_name_each_tool_has_its_line(tmp_path: Path) -> None:
    piped = run("docs", cwd=tmp_path)
    as_json = run("docs", "--json", cwd=tmp_path)

    lines = dict(line.split("\t") for line in piped.stdout.splitlines())
    assert lines["Grep"] == "Search file contents with a regular expression."
    assert [tool["name"] for tool in json.loads(as_json.stdout)["tools"]] == list(lines)


@pytest.mark.parametrize("name", ["Grep", "search"])
def test_a_piped_page_is_markdown(tmp_path: Path, name: str) -> None:
    assert run("docs", name, cwd=tmp_path).stdout == document(Grep.contract).markdown()


def test_a_page_is_data_too(tmp_path: Path) -> None:
    page = json.loads(run("docs", "Grep", "--json", cwd=tmp_path).stdout)

    assert page == document(Grep.contract).data()
    assert page["examples"][0]["input"] == dict(Grep.contract.examples[0].input)


def test_on_a_terminal_a_page_is_laid_out(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        goat_command("docs", "Glob"), stdin=subprocess.DEVNULL, stdout=theirs, env=environment
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 65_536):
                shown += part
        except OSError:
            pass  # the terminal's end, once nobody writes to it any more
    os.close(ours)

    assert process.returncode == 0
    assert b"## Input" not in shown and b"Input" in shown
    assert b"\x1b[" in shown


def test_a_tool_that_is_hidden_can_be_read_about(tmp_path: Path) -> None:
    assert run("docs", "Bash", "--disallowed-tool", "Bash", cwd=tmp_path).stdout.startswith("# Bash\n")


def test_a_name_nobody_knows_gets_near_ones(tmp_path: Path) -> None:
    done = run("docs", "Gerp", cwd=tmp_path)

    assert (done.returncode, done.stdout) == (1, "")
    assert "tool not found: Gerp" in done.stderr and "Did you mean Grep?" in done.stderr


def test_an_upstreams_tool_has_a_page_of_what_it_says(tmp_path: Path) -> None:
    servers = tmp_path / "servers.json"
    servers.write_text(json.dumps({"mcpServers": {"weather": {"command": sys.executable, "args": [str(WEATHER)]}}}))

    page = run("docs", "mcp__weather__current_weather", "--upstreams", str(servers), cwd=tmp_path).stdout

    assert page.startswith("# mcp__weather__current_weather\n")
    assert "| `town` | string | required |" in page
