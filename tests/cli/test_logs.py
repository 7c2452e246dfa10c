"""`goat-mcp logs`: what a server logged is there when its host showed nothing of it. hosts.md's stderr, OBS-1."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from tests.e2e.conftest import UNASKED, fill, upstream_file
from tests.e2e.goat import Launch, http_goat
from tests.e2e.node_side import find_node
from tests.e2e.visits import NOBODY, PYTHON, call, visit
from tests.quick_start import goat_command
from tests.upstreams.fleet import server

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


def logs(launch: Launch, *words: str) -> subprocess.CompletedProcess[str]:
    command = goat_command("logs", *words)
    return subprocess.run(command, env=launch.environment, capture_output=True, text=True, timeout=60)


async def test_what_a_server_and_its_upstreams_said_is_shown_afterwards(tmp_path: Path) -> None:
    file = upstream_file(tmp_path / "upstreams.json", noisy=server("raw.py", "garbage"), other=server("raw.py"))
    launch = Launch(tmp_path, fill(tmp_path / "workspace"), (*UNASKED, "--upstreams", str(file)))
    before = logs(launch)

    with http_goat(launch) as goat:
        await visit(PYTHON[0], goat, [call("mcp__noisy__ping"), call("mcp__other__ping")], NOBODY, node=find_node)
        with anyio.fail_after(60):
            # Written a moment later, by another process, and of each upstream by itself.
            # Another process writes them.
            while not all(f"upstream={name}" in logs(launch).stdout for name in ("noisy", "other")):  # noqa: ASYNC110
                await anyio.sleep(0.2)
    everything = logs(launch)
    of_one = [json.loads(line) for line in logs(launch, "noisy", "--json").stdout.splitlines()]

    assert (before.stdout, before.stderr) == ("", "Nothing has been logged.\n")
    assert "upstream=noisy" in everything.stdout and "upstream=other" in everything.stdout
    assert {line["upstream"] for line in of_one} == {"noisy"}


async def test_a_failure_in_a_server_is_known_after_its_end_and_to_the_next_one(tmp_path: Path) -> None:
    broken = {"command": sys.executable, "args": ["-c", "import sys; sys.exit('no such table')"]}
    file = upstream_file(tmp_path / "upstreams.json", broken=broken, good=server("raw.py"))
    launch = Launch(tmp_path, fill(tmp_path / "workspace"), (*UNASKED, "--upstreams", str(file)))

    with http_goat(launch) as goat:
        await visit(PYTHON[0], goat, [call("mcp__good__ping"), call("mcp__broken__ping")], NOBODY, node=find_node)
    for file in (tmp_path / "state").glob("logs/*"):
        file.unlink()
    of_one = logs(launch, "broken")
    unknown = logs(launch, "borken")

    assert "reason=start_failed" in of_one.stdout and "broken: no such table" in of_one.stdout
    assert (unknown.returncode, unknown.stderr.splitlines()[0]) == (
        1,
        "goat-mcp: no server is called 'borken'; did you mean broken?",
    )
