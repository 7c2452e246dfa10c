"""docs/page.md shows every view of the page, and the command that takes its pictures works."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image

from scripts.page_pictures import FOLDER, THEMES, names, take
from tests.repetitions import is_full
from tests.ui.browser import Theme, find_browser

ROOT = Path(__file__).resolve().parents[2]
MAX_BYTES = 150_000


def expected(themes: Sequence[Theme] = THEMES) -> set[str]:
    return {f"page-{name}-{theme}.png" for name in names() for theme in themes}


def test_the_document_shows_every_view_light_and_dark() -> None:
    shown = set(re.findall(r"pictures/(page-[a-z-]+\.png)", (ROOT / "docs" / "page.md").read_text()))
    there = {path.name for path in FOLDER.glob("page-*.png")}

    assert shown == there == expected()
    assert [path.name for path in FOLDER.glob("page-*.png") if path.stat().st_size > MAX_BYTES] == []


@pytest.mark.e2e
@pytest.mark.xdist_group("ui")
def test_the_pictures_are_taken_of_a_real_page(tmp_path: Path) -> None:
    find_browser()

    themes = THEMES if is_full() else THEMES[:1]

    made = take(tmp_path, themes)

    assert {path.name for path in made} == expected(themes)
    for path in made:
        assert path.stat().st_size <= MAX_BYTES
        with Image.open(path) as picture:
            colours = picture.convert("RGB").getcolors(1 << 20)
            assert picture.width == 1000 and colours is not None and len(colours) > 8, path.name
