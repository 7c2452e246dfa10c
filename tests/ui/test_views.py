"""Every view in a real browser: no violation of its policy, nothing serious for axe, and room on a phone."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from goat_mcp.server.ui.app import VIEWS
from tests.ui.browser import NARROW, Tabs, Theme, checked_tabs, overflow, violations
from tests.ui.desk import Desk, new_desk
from tests.ui.seed import morning

pytestmark = pytest.mark.e2e

THEMES: tuple[Theme, ...] = ("light", "dark")
TITLES = dict(VIEWS)


@pytest.fixture(scope="module")
def busy_desk(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Generator[Desk]:
    """An account in which something of everything has happened, and something waits."""
    desk = new_desk(tmp_path_factory.mktemp("busy") / "ada")
    with morning(desk), desk.page():
        yield desk


@pytest.fixture(scope="module")
def desk(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Generator[Desk]:
    """An account in which nothing has happened, for all tests here: they only look."""
    with new_desk(tmp_path_factory.mktemp("quiet") / "ada").served() as desk:
        yield desk


@pytest.fixture
def busy_page_at(browser: Browser, busy_desk: Desk) -> Generator[Tabs]:
    with checked_tabs(browser, busy_desk) as tabs:
        yield tabs


def _themes_by_turns() -> Iterator[Any]:
    """The quick run takes every view in one theme: the first one in the light one, the next one in the dark one."""
    for number, name in enumerate(TITLES):
        for turn, theme in enumerate(THEMES):
            yield pytest.param(name, theme, marks=pytest.mark.full if (number + turn) % 2 else ())


def path_of(name: str) -> str:
    return "/ui" if name == "now" else f"/ui/{name}"


@pytest.mark.parametrize(("name", "theme"), list(_themes_by_turns()))
def test_a_view_keeps_its_policy_and_axe_finds_nothing_serious(busy_page_at: Tabs, name: str, theme: Theme) -> None:
    page = busy_page_at(path_of(name), theme)

    expect(page.locator("h1")).to_have_text(TITLES[name])
    expect(page.get_by_role("navigation").locator("[aria-current=page]")).to_have_text(TITLES[name])
    assert list(violations(page)) == []
    _open_everything(page)
    assert list(violations(page)) == []


@pytest.mark.parametrize("name", TITLES)
def test_a_view_fits_a_phone_and_a_wide_screen(busy_page_at: Tabs, name: str) -> None:
    page = busy_page_at(path_of(name), width=NARROW)

    for width in (NARROW, 760, 1600):
        page.set_viewport_size({"width": width, "height": 900})
        _open_everything(page)
        assert overflow(page) == [], width
    page.set_viewport_size({"width": NARROW, "height": 900})
    assert list(violations(page)) == []


@pytest.mark.parametrize("name", TITLES)
def test_the_pages_that_a_view_leads_to_are_like_it(busy_page_at: Tabs, name: str) -> None:
    page = busy_page_at(path_of(name), "dark", NARROW)

    for path in _kinds_of_links(page):
        page.goto(path)
        _open_everything(page)
        assert list(violations(page)) == [], path
        assert overflow(page) == [], path


@pytest.mark.parametrize("name", TITLES)
def test_a_view_of_an_account_in_which_nothing_has_happened_says_what_to_do(page_at: Tabs, name: str) -> None:
    page = page_at(path_of(name))

    expect(page.locator("h1")).to_have_text(TITLES[name])
    assert list(violations(page)) == []
    assert overflow(page) == []


def test_what_can_be_pressed_is_large_enough_for_a_finger(busy_page_at: Tabs) -> None:
    page = busy_page_at("/ui", width=NARROW)

    small: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("main button, main input:not([type=hidden], [type=checkbox]), nav a")]
          .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 43.5)
          .map((one) => one.outerHTML)"""
    )
    assert small == []


def _kinds_of_links(page: Page) -> list[str]:
    """One address of each kind: those that differ by an id or a name look alike. Of the tools it is Grep, whose form
    has fields of most kinds."""
    links: list[str] = page.evaluate("[...document.querySelectorAll('main a[href^=\"/ui/\"]')].map((one) => one.href)")
    links.reverse()  # the newest record stands for its kind
    links.sort(key=lambda link: link.endswith("/tool/Grep"))
    return list({re.sub(r"[0-9a-f]{8,}|=[^&]*|(?<=/catalog/tool/).*", "", link): link for link in links}.values())


def _open_everything(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
