"""Colours: on a terminal, unless somebody does not want them; in a pipe only if somebody does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.terminal_session import TerminalSession
from tests.cli.test_call import run
from tests.quick_start import goat_command

pytestmark = [pytest.mark.e2e]

COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-7]|9[0-7])(?:;\d+)*m")
COMMAND = ("list", "Grep")


def printed(folder: Path, *words: str, variables: Mapping[str, str]) -> str:
    home = {"HOME": str(folder), "GOAT_MCP_STATE_DIR": str(folder / "state"), **variables}
    with TerminalSession(goat_command(*words), cwd=folder, variables=home) as session:
        assert session.end(60) == 0
        assert "Grep" in session.shown
        return session.raw


def test_a_terminal_shows_colours(tmp_path: Path) -> None:
    assert COLOUR.search(printed(tmp_path, *COMMAND, variables={}))


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        ((*COMMAND, "--no-color"), {}),
        (("--no-color", *COMMAND), {}),
        ((*COMMAND, "--no-color"), {"FORCE_COLOR": "1"}),
        (COMMAND, {"NO_COLOR": "1"}),
        (COMMAND, {"TERM": "dumb"}),
    ],
    ids=["flag", "flag before the command", "flag beats FORCE_COLOR", "NO_COLOR", "TERM=dumb"],
)
def test_whoever_wants_no_colours_gets_none(tmp_path: Path, words: tuple[str, ...], variables: dict[str, str]) -> None:
    assert not COLOUR.search(printed(tmp_path, *words, variables=variables))


def test_a_dumb_terminal_gets_no_control_sequences(tmp_path: Path) -> None:
    assert "\x1b" not in printed(tmp_path, *COMMAND, variables={"TERM": "dumb"})


def test_a_pipe_gets_colours_only_if_asked_for(tmp_path: Path) -> None:
    assert "\x1b" not in run(*COMMAND, cwd=tmp_path).stdout
    assert COLOUR.search(run(*COMMAND, cwd=tmp_path, variables={"FORCE_COLOR": "1"}).stdout)
