"""A HOME that may not be searched, or is empty: what would lie there is absent, and nothing stops."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.ordinary_user import run_as_ordinary_user

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.linux_only("root gives up its rights as Linux has them"),
]


@pytest.fixture
def home(tmp_path: Path) -> Generator[Path]:
    folder = tmp_path / "home"
    folder.mkdir()
    folder.chmod(0)
    yield folder
    folder.chmod(0o700)


def run(*words: str, home: Path | str, folder: Path) -> subprocess.CompletedProcess[str]:
    places = {"HOME": str(home), "GOAT_MCP_STATE_DIR": str(folder / "state")}
    work = folder / "work"
    work.mkdir(exist_ok=True)
    return run_as_ordinary_user(*words, cwd=work, variables=places)


@pytest.mark.parametrize(
    "words",
    [("serve",), ("status", "--json"), ("list", "--json"), ("doctor", "--json"), ("rules",), ("manifest", "list")],
    ids=" ".join,
)
def test_what_would_lie_below_it_is_absent(words: tuple[str, ...], home: Path, tmp_path: Path) -> None:
    done = run(*words, home=home, folder=tmp_path)

    assert done.returncode == 0
    assert not [line for line in done.stderr.splitlines() if "Traceback" in line or "ermission" in line]


def test_tools_that_look_there_for_settings_of_git_and_search_work(home: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "notes.txt").write_text("a needle\n")

    done = run("call", "Grep", "pattern=needle", "output_mode=content", home=home, folder=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert "a needle" in done.stdout


def test_commands_run(home: Path, tmp_path: Path) -> None:
    done = run("call", "--allowed-tool", "Bash", "Bash", "command=echo it ran", home=home, folder=tmp_path)

    assert (done.returncode, done.stdout.strip()) == (0, "it ran")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("doctor", "--workspace", "HOME/w"), "workspace HOME/w is not a directory"),
        (("list", "--upstreams", "HOME/x.json"), "upstreams file HOME/x.json: Permission denied"),
        (("list", "--config", "HOME/x.yaml"), "HOME/x.yaml: cannot be read: Permission denied"),
        (("list", "--manifests", "HOME/m"), "HOME/m: cannot be read: Permission denied"),
        (("manifest", "new", "x"), "HOME/.config/goat-mcp/manifests/x cannot be written: Permission denied"),
    ],
    ids=["workspace", "upstreams", "config", "manifests", "manifest new"],
)
def test_what_is_named_there_is_told(words: tuple[str, ...], told: str, home: Path, tmp_path: Path) -> None:
    done = run(*(word.replace("HOME", str(home)) for word in words), home=home, folder=tmp_path)

    assert told.replace("HOME", str(home)) in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_an_empty_home_is_as_none() -> None:
    ask = """
import atexit, pathlib, sys
from goat_mcp.cli.main import main
from goat_mcp.state.directory import StateDirectory
atexit.register(lambda: print("home", pathlib.Path.home(), "state", StateDirectory.default().path))
sys.argv = ["goat-mcp", "version"]
main()
"""

    done = subprocess.run(
        [sys.executable, "-c", ask],
        env={"PATH": "/usr/bin:/bin", "HOME": "", "XDG_STATE_HOME": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )

    *_, line = done.stdout.splitlines()
    _, home, _, state = line.split()
    assert home != "/"
    assert state == f"{home}/.local/state/goat-mcp"


def test_doctor_counts_nothing_below_it_as_wrong(home: Path, tmp_path: Path) -> None:
    done = run("doctor", "--json", home=home, folder=tmp_path)

    findings = json.loads(done.stdout)["findings"]
    assert [one for one in findings if str(home) in one["detail"]] == []
