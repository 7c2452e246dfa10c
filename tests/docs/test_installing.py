"""docs/installing.md: its commands run, one after the other, and print what the page shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from goat_mcp.cli.hosts.host import WorkspaceSource
from goat_mcp.cli.hosts.table import HOSTS
from tests.docs.test_documents import ROOT, blocks
from tests.quick_start import goat_command

DOCUMENT = ROOT / "docs" / "installing.md"
RUN_TIMEOUT_S = 60


def steps() -> Iterator[tuple[str, str]]:
    for block in blocks(DOCUMENT, "console"):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = step.partition("\n")
            yield command, printed


class Ada:
    """Her home with two hosts, a project, and her PATH."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self._bin = folder / "bin"
        for path in (self._bin, self.home / "project", self.home / ".cursor", self.home / ".config" / "Claude"):
            path.mkdir(parents=True)
        program = self._bin / "goat-mcp"
        program.write_text(f'#!/bin/sh\nexec {shlex.join(goat_command())} "$@"\n')
        program.chmod(0o755)

    def run(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command}"],
            env={"PATH": f"{self._bin}:{os.defpath}", "HOME": str(self.home)},
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
        )
        assert done.returncode == 0, done.stderr
        program = str(Path(sys.executable).with_name("goat-mcp"))
        return done.stdout.replace(program, "/home/ada/.local/bin/goat-mcp").replace(str(self.home), "/home/ada")


@pytest.mark.e2e
def test_the_page_goes_as_it_is_written(tmp_path: Path) -> None:
    ada = Ada(tmp_path)

    printed = [(command, ada.run(command)) for command, _ in steps()]

    assert printed == list(steps())
    assert not (ada.home / ".config" / "Claude" / "claude_desktop_config.json").exists()


@pytest.mark.parametrize(
    ("row", "source"), [(0, WorkspaceSource.ROOTS), (1, WorkspaceSource.START_DIRECTORY)], ids=["roots", "directory"]
)
def test_the_page_names_the_hosts_that_need_no_workspace(row: int, source: WorkspaceSource) -> None:
    _, _, hosts = (
        DOCUMENT.read_text()
        .partition("| the workspace is | hosts |\n| --- | --- |\n")[2]
        .splitlines()[row]
        .split("|")[:3]
    )

    assert hosts.strip().split(", ") == [f"`{host.name}`" for host in HOSTS.values() if host.workspace is source]
