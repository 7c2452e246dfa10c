"""docs/safety.md shows what its client prints: the client runs here, against a real server, upstream and hook."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.sandbox.bubblewrapped import needs_bubblewrap
from tests.docs.test_documents import ROOT, blocks

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("safety")]

DOCUMENT = ROOT / "docs" / "safety.md"
EXAMPLE = ROOT / "examples" / "safety"
RUN_TIMEOUT_S = 240
STEPS = range(1, 9)
SANDBOX = 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("safety")


@pytest.fixture(scope="module")
def printed(folder: Path) -> list[str]:
    """What the client prints, step by step, without the headings."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "client.py"), str(folder)],
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [step.split("\n\n", 1)[1] for step in re.split(r"\n\n(?=\d+\. )", done.stdout)]


@pytest.mark.parametrize(
    "step", [pytest.param(step, marks=needs_bubblewrap if step == SANDBOX else ()) for step in STEPS]
)
def test_the_run_goes_as_it_is_recorded(step: int, printed: list[str]) -> None:
    recorded = blocks(DOCUMENT, "text")

    assert len(printed) == len(recorded) == len(STEPS)
    assert told(printed[step - 1]) == told(recorded[step - 1]), "if this is as it should be: scripts/recorded_run.py"


def test_the_settings_on_the_page_are_those_of_the_run() -> None:
    assert blocks(DOCUMENT, "yaml") == [(EXAMPLE / "goat-mcp.yaml").read_text()]


def test_what_the_run_leaves_behind_is_what_it_tells(folder: Path, printed: list[str]) -> None:
    project = folder / "project"

    assert (project / "prices.py").read_bytes() == (EXAMPLE / "project" / "prices.py").read_bytes()
    assert (folder / "private.txt").read_text() == "not a part of the project\n"
    assert "EXAMPLE-" not in "".join(printed)


def told(text: str) -> str:
    """What is the same in every run: no ids, hashes, times, ports."""
    for pattern, name in (
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+Z)?", "TIME"),
        (r"\b[0-9a-f]{64}\b", "HASH"),
        (r"\b[0-9a-f]{16}\b", "ID"),
        (r"(?<=\t)\d+(\.\d+)?(?=\t)", "MS"),
        (r"(?<=/127\.0\.0\.1/)\d+", "PORT"),
    ):
        text = re.sub(pattern, name, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
