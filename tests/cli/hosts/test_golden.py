"""What each host's file becomes: its own notation in `golden/HOST.*`, ours and what is told in `golden/HOST.out.json`.

CFG-2. The files follow the vendors' pages on MCP. After a wanted change: GOLDEN_WRITE=1, and read the diff.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.cli.hosts.host_file import read_host_file
from goat_mcp.cli.hosts.sources import Source
from goat_mcp.cli.hosts.table import HOSTS
from goat_mcp.cli.hosts.translate import translated
from goat_mcp.upstreams.config.upstream_files import load_upstream_files

GOLDEN = Path(__file__).with_name("golden")
GIVEN = {path.stem: path for path in sorted(GOLDEN.glob("*.*")) if not path.name.endswith(".out.json")}
HOME = Path("/home/me")
ENVIRON = {"HOME": "/home/me", "SEARCH_KEY": "k", "DSN_FILE": "/etc/dsn"}


def became(host: str) -> dict[str, Any]:
    source = Source(read_host_file(HOSTS[host], GIVEN[host]))
    servers: dict[str, Any] = {}
    for name, entry in source.file.entries.items():
        found = translated(source.host, name, entry, home=HOME, environ=ENVIRON, inputs=source.inputs)
        notes = {"notes": list(found.notes)} if found.notes else {}
        servers[name] = {"entry": found.entry, **notes} if found.entry is not None else {"stays": found.why_not}
    return servers


@pytest.mark.parametrize("host", GIVEN)
def test_each_hosts_notation_becomes_ours(host: str) -> None:
    file = GOLDEN / f"{host}.out.json"
    found = became(host)

    if os.environ.get("GOLDEN_WRITE"):
        file.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")

    assert found == json.loads(file.read_text())


# CFG-1
@pytest.mark.parametrize("host", GIVEN)
def test_what_is_taken_over_is_read_without_a_word(host: str, tmp_path: Path) -> None:
    entries = {name: server["entry"] for name, server in became(host).items() if "entry" in server}
    file = tmp_path / "upstreams.json"
    file.write_text(json.dumps({"mcpServers": entries}))

    found = load_upstream_files([file])

    assert entries
    # What a reference leads to is this environment's; an entry that is switched off says so.
    left = [p for p in found.problems if p.reason_code != "disabled" and "${" not in p.message]
    assert left == []
    assert not [
        name for name in entries if name not in {c.name for c in found.configs} | {p.name for p in found.problems}
    ]


def test_every_host_that_the_contract_names_has_a_golden_file() -> None:
    assert {"claude-desktop", "claude-code", "cursor", "vscode", "codex", "gemini", "windsurf", "zed"} <= set(GIVEN)
