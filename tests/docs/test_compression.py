"""docs/compression.md shows what is saved and who decides: its example, its table and its settings are held to that."""

from __future__ import annotations

import re
from pathlib import Path

from goat_mcp.settings.loading import load_settings
from tests.commands.compression.recordings import BY_NAME, RECORDINGS
from tests.commands.compression.savings import compressed, table_row
from tests.docs.test_documents import ROOT, blocks

DOCUMENT = ROOT / "docs" / "compression.md"


def test_the_example_is_what_git_status_becomes() -> None:
    _, printed, shown = blocks(DOCUMENT, "text")

    assert printed.rstrip("\n") == BY_NAME["git-status"].text
    assert shown.rstrip("\n") == compressed(BY_NAME["git-status"])


def test_the_table_is_what_the_recordings_save() -> None:
    rows = re.findall(r"^\| `.+` \| \d+ \| .+$", DOCUMENT.read_text(), re.MULTILINE)

    assert rows == [table_row(recording) for recording in RECORDINGS]


def test_the_settings_are_loaded_and_the_first_pattern_is_first(tmp_path: Path) -> None:
    (block,) = blocks(DOCUMENT, "yaml")
    file = tmp_path / "goat-mcp.yaml"
    file.write_text(block)

    options = load_settings({}, config_file=file).bash

    assert options.compress_output is False
    assert list(options.compress_output_of_model.items()) == [("qwen*", True), ("claude-*", False)]
