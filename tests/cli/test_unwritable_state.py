"""A state directory that is there and may not be written: a setting to fix, whichever command meets it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.ordinary_user import run_as_ordinary_user
from tests.quick_start import goat_command

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.linux_only("root gives up its rights as Linux has them"),
]


@pytest.fixture
def state(tmp_path: Path) -> Generator[Path]:
    folder = tmp_path / "state"
    folder.mkdir()
    folder.chmod(0o500)
    yield folder
    folder.chmod(0o700)


def run(*words: str, state: Path) -> subprocess.CompletedProcess[str]:
    places = {"HOME": str(state.parent), "GOAT_MCP_STATE_DIR": str(state)}
    return run_as_ordinary_user(*words, cwd=state.parent, variables=places)


@pytest.mark.parametrize(
    "words",
    [
        ("serve",),
        ("status",),
        ("list",),
        ("call", "Read", "file_path=x"),
        ("inspect", "Read"),
        ("lock", "--check"),
        ("auth", "list"),
        ("logs",),
    ],
    ids=" ".join,
)
def test_each_command_says_that_the_state_directory_cannot_be_used_and_how_to_name_another(
    words: tuple[str, ...], state: Path
) -> None:
    done = run(*words, state=state)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"goat-mcp: state directory {state} cannot be used: ")
    assert done.stderr.splitlines()[1:] == ["Name another one with GOAT_MCP_STATE_DIR."]


@pytest.mark.parametrize("command", ["logs", "status", "list"])
def test_a_home_in_which_nothing_can_be_made_is_said_too(command: str, tmp_path: Path) -> None:
    done = run_as_ordinary_user(command, cwd=tmp_path, variables={"HOME": "/proc"})

    assert (done.returncode, done.stdout) == (1, "")
    said, remedy = done.stderr.splitlines()
    assert said.startswith("goat-mcp: state directory /proc/.local/state/goat-mcp cannot be used: ")
    assert remedy == "Name another one with GOAT_MCP_STATE_DIR."


@pytest.mark.parametrize("words", [("--help",), ("version",), ("list", "--json")], ids=" ".join)
def test_output_for_which_there_is_no_space_is_said(words: tuple[str, ...], tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*goat_command(), *words],
            cwd=tmp_path,
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert done.returncode == 1
    assert "no space left on the disk for the output" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [("status",), ("logs",), ("lock", "--check"), ("auth", "list")], ids=" ".join)
def test_with_json_it_is_one_line(words: tuple[str, ...], state: Path) -> None:
    done = run(*words, "--json", state=state)

    (line,) = done.stderr.splitlines()
    error = json.loads(line)["error"]
    assert (error["code"], error["suggestion"]) == ("E_CONFIG", "Name another one with GOAT_MCP_STATE_DIR.")
    assert error["message"].startswith(f"state directory {state} cannot be used: ")


def test_a_home_directory_that_may_not_be_written_is_said_in_words(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".cursor").mkdir(parents=True)
    home.chmod(0o500)

    done = run_as_ordinary_user("install", "cursor", cwd=tmp_path, variables={"HOME": str(home)})

    home.chmod(0o700)
    assert done.returncode == 1 and not any((home / ".cursor").iterdir())
    assert done.stderr.splitlines() == [
        f"goat-mcp: state directory {home / '.local/state/goat-mcp'} cannot be used: "
        f"Permission denied ({home / '.local'})",
        "Name another one with GOAT_MCP_STATE_DIR.",
    ]


def test_doctor_finds_it(state: Path) -> None:
    # OBS-2
    done = run("doctor", "--json", state=state)

    document = json.loads(done.stdout)
    (finding,) = document["findings"]
    assert (done.returncode, document["exit_status"]) == (1, 1)
    assert (finding["id"], finding["fix"]) == ("settings", "Name another one with GOAT_MCP_STATE_DIR.")
    assert finding["detail"] == f"state directory {state} cannot be used: it may not be written"


def test_doctor_finds_a_part_of_it_that_may_not_be_written_too(state: Path) -> None:
    state.chmod(0o700)
    (state / "spill").mkdir(mode=0o500)

    done = run("doctor", "--json", state=state)

    (finding,) = json.loads(done.stdout)["findings"]
    assert done.returncode == 1
    assert finding["id"] == "settings"
    assert finding["detail"].startswith(f"state directory {state} cannot be used: Permission denied ({state}/spill/")
