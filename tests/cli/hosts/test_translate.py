"""Entries nobody has thought of: each is taken over in a form that we read, or stays with a reason. CFG-1, CFG-2."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goat_mcp.cli.hosts.table import HOSTS
from goat_mcp.cli.hosts.translate import Translated, translated
from goat_mcp.upstreams.config.upstream_files import load_upstream_files
from tests.docs.test_documents import ROOT
from tests.repetitions import examples

HOME = Path("/home/me")


def one(host: str, entry: Any, name: str = "x", **given: Any) -> Translated:
    return translated(HOSTS[host], name, entry, home=HOME, environ={}, **given)


_KEYS = sorted(
    {key for host in HOSTS.values() for key in host.keys} | {"command", "args", "env", "url", "headers", "cwd", "type"}
)
_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-1, 10**6)
    | st.floats()
    | st.text("ab/$ {}:-\0\ud800", max_size=8)
    | st.sampled_from(["npx", "https://h/mcp", "/abs", "${A_TOKEN}", "${env:X:-y}", "$Z", "sse", "http", "${input:i}"])
)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=2),
    max_leaves=5,
)


@settings(deadline=None, max_examples=examples(300))
@given(st.sampled_from(sorted(HOSTS)), st.dictionaries(st.sampled_from(_KEYS), _VALUES, max_size=6) | _VALUES)
def test_any_entry_is_taken_over_in_a_form_we_read_or_stays_with_a_reason(host: str, entry: Any) -> None:
    found = one(host, entry)

    if found.entry is None:
        assert found.why_not
    else:
        document = json.dumps({"mcpServers": {"x": found.entry}}).encode()
        problems = load_upstream_files([Path("f")], contents={Path("f"): document}).problems
        # What a reference leads to is this machine's.
        assert [p.message for p in problems if p.reason_code == "config_error" and "${" not in p.message] == []


@pytest.mark.parametrize("value", [datetime.date(2026, 1, 1), float("nan"), "\ud800"], ids=["date", "nan", "half"])
def test_what_json_cannot_hold_stays(value: Any) -> None:
    assert one("codex", {"command": "x", "args": [value]}).why_not == "it holds a value that JSON cannot hold"


@pytest.mark.parametrize(
    ("entry", "is_goat"),
    [
        ({"command": "/opt/goat-mcp", "args": ["serve"]}, True),
        ({"command": "uvx", "args": ["goat-mcp@1.0", "serve"]}, True),
        ({"command": "python", "args": ["-m", "goat_mcp"]}, True),
        ({"command": "uv", "args": ["run", "/src/bin/goat-mcp", "serve"]}, True),
        ({"command": "npx", "args": ["-y", "files-server", "/src/goat-mcp"]}, False),
    ],
    ids=["path", "uvx", "module", "uv", "a folder of that name"],
)
def test_only_goat_mcp_is_taken_for_goat_mcp(entry: dict[str, Any], is_goat: bool) -> None:
    assert one("cursor", entry).is_goat is is_goat


def test_an_env_file_is_copied_and_env_beats_it(tmp_path: Path) -> None:
    lines = "# comment\nexport A=1\nB='two words'\nC=\"line\\nend\" # c\nD=x # y\nE=from file\nnonsense\n"
    (tmp_path / ".env").write_text(lines)

    found = one("vscode", {"command": "x", "envFile": "${workspaceFolder}/.env", "env": {"E": "own"}}, project=tmp_path)

    assert found.entry == {
        "command": "x",
        "env": {"A": "1", "B": "two words", "C": "line\nend", "D": "x", "E": "own"},
        "cwd": str(tmp_path),
    }
    assert any("were copied" in told for told in found.notes)


# R-SECRET-1: none in argv
@pytest.mark.parametrize(
    ("host", "entry"),
    [
        ("claude-code", {"command": "x", "args": ["--token", "${GITHUB_TOKEN}"]}),
        ("gemini", {"httpUrl": "https://h/mcp?key=$API_KEY"}),
        ("windsurf", {"command": "x", "args": ["${file:/home/me/secret}"]}),
    ],
)
def test_a_secret_that_would_be_seen_keeps_the_server_with_its_host(host: str, entry: dict[str, Any]) -> None:
    assert "is a secret and would be seen" in one(host, entry).why_not


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"command": "x", "args": ["--api-key", "abcdef0123456789"]}, "args: hold a secret"),
        ({"command": "x", "args": ["-k", "sk-abcdef0123456789ghijklmnopqrstuvwxyz"]}, "args: hold a secret"),
        ({"url": "https://h/mcp?api_key=abcdef0123456789"}, "url: holds a secret"),
        ({"url": "https://h/mcp?token=abcdef0123456789"}, "url: holds a secret"),
    ],
)
def test_secrets_written_out_in_arguments_and_addresses_come_as_they_are_and_are_told_as_documented(
    entry: dict[str, Any], told: str
) -> None:
    """R-SECRET-1: what is in argv already is not made to look moved; no output shows it."""
    found = one("cursor", entry)

    assert found.entry == entry
    (line,) = found.notes
    assert line.startswith(told) and "abcdef" not in line
    assert f"`{line}`" in (ROOT / "docs" / "moving-in.md").read_text()


def test_opencodes_references_become_ours() -> None:
    """CFG-2"""
    entry = {
        "type": "local",
        "command": ["srv"],
        "environment": {"A": "{env:B}", "T": "x {file:~/t}", "R": "{file:./r}", "P": "{plain} {env:}"},
    }

    found = one("opencode", entry, folder=Path("/etc/oc"))

    assert found.entry == {
        "command": "srv",
        "env": {"A": "${env:B:-}", "T": "x ${file:/home/me/t}", "R": "${file:/etc/oc/r}", "P": "{plain} {env:}"},
    }
    assert found.notes == (
        "{env:B}: a variable that is not set reaches the server as an empty one",
        "{file:~/t}: the file has to be yours alone (chmod 600)",
        "{file:./r}: the file has to be yours alone (chmod 600)",
    )


def test_a_variable_of_opencode_that_we_could_not_name_stays() -> None:
    assert one("opencode", {"command": ["srv"], "environment": {"A": "{env:Files(x86)}"}}).why_not == (
        "{env:Files(x86)} is no name of a variable that goat-mcp could look up"
    )


@pytest.mark.parametrize(
    ("name", "entry", "why"),
    [
        ("", {"command": "srv"}, "the name"),
        ("x", {"command": "srv", "args": ["a\0b"]}, "args:"),
        ("x", {"command": "srv", "env": {"A=B": "c"}}, "env:"),
    ],
)
def test_what_could_not_be_started_here_stays(name: str, entry: Any, why: str) -> None:
    """CFG-2"""
    found = one("claude-desktop", entry, name)

    assert (found.entry, found.why_not[: len(why)]) == (None, why)
