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

    headers, *rest = piped.stdout.splitlines()
    lines = dict(line.split("\t") for line in rest)
    assert headers == "tool\twhat it does"
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


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("memento__note", "Turn it on with `--toolset goa`, or with `catalog.toolsets: [goa]` in a settings file."),
        (
            "json-query__query",
            "Turn it on with `--toolset base`, or with `catalog.toolsets: [base]` in a settings file.",
        ),
        (
            "TeamCreate",
            "TeamCreate exists only where the environment variable CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS",
        ),
    ],
)
def test_a_tool_that_is_off_has_a_page_that_says_how_to_turn_it_on(tmp_path: Path, name: str, said: str) -> None:
    page = run("docs", name, cwd=tmp_path).stdout

    assert page.startswith(f"# {name}\n")
    assert f"\n\n**Off.** {said}" in page and "\n## Input\n" in page
    assert json.loads(run("docs", name, "--json", cwd=tmp_path).stdout)["off"].startswith(said)


def test_a_tool_that_is_on_has_a_page_that_does_not_speak_of_that(tmp_path: Path) -> None:
    assert "**Off.**" not in run("docs", "memento", "--toolset", "goa", cwd=tmp_path).stdout
    assert json.loads(run("docs", "Bash", "--json", cwd=tmp_path).stdout)["off"] == ""


def test_goas_name_has_a_page_with_goas_fields(tmp_path: Path) -> None:
    page = run("docs", "search", "--toolset", "goa", cwd=tmp_path).stdout

    assert page.startswith("# search\n") and "| `max_results` | integer > 0 | 30 |" in page
    assert "A call of `search` is a call of `Grep`, with goa's fields and defaults." in page


def test_a_manifest_brings_a_long_text_and_examples_with_their_output(tmp_path: Path) -> None:
    place = tmp_path / "tools" / "probe"
    place.mkdir(parents=True)
    (place / "handlers.py").write_text("handlers = {'say': lambda ctx, input: input}\n")
    export = {
        "name": "say",
        "description": "Say it.",
        "sideEffect": "none",
        "docs": "## Why\n\nBecause.\n",
        "examples": [{"description": "A word", "input": {}, "output": {"said": 1}}],
    }
    tool = {"kind": "Tool", "metadata": {"name": "probe"}, "spec": {"entry": "./handlers.py", "exports": [export]}}
    (place / "tool.yaml").write_text(json.dumps({"apiVersion": "goat-mcp/v1", **tool}))

    page = run("docs", "probe__say", "--manifests", str(tmp_path / "tools"), cwd=tmp_path).stdout

    assert "\n\n## What it does\n\n## Why\n\nBecause.\n\n" in page
    assert page.endswith('A word:\n\n```json\n{}\n```\n\n```text\n{"said": 1}\n```\n')


def test_an_entry_brings_a_long_text_and_examples_for_an_upstreams_tool(tmp_path: Path) -> None:
    servers = tmp_path / "servers.json"
    example = {"description": "Oslo", "input": {"town": "Oslo"}, "output": "rain"}
    entry = {
        "command": sys.executable,
        "args": [str(WEATHER)],
        "docs": {"current_weather": {"long": "Ask it in the morning.", "examples": [example]}},
    }
    servers.write_text(json.dumps({"mcpServers": {"weather": entry}}))

    page = run("docs", "mcp__weather__current_weather", "--upstreams", str(servers), cwd=tmp_path).stdout

    assert "\n\n## What it does\n\nAsk it in the morning.\n\n" in page
    assert page.endswith('Oslo:\n\n```json\n{\n  "town": "Oslo"\n}\n```\n\n```text\nrain\n```\n')


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
