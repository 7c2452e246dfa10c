"""What a person is doing in the page stays, whatever changes meanwhile; they read it if the server is gone."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.ui.browser import Tabs
from tests.ui.desk import Desk, new_desk
from tests.ui.seed import asked

pytestmark = pytest.mark.e2e

_LISTEN = """() => new Promise((resolve, reject) => {
  const stream = new EventSource("/ui/events");
  stream.addEventListener("ready", resolve);
  window.changes = 0;
  stream.addEventListener("changed", () => { window.changes += 1; });
  setTimeout(reject, 20000);
})"""
"""Counts the changes that this window hears of."""
_HEARD = """(count) => new Promise((resolve, reject) => {
  const look = () => (window.changes >= count ? resolve() : setTimeout(look, 20));
  setTimeout(reject, 20000);
  look();
})"""


def test_arguments_that_a_person_has_opened_stay_open(desk: Desk, page_at: Tabs) -> None:
    approval = desk.approvals.add(asked("Edit: a.txt", arguments=(("file_path", "a.txt"),), diff="-a\n+b"))
    page = page_at("/ui")
    arguments = page.locator(f"#d-{approval.id}")
    assert not arguments.evaluate("(one) => one.open")
    arguments.locator("summary").click()

    other = desk.approvals.add(asked("Bash: second"))
    page.locator(f"#a-{other.id}").wait_for()

    assert arguments.evaluate("(one) => one.open")
    assert arguments.locator("summary").evaluate("(one) => one === document.activeElement")


def test_a_button_that_is_pressed_while_the_page_changes_still_counts(desk: Desk, page_at: Tabs) -> None:
    approval = desk.approvals.add(asked("Bash: first"))
    page = page_at("/ui")
    page.locator(f"#a-{approval.id}").get_by_role("button", name="Allow once").hover()
    page.mouse.down()
    page.evaluate(_LISTEN)

    for count in (1, 2, 3):  # the page itself has heard of one by then, and would have loaded it
        desk.approvals.add(asked(f"Bash: another {count}"))
        page.evaluate(_HEARD, count)
    page.mouse.up()

    page.wait_for_url(f"**/ui?id={approval.id}")
    expect(page.locator(".notice")).to_contain_text("Approved by page")


def test_what_changes_before_a_page_listens_is_shown(desk: Desk, page_at: Tabs) -> None:
    def add_one_first(route: Route) -> None:
        desk.approvals.add(asked("Bash: late"))
        route.fulfill(content_type="text/event-stream", body="retry: 60000\nevent: ready\ndata: 1\n\n")

    page = page_at.window()
    page.route("**/ui/events", add_one_first)
    page.goto(f"{desk.origin}/ui")

    expect(page.get_by_text("Bash: late")).to_be_visible()


def test_a_page_whose_server_is_gone_says_so(tmp_path: Path, browser: Browser) -> None:
    desk = new_desk(tmp_path / "ada")
    with desk.page():
        tabs = Tabs(browser, desk)
        page = tabs("/ui")

    expect(page.locator("#live")).to_contain_text("The connection is lost")
    expect(page.locator("#live")).to_be_visible()
    tabs.close()
