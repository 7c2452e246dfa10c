"""A real browser: the system's Chromium, driven by Playwright. Nothing is fetched from outside this machine."""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect, sync_playwright

from tests.ui.desk import Desk

Theme = Literal["light", "dark"]
NAMES = ("chromium", "chromium-browser", "google-chrome")
WAIT_MS = 20_000
HEIGHT = 900
WIDE = 1280
NARROW = 360
AXE = Path(__file__).parents[1] / "e2e" / "node" / "node_modules" / "axe-core" / "axe.min.js"
_REPORT_VIOLATIONS = """
addEventListener("securitypolicyviolation", (event) =>
  console.error("Content-Security-Policy: " + event.violatedDirective + " " + event.blockedURI + event.sample));
"""


def find_browser() -> str:
    """Skips the test, saying why, if there is none."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("needs Chromium (no `chromium` on PATH): the page is not tested in a browser here")
    return program


@contextmanager
def running_browser() -> Generator[Browser]:
    """In the thread that starts it no event loop can run meanwhile."""
    program = find_browser()
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


class Tabs:
    """Browsers of one owner, each with one page open. What goes wrong in any of them is in `problems`."""

    def __init__(self, browser: Browser, desk: Desk) -> None:
        self.problems: list[str] = []
        self._browser = browser
        self._desk = desk
        self._contexts: list[BrowserContext] = []

    def __call__(self, view: str = "/ui", theme: Theme = "light", width: int = WIDE) -> Page:
        """A new browser window, logged in, with this view open."""
        page = self.window(theme, width)
        page.goto(self._desk.origin + view)
        page.wait_for_load_state("load")
        return page

    def without_scripts(self, view: str = "/ui") -> Page:
        page = self.window(scripts=False)
        page.goto(self._desk.origin + view)
        return page

    def window(
        self, theme: Theme = "light", width: int = WIDE, *, logged_in: bool = True, scripts: bool = True
    ) -> Page:
        """A window with nothing open, in a browser of its own."""
        if logged_in and self._desk.origin not in self._desk.logins:
            self._desk.logins[self._desk.origin] = self._logged_in()
        context = self._browser.new_context(
            color_scheme=theme,
            viewport={"width": width, "height": HEIGHT},
            storage_state=self._desk.logins[self._desk.origin] if logged_in else None,
            java_script_enabled=scripts,
            locale="en-GB",
            reduced_motion="reduce",
        )
        return self._watched(context)

    def close(self) -> None:
        for context in self._contexts:
            context.close()

    def _logged_in(self) -> Any:
        """What a browser keeps after it has opened the link."""
        page = self.window(logged_in=False)
        page.goto(self._desk.new_link())
        page.wait_for_url(f"{self._desk.origin}/ui")
        return page.context.storage_state()

    def _watched(self, context: BrowserContext) -> Page:
        self._contexts.append(context)
        context.set_default_timeout(WAIT_MS)
        context.add_init_script(_REPORT_VIOLATIONS)
        page = context.new_page()
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.problems.append(f"script: {error}"))
        page.on("request", self._asked)
        return page

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"console: {message.text}")

    def _asked(self, request: Request) -> None:
        if urlsplit(request.url).hostname not in ("127.0.0.1", "localhost", None):
            self.problems.append(f"leaves the machine: {request.url}")


@contextmanager
def checked_tabs(browser: Browser, desk: Desk) -> Generator[Tabs]:
    """A violation of the policy or an error in any of them fails the test."""
    tabs = Tabs(browser, desk)
    try:
        yield tabs
        assert tabs.problems == []
    finally:
        tabs.close()


def overflow(page: Page) -> list[str]:
    """What is wider than the window, so that a person would have to scroll sideways."""
    found: list[str] = page.evaluate(
        """() => document.documentElement.scrollWidth <= innerWidth ? [] :
          [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
            .map((one) => one.outerHTML.slice(0, 120))"""
    )
    return found


def violations(page: Page) -> Iterator[str]:
    """What axe finds that is serious or critical. Playwright evaluates it besides the page's own policy."""
    if not AXE.is_file():
        pytest.skip("needs axe-core of tests/e2e/node (make node)")
    page.evaluate(AXE.read_text("utf-8"))
    results: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    for found in results["violations"]:
        if found["impact"] in ("serious", "critical"):
            places = "; ".join(node["html"][:200] for node in found["nodes"][:3])
            yield f"{found['id']} ({found['impact']}): {found['help']}: {places}"
