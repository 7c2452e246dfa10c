"""docs/seeds.md says of each thing the seeds have what shows it here: those tests have to be there."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.contract.seed_rows import SEED_ROWS, SEEDS, SeedRow

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("row", SEED_ROWS, ids=lambda row: f"{row.seed}: {row.what}")
def test_what_shows_a_row_is_there(row: SeedRow) -> None:
    missing = [shown for shown in row.shown_by if not _tests(shown)]

    assert missing == []
    assert row.shown_by or row.waits


def test_every_seed_has_rows_and_no_row_comes_twice() -> None:
    assert list(dict.fromkeys(row.seed for row in SEED_ROWS)) == list(SEEDS)
    assert len({(row.seed, row.what) for row in SEED_ROWS}) == len(SEED_ROWS)


@pytest.mark.parametrize("row", [row for row in SEED_ROWS if row.waits], ids=lambda row: f"{row.seed}: {row.what}")
def test_what_waits_has_a_date_and_a_reason(row: SeedRow) -> None:
    assert re.fullmatch(r"20\d\d-\d\d-\d\d: .{10,}\.", row.waits)


def _tests(shown: str) -> list[str]:
    file, _, pattern = shown.partition("::")
    path = ROOT / "tests" / file
    if not path.is_file():
        return []
    names = re.findall(r"^(?:    )?(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    return [name for name in names if fnmatchcase(name, pattern or "*")]
