"""docs/first-run.md shows what a terminal shows today: the script runs again, from the wheel to an undone change."""

from __future__ import annotations

import re

import pytest

from scripts.first_run import PAGE, first_run
from tests.docs.test_documents import blocks

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("wheel")]


def test_the_page_shows_what_the_run_shows_today() -> None:
    for recorded, shown in zip(blocks(PAGE, "text"), first_run(), strict=True):
        assert compared(recorded) == compared(shown), "if this is as it should be: python -m scripts.first_run"


def compared(text: str) -> list[str]:
    """A time is longer or shorter, and with it the space beside it. Servers come as they answer, and files that were
    written in one moment in any order."""
    return sorted(re.sub(r" +", " ", line.replace(" N s", " N ms")) for line in text.splitlines())
