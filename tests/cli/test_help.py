"""`goat-mcp --help`, `help`, `--version` and each command's help: what is shown, and that nothing is loaded for it."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from goat_mcp.cli.command_table import EXAMPLES, EXIT_CODES, SECTIONS
from goat_mcp.cli.flags import SELECTION_NAMES, selection
from goat_mcp.cli.main import app, main
from goat_mcp.core.version import __version__

NAMES = app.list_commands(click.Context(app))


def paths() -> list[str]:
    """Each command and each command of a group, as one types it."""
    found: list[str] = []
    for name in NAMES:
        command = app.get_command(click.Context(app), name)
        found.append(name)
        if isinstance(command, click.Group):
            found += [f"{name} {member}" for member in command.commands]
    return found


def shown(*words: str, width: int = 80) -> str:
    result = CliRunner().invoke(app, list(words), prog_name="goat-mcp", terminal_width=width)
    assert result.exit_code == 0, result.output
    return result.output


def failed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["goat-mcp", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert isinstance(end.value.code, int)
    return end.value.code, capsys.readouterr().err


def test_help_shows_every_command_on_one_screen() -> None:
    lines = shown("--help").splitlines()

    assert len(lines) < 24
    assert max(map(len, lines)) <= 80
    words = re.findall(r"[\w-]+", "\n".join(lines))
    assert all(name in words for name in NAMES)


def test_help_on_a_narrow_terminal_has_one_column() -> None:
    lines = shown("--help", width=50).splitlines()

    assert [line.split()[0] for line in lines if line.startswith("  ")] == [
        name for names in SECTIONS.values() for name in names
    ]


def test_every_command_is_in_one_section() -> None:
    assert sorted(name for names in SECTIONS.values() for name in names) == sorted(NAMES)


@pytest.mark.parametrize("words", [["--help"], ["help"], ["-h"]])
def test_the_program_explains_itself_however_it_is_asked(words: list[str]) -> None:
    assert shown(*words) == shown("--help")


@pytest.mark.parametrize("path", paths())
def test_help_of_each_command_is_whole(path: str) -> None:
    text = shown("help", *path.split())

    assert text == shown(*path.split(), "--help")
    assert max(map(len, text.splitlines())) <= 80
    assert "..." not in re.sub(r"[A-Z\]] ?\.\.\.", "", text)
    assert f"Usage: goat-mcp {path}" in text
    assert "Examples:\n  goat-mcp" in text or "Examples:\n  eval" in text
    assert "--no-color" in text


def test_the_shared_options_come_last_in_a_section_of_their_own() -> None:
    own, _, shared = shown("call", "--help").partition("Catalog options:\n")

    assert "--input-json" in own and "--json" in own
    assert "--workspace" in shared and "--workspace" not in own and "--json" not in shared


def test_the_shared_options_are_known_by_name() -> None:
    @click.command
    @selection
    def command() -> None: ...

    assert {one.name for one in command.params} == SELECTION_NAMES


def test_what_the_table_says_is_of_commands_there_are() -> None:
    assert set(EXAMPLES) == set(paths())
    assert set(EXIT_CODES) <= set(NAMES)


def test_help_as_json_is_one_document() -> None:
    assert json.loads(shown("help", "call", "--json"))["command"] == "goat-mcp call"


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_the_version_is_printed(flag: str) -> None:
    assert shown(flag) == f"goat-mcp {__version__}\n"


def test_help_loads_no_command() -> None:
    look = "import sys; print([name for name in sys.modules if name.startswith('goat_mcp.')])"
    code = f"import click; from goat_mcp.cli.main import app; app.get_help(click.Context(app)); {look}"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    own = ("cli", "cli.command_table", "cli.command_help", "cli.exit_codes", "core.platform", "cli.main")
    assert done.stdout.strip() == str([f"goat_mcp.{name}" for name in ("core", "core.version", *own)])


@pytest.mark.parametrize("name", NAMES)
def test_every_command_that_help_names_is_there(name: str) -> None:
    command = app.get_command(click.Context(app), name)

    assert command is not None
    assert command.name == name


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("lsit",), "no command 'lsit'; did you mean list?\nSee goat-mcp --help."),
        (("qqq",), "no command 'qqq'\nSee goat-mcp --help."),
        (("help", "rules", "forgt"), "goat-mcp rules has no command 'forgt'; did you mean forget?"),
        (("help", "undo", "now"), "goat-mcp undo has no commands of its own, so no 'now'"),
        (("status", "--jsno"), "goat-mcp status has no option --jsno; did you mean --json?"),
        (("call", "--jsno"), "goat-mcp call has no option --jsno; did you mean --json?"),
        (("undo", "--last", "x"), "Invalid value for '--last'"),
    ],
)
def test_a_typing_mistake_gets_a_suggestion(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, text = failed(capsys, monkeypatch, *words)

    assert code == 1
    assert said in text


def test_a_mistake_is_one_json_line_with_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, text = failed(capsys, monkeypatch, "inspekt", "--json")

    assert code == 1
    assert json.loads(text)["error"] == {
        "code": "E_USAGE",
        "message": "no command 'inspekt'; did you mean inspect?",
        "suggestion": "See goat-mcp --help.",
    }
