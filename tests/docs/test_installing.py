"""docs/installing.md: its commands run, one after the other, and print what the page shows."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from goat_mcp.cli.hosts.host import WorkspaceSource
from goat_mcp.cli.hosts.table import HOSTS
from goat_mcp.processes import wsl
from tests.docs.test_documents import ROOT, blocks
from tests.fake_wsl import put_into_wsl
from tests.quick_start import goat_command

DOCUMENT = ROOT / "docs" / "installing.md"
RUN_TIMEOUT_S = 60


IN_WSL = "## Windows (WSL 2)\n"


def steps(*, in_wsl: bool = False) -> Iterator[tuple[str, str]]:
    """`in_wsl`: those of the section on WSL, else all others."""
    section = DOCUMENT.read_text().partition(IN_WSL)[2].partition("\n## ")[0]
    for block in blocks(DOCUMENT, "console"):
        if (block in section) is not in_wsl:
            continue
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = step.partition("\n")
            yield command, printed


class Ada:
    """Her home with two hosts, a project, and her PATH."""

    def __init__(self, folder: Path, command: Sequence[str]) -> None:
        self.home = folder / "home"
        self._bin = folder / "bin"
        for path in (self._bin, self.home / "project", self.home / ".cursor", self.home / ".config" / "Claude"):
            path.mkdir(parents=True)
        program = self._bin / "goat-mcp"
        program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        program.chmod(0o755)

    def run(self, command: str, **variables: str) -> str:
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command}"],
            env={"PATH": f"{self._bin}:{os.defpath}", "HOME": str(self.home), **variables},
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
    ada = Ada(tmp_path, goat_command())

    printed = [(command, ada.run(command)) for command, _ in steps()]

    assert printed == list(steps())
    assert not (ada.home / ".config" / "Claude" / "claude_desktop_config.json").exists()


@pytest.mark.e2e
def test_the_section_on_wsl_goes_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = put_into_wsl(tmp_path, monkeypatch)
    windows.drives.joinpath("c", "Users", "Ada").mkdir()
    windows.answers("cmd.exe", "USERPROFILE=C:\\Users\\Ada\nAPPDATA=C:\\Users\\Ada\\AppData\\Roaming\n")
    ada = Ada(tmp_path, [sys.executable, "-m", "tests.in_wsl", str(wsl.CONFIG_FILE)])
    shutil.rmtree(ada.home / ".config")  # its Linux has no host

    def shown(command: str) -> str:
        printed = ada.run(command, WSL_DISTRO_NAME="Ubuntu", PYTHONPATH=str(ROOT))
        return printed.replace(str(windows.drives), "/mnt")

    assert [(command, shown(command)) for command, _ in steps(in_wsl=True)] == list(steps(in_wsl=True))
    assert [*windows.drives.rglob("claude_desktop_config.json")] == []


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
