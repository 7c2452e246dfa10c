"""docs/moving-in.md: its commands run, one after the other, and print what the page shows. CFG-2."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from goat_mcp.cli.hosts.table import HOSTS
from scripts.hosts_table import hosts_table
from tests.docs.test_documents import ROOT, blocks
from tests.quick_start import goat_command

DOCUMENT = ROOT / "docs" / "moving-in.md"
RUN_TIMEOUT_S = 120
TICKETS = """\
import os
from mcp.server.mcpserver import MCPServer
assert os.environ["TICKETS_TOKEN"] == "tk-5up3rs3cr3t-0001"
server = MCPServer("tickets")
@server.tool()
def open_tickets() -> list[str]:
    "Tickets that are open."
    return ["T-1"]
server.run()
"""


def steps() -> Iterator[tuple[str, str]]:
    for block in blocks(DOCUMENT, "console"):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = step.partition("\n")
            yield command, printed


class Ada:
    """Her home, her servers, and her PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.config = folder / "home" / ".config" / "Claude" / "claude_desktop_config.json"
        self.bin.mkdir()
        self.config.parent.mkdir(parents=True)
        (folder / "servers").mkdir()
        (folder / "servers" / "weather_stdio.py").write_text((ROOT / "examples" / "weather_stdio.py").read_text())
        (folder / "servers" / "tickets.py").write_text(TICKETS)
        self._program("uvx", f'shift; exec {sys.executable} -m mcp_server_time "$@"')
        self._program("python3", f'exec {sys.executable} "$@"')
        self._program("goat-mcp", f'exec {shlex.join(goat_command())} "$@"')
        (block,) = blocks(DOCUMENT, "json")
        self.config.write_text(self.here(block))

    def _program(self, name: str, script: str) -> None:
        (self.bin / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / name).chmod(0o755)

    def run(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {self.here(command)}"],
            env={"PATH": f"{self.bin}:{os.defpath}", "HOME": str(self.folder / "home")},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
        )
        assert done.returncode == (1 if "\tdiffers" in done.stdout else 0), done.stderr
        return self.told(done.stdout)

    def here(self, text: str) -> str:
        return text.replace("/opt/servers", str(self.folder / "servers"))

    def told(self, text: str) -> str:
        text = text.replace(str(Path(sys.executable).with_name("goat-mcp")), "/home/ada/.local/bin/goat-mcp")
        text = text.replace(str(self.folder / "servers"), "/opt/servers")
        return text.replace(str(self.folder / "home"), "/home/ada")


@pytest.mark.e2e
def test_the_page_goes_as_it_is_written(tmp_path: Path) -> None:
    ada = Ada(tmp_path)
    before = ada.config.read_bytes()

    printed = [(command, ada.run(command)) for command, _ in steps()]

    assert printed == list(steps())
    assert ada.config.read_bytes() == before


def test_the_page_has_every_host_with_its_files_and_what_to_do_after_a_change() -> None:
    table = hosts_table()

    assert f"<!-- hosts: generated -->\n\n{table}\n\n<!-- /hosts -->" in DOCUMENT.read_text(), "run `make generated`"
    assert all(f"| `{host.name}`<br>{host.title} |" in table for host in HOSTS.values())
    (roo,) = (row for row in table.splitlines() if row.startswith("| `roo`"))
    assert "Linux: `~/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json`" in roo
    assert "Windows: `%APPDATA%\\Code\\User\\globalStorage\\rooveterinaryinc.roo-cline\\settings\\mcp_set" in roo
    assert " `.roo/mcp.json` | Roo Code reads the file again by itself" in roo
