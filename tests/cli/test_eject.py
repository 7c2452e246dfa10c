"""`goat-mcp uninstall` and `eject`: what they show and answer, also if nothing is there to take out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.terminal_runs import COLUMNS, run_on_terminal
from tests.cli.test_call import run
from tests.cli.test_import import done, written

pytestmark = pytest.mark.e2e


def test_on_a_terminal_both_end_with_what_to_do_for_the_host(tmp_path: Path) -> None:
    ends: list[str] = []
    for command in ("uninstall", "eject"):
        done("install", "cursor", cwd=tmp_path)
        code, shown = run_on_terminal(command, "cursor", cwd=tmp_path)
        assert code == 0 and not (tmp_path / ".cursor" / "mcp.json").exists()
        ends.append(shown.splitlines()[-1])

    assert ends == ["Reload the window of Cursor."] * 2 and len(ends[0]) <= COLUMNS


def test_json_is_one_document(tmp_path: Path) -> None:
    file = str(tmp_path / ".cursor" / "mcp.json")
    done("install", "cursor", cwd=tmp_path)

    ejected = json.loads(done("eject", "cursor", "--json", cwd=tmp_path).stdout)
    none = json.loads(done("uninstall", "cursor", "--json", cwd=tmp_path).stdout)

    assert {key: ejected[key] for key in ("host", "file", "restored", "kept_changes")} == {
        "host": "cursor",
        "file": file,
        "restored": True,
        "kept_changes": [],
    }
    assert (none["file"], none["changed"], none["diff"]) == (file, False, "")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("uninstall", "cursr"), "did you mean cursor?"),
        (("uninstall",), "Missing argument 'HOST'"),
        (("uninstall", "cursor"), "line 1, column"),
        (("eject", "cursr"), "did you mean cursor?"),
        (("eject", "cursor"), "goat-mcp has not written cursor's file"),
        (("eject",), "goat-mcp has written several files"),
    ],
)
def test_a_mistake_is_answered_with_the_value_and_the_next_step(
    tmp_path: Path, words: tuple[str, ...], problem: str
) -> None:
    written(tmp_path / ".cursor" / "mcp.json", "{")
    done("install", "codex", "zed", "--workspace", "state", cwd=_with_folder(tmp_path))

    ended = run(*words, "--json", cwd=tmp_path)

    error = json.loads(ended.stderr)["error"]
    assert (ended.returncode, ended.stdout) == (1, "") and problem in error["message"] and error["suggestion"]


def _with_folder(home: Path) -> Path:
    (home / "state").mkdir(mode=0o700)
    return home
