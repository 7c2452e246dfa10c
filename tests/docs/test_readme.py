"""The README: its first screen, its links and its picture."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from scripts.install_links import ENTRY
from scripts.pictures import pictures

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
MAX_LINES_AFTER_THE_FIRST_SCREEN = 150


def parameters(page: str) -> dict[str, str]:
    links: list[str] = re.findall(rf"\(({re.escape(page)}[^)]+)\)", README)
    (link,) = links
    return {name: values[0] for name, values in parse_qs(urlsplit(link).query).items()}


def test_the_links_hold_the_entry_that_starts_the_server() -> None:
    cursor = parameters("https://cursor.com/en/install-mcp?")
    vscode = parameters("https://insiders.vscode.dev/redirect/mcp/install?")

    assert cursor["name"] == vscode["name"] == "goat"
    assert json.loads(base64.b64decode(cursor["config"])) == ENTRY
    assert json.loads(vscode["config"]) == ENTRY


def test_the_readme_is_short() -> None:
    _, rest = README.split("## By hand, and over HTTP")

    assert len(rest.splitlines()) <= MAX_LINES_AFTER_THE_FIRST_SCREEN


@pytest.mark.parametrize("line", ["uvx goat-mcp demo", "pipx install goat-mcp"])
def test_what_needs_a_release_says_so(line: str) -> None:
    (found,) = [each for each in README.splitlines() if each.startswith(line)]

    assert found.endswith("# from the first release on")


@pytest.mark.e2e
def test_the_pictures_show_what_the_commands_print_now() -> None:
    for path, drawn in pictures().items():
        assert path.read_text() == drawn, "python -m scripts.pictures"
