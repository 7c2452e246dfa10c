"""What the browser tests share. None of them is a coroutine: Playwright has the event loop of their thread."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.ui.browser import Tabs, checked_tabs, running_browser
from tests.ui.desk import Desk, new_desk

_FOLDER = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker runs them all, with one browser."""
    for item in items:
        if item.path.is_relative_to(_FOLDER):
            item.add_marker(pytest.mark.xdist_group("ui"))


@pytest.fixture(scope="package")
def browser() -> Generator[Browser]:
    with running_browser() as browser:
        yield browser


@pytest.fixture
def desk(tmp_path: Path, browser: Browser) -> Generator[Desk]:
    """An account of this test's own, with the page served. The browser comes first: without one nothing is started."""
    with new_desk(tmp_path / "ada").served() as desk:
        yield desk


@pytest.fixture
def page_at(browser: Browser, desk: Desk) -> Generator[Tabs]:
    """Windows in which the views are open; a test that expects an error takes it out of `page_at.problems`."""
    with checked_tabs(browser, desk) as tabs:
        yield tabs
