"""`goat-mcp why`: which rule decides, where it stands, and that nothing runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_call import run

pytestmark = pytest.mark.e2e

SETTINGS = """\
bash:
  blocked: [git push]
permissions:
  allow:
    - Bash(npm test)
  deny:
    - Read(./secrets/**)
"""


def explained(folder: Path, *words: str) -> dict[str, Any]:
    file = folder / "settings.yaml"
    file.write_text(SETTINGS)
    done = run("why", *words, "--config", str(file), "--workspace", str(folder), "--json", cwd=folder)
    assert "Traceback" not in done.stderr
    facts: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (5 if facts["effect"] == "deny" else 0)
    return facts


@pytest.mark.parametrize(
    ("words", "effect", "line"),
    [
        (("Bash", "command=npm test"), "allow", 5),
        (("Read", "file_path=@secrets/k"), "deny", 7),
        (("Bash", "command=git push origin"), "deny", 2),
    ],
)
def test_the_rule_that_decides_is_named_with_its_line(
    tmp_path: Path, words: tuple[str, ...], effect: str, line: int
) -> None:
    facts = explained(tmp_path, *words)

    assert (facts["effect"], facts["origin"]) == (effect, f"{tmp_path}/settings.yaml:{line}")


def test_nothing_runs_and_what_would_allow_it_is_named(tmp_path: Path) -> None:
    facts = explained(tmp_path, "Write", "file_path=@made", "content=x")

    assert (facts["effect"], facts["would_be_allowed_by"]) == ("ask", [f"Write(/{tmp_path}/made)"])
    assert not (tmp_path / "made").exists()


def test_while_planning_no_rule_would_help(tmp_path: Path) -> None:
    facts = explained(tmp_path, "Write", "file_path=@made", "content=x", "--mode", "plan")

    assert (facts["effect"], facts["reason"], "would_be_allowed_by" in facts) == ("deny", "mode plan", False)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("Nope", "x=1"), "E_TOOL_NOT_FOUND"),
        (("mcp__x__y",), "E_TOOL_NOT_FOUND"),
        (("WebSearch", "query=x", "--set", 'catalog.deny=["WebSearch"]'), "E_TOOL_NOT_IN_CATALOG"),
        (("Read", "file_path=/etc/passwd"), "E_PATH_OUTSIDE"),
    ],
)
def test_what_cannot_be_called_at_all_is_said_plainly(tmp_path: Path, words: tuple[str, ...], code: str) -> None:
    assert explained(tmp_path, *words)["code"] == code


def test_a_misspelt_tool_is_answered_with_the_nearest_name(tmp_path: Path) -> None:
    done = run("why", "Reed", "--workspace", str(tmp_path), cwd=tmp_path)

    assert (done.returncode, done.stdout) == (5, "Reed: denied: tool not found: Reed\n  Did you mean Read?\n")
