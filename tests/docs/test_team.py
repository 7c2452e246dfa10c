"""docs/team.md: its commands run in one shell, as they are written, with other ports."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.balancers import HAPROXY
from tests.docs.test_documents import ROOT, blocks
from tests.free_port import free_port
from tests.quick_start import goat_command

DOCUMENT = ROOT / "docs" / "team.md"
RUN_TIMEOUT_S = 240
MARK = "--- block"
_REDIS, _CLIENTS, _REPLICAS, _METRICS = "6379", "8080", "876", "946"


def with_free_ports(script: str) -> str:
    """The ports of replicas end with their number."""

    def three() -> str:
        while True:
            first = free_port() // 10
            if all(_is_free(first * 10 + number) for number in (1, 2, 3)):
                return str(first)

    for port, other in ((_REDIS, str(free_port())), (_CLIENTS, str(free_port()))):
        script = script.replace(port, other)
    for start in (_REPLICAS, _METRICS):
        script = re.sub(rf"(?<=127\.0\.0\.1:){start}(?=[123$])", three(), script)
    return script


def _is_free(port: int) -> bool:
    import socket

    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.e2e
def test_the_page_goes_as_it_is_written(tmp_path: Path) -> None:
    for program in ("curl", "openssl", "redis-server", "redis-cli"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} here")
    haproxy = HAPROXY.found()
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, command in (("goat-mcp", goat_command()), ("python3", [sys.executable]), ("haproxy", [haproxy])):
        (programs / name).write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        (programs / name).chmod(0o755)
    for name in ("deploy", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    parts = blocks(DOCUMENT, "bash")
    script = with_free_ports("".join(f"echo '{MARK}'\n{part}" for part in parts))
    # Whatever goes wrong, nothing that it has started goes on.
    script = "set -e\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n" + script

    done = subprocess.run(
        ["bash", "-c", script],
        env={
            "PATH": f"{programs}:{os.defpath}",
            "HOME": str(tmp_path),
            "PYTHONPATH": str(ROOT),
            "GOAT_MCP_RESIDENT": "0",
            "GOAT_MCP_REPLICA__LEAVE_DELAY_S": "0.5",
        },
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
    )

    logs = "\n".join(file.read_text()[-2000:] for file in sorted((tmp_path / "team").glob("*.log")))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{logs}"
    shown = done.stdout.split(MARK + "\n")[1:]
    assert len(shown) == len(parts)
    towns = [block for part, block in zip(parts, shown, strict=True) if re.search(r"^towns$", part, re.MULTILINE)]
    assert len(towns) == 3
    assert all("Coldharbour" in block for block in towns), towns
    assert shown[parts.index(next(part for part in parts if "start 1; start 2" in part))].count("ok") == 3
    assert any('goat_mcp_call_duration_seconds_count{tool="mcp__weather__list_towns"' in block for block in shown)


def test_the_page_names_files_that_there_are() -> None:
    named = set(re.findall(r"\bdeploy/[\w.-]+(?:/[\w.-]*)?", DOCUMENT.read_text()))

    made_by_the_reader = {"deploy/.env", "deploy/secrets", "deploy/secrets/"}
    assert [name for name in named - made_by_the_reader if not (ROOT / name).exists()] == []


def test_the_calculation_is_one() -> None:
    text = DOCUMENT.read_text()

    def cost(of: str) -> float:
        found = re.search(rf"^\| {re.escape(of)} \| ([\d.]+) ", text, re.MULTILINE)
        assert found is not None, of
        return float(found[1])

    rows = re.findall(r"^\| (1[\d,]+) \| (.*) \|$", text, re.MULTILINE)

    assert [users for users, _ in rows] == ["100", "10,000", "1,000,000"]
    for users, rest in rows:
        connected, calls, cores, mb, replicas, commands, entries, seconds = (
            float(cell.replace(",", "")) for cell in rest.split(" | ")
        )
        assert connected == float(users.replace(",", "")) * 0.3
        assert calls == pytest.approx(connected / 60, rel=0.05)
        per_call_ms = cost("a plain call, at a replica") + cost("a plain call, at haproxy")
        assert cores == pytest.approx(connected / 60 * per_call_ms / 1000, rel=0.1)
        kb = cost("a session of the older protocol") + cost("an open stream of events")
        assert mb == pytest.approx(connected * kb / 1024, rel=0.05)
        assert replicas == max(2, -(-connected // 2000))
        assert commands == replicas * cost("being a replica")
        assert entries == pytest.approx(replicas**2 * 0.3, rel=0.05)
        told_ms = cost("telling one stream that the tools changed")
        assert seconds == pytest.approx(connected * told_ms / 1000, rel=0.05)
