"""Hosts that keep more than servers in their file: megabytes of it, pictures among them."""

from __future__ import annotations

import json
import time
from pathlib import Path

from goat_mcp.files.changes.redacted_diff import redacted_diff
from goat_mcp.state.file_edit import Change

SECRET = "a1b2c3d4e5f6a1b2c3d4e5f6"


def test_the_diff_of_a_file_with_a_picture_in_it_is_shown_at_once_and_without_secrets() -> None:
    servers = {"a": {"command": "x", "env": {"K": SECRET}, "args": ["--token", SECRET], "http_headers": {"H": SECRET}}}
    before = {"picture": "iVBORw0KGgo" * 10_000, "mcpServers": servers}
    after = {**before, "mcpServers": {**servers, "goat": {"command": "goat-mcp"}}}

    started = time.process_time()
    shown = redacted_diff(Change(Path("x.json"), *(json.dumps(one, indent=2).encode() for one in (before, after))))

    assert time.process_time() - started < 5  # of this process alone; minutes if each letter of a word begins a search
    assert '+    "goat": {' in shown and SECRET not in shown


def test_a_line_of_megabytes_is_shown_without_its_middle() -> None:
    before = json.dumps({"mcpServers": {"a": {"command": "x"}}, "history": ["y" * 100] * 10_000})

    after = before.replace('"a":', '"goat": {"command": "goat-mcp"}, "a":')
    shown = redacted_diff(Change(Path("x.json"), before.encode(), after.encode()))

    assert '+{"mcpServers": {"goat": {' in shown and shown.endswith("]}") and len(shown) < 10_000
