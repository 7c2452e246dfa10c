"""Make docs/pictures/page-*.png, every view of the page, light and dark: `python -m scripts.page_pictures`.

A real goat-mcp works for a client in a throw-away account, and a real browser shows the page. Places and times of the
machine are replaced. Needs Chromium, as the tests of the page do.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

from goat_mcp.server.ui.app import VIEWS
from tests.ui.browser import Tabs, Theme, running_browser
from tests.ui.desk import new_desk
from tests.ui.seed import morning

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "pictures"
WIDTH, MAX_HEIGHT = 1000, 1400
THEMES: tuple[Theme, ...] = ("light", "dark")
COLOURS = 96
_WITHOUT_PLACES = """([folder, ada, python]) => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    text.data = text.data.replaceAll(folder, ada).replaceAll(python, "python")
      .replace(/\\b\\d\\d:\\d\\d:\\d\\d\\b/g, "09:30:12");
  }
}"""


def names() -> list[str]:
    """The views that there are, by the names of their modules."""
    return [name for name, _ in VIEWS if find_spec(f"goat_mcp.server.ui.{name}") is not None]


def take(folder: Path, themes: Sequence[Theme] = THEMES) -> list[Path]:
    """Write `page-VIEW-THEME.png` of each view into `folder`."""
    made: list[Path] = []
    with tempfile.TemporaryDirectory(prefix="g", dir="/tmp") as place, running_browser() as browser:
        desk = new_desk(Path(place) / "ada")
        with morning(desk), desk.page():
            tabs = Tabs(browser, desk)
            for theme in themes:
                for name in names():
                    page = tabs("/ui" if name == "now" else f"/ui/{name}", theme, WIDTH)
                    if name == "now":  # a call is shown once it has run for a second
                        page.get_by_role("button", name="Cancel").wait_for()
                    page.evaluate(_WITHOUT_PLACES, [str(desk.home), "/home/ada", sys.executable])
                    file = folder / f"page-{name}-{theme}.png"
                    file.write_bytes(_small(_picture(page)))
                    made.append(file)
            tabs.close()
    return made


def _picture(page: Page) -> bytes:
    height: int = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size({"width": WIDTH, "height": min(height, MAX_HEIGHT)})
    return page.screenshot()


def _small(picture: bytes) -> bytes:
    """A page has few colours."""
    out = io.BytesIO()
    with Image.open(io.BytesIO(picture)) as image:
        image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


def main() -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("page-*.png"):
        old.unlink()
    for file in take(FOLDER):
        sys.stdout.write(f"{file.relative_to(ROOT)}: {file.stat().st_size // 1024} KB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
