"""`goat-mcp --help`: every command in one line, without loading any of them."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from goat_mcp.cli.main import app

NAMES = app.list_commands(click.Context(app))


def test_help_shows_every_command_in_one_whole_line() -> None:
    result = CliRunner().invoke(app, ["--help"])

    lines = [line.split() for line in result.output.partition("Commands:\n")[2].splitlines()]
    assert [words[0] for words in lines] == NAMES
    assert all(words[-1].endswith(".") and not words[-1].endswith("...") for words in lines)


def test_help_loads_no_command() -> None:
    look = "import sys; print([name for name in sys.modules if name.startswith('goat_mcp.')])"
    code = f"import click; from goat_mcp.cli.main import app; app.get_help(click.Context(app)); {look}"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "['goat_mcp.core', 'goat_mcp.core.version', 'goat_mcp.cli', 'goat_mcp.cli.main']"


@pytest.mark.parametrize("name", NAMES)
def test_every_command_that_help_names_is_there(name: str) -> None:
    command = app.get_command(click.Context(app), name)

    assert command is not None
    assert command.name == name
