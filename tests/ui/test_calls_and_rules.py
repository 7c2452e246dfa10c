"""The views Calls and Rules in a browser: live, filtered, one call, the check of the record, and rules changed."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from goat_mcp.calls.permissions.remembered import RememberedRules
from goat_mcp.gateway.build.working_directories import scope_of
from goat_mcp.state.private_file import no_warning
from tests.ui.browser import NARROW, Tabs, overflow, violations
from tests.ui.desk import Desk

pytestmark = pytest.mark.e2e

LIVE_MS = 1000
"""Besides what the record for people waits for other calls."""


def test_a_call_comes_into_the_view_by_itself_and_a_half_written_filter_stays(desk: Desk, page_at: Tabs) -> None:
    with desk.client() as wire:
        wire.call("Glob", {"pattern": "*.py"})
        page = page_at("/ui/calls")
        expect(page.get_by_role("cell", name="Glob", exact=True)).to_have_count(1)
        page.get_by_label("Text").fill("half writ")
        wire.call("Grep", {"pattern": "hello"})

        expect(page.get_by_role("cell", name="Grep", exact=True)).to_have_count(1, timeout=LIVE_MS + 500)

        expect(page.get_by_label("Text")).to_have_value("half writ")
        expect(page.get_by_label("Text")).to_be_focused()
        page.get_by_label("Text").fill("")
        page.get_by_label("Tool").fill("Grep")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("tool=Grep"))
        expect(page.locator("tbody tr")).to_have_count(1)


def test_one_call_the_check_of_the_record_and_narrow_screens(desk: Desk, page_at: Tabs) -> None:
    hostile = "<img src=x onerror=alert(1)>\u202e" + "word " * 300
    with desk.client() as wire:
        wire.call("Grep", {"pattern": hostile})
        page = page_at("/ui/calls", width=NARROW)
        page.get_by_role("row").filter(has=page.get_by_text("Grep", exact=True)).get_by_role("link").first.click()
        expect(page.locator("h1")).to_contain_text("Call of Grep")
        expect(page.locator("#main")).to_contain_text("<img src=x onerror=alert(1)>\\u202e")
        assert list(violations(page)) == [] and overflow(page) == []
        page.get_by_role("link", name="check the record").click()

        page.get_by_role("button", name="Check now").click()

        expect(page.locator("article")).to_contain_text("intact: ")
        assert list(violations(page)) == [] and overflow(page) == []


def test_rules_are_tested_added_removed_and_forgotten(desk: Desk, page_at: Tabs) -> None:
    desk.settings("permissions:\n  deny: ['Bash(curl *)']\n")
    remembered = RememberedRules(desk.state, scope_of([desk.workspace]), no_warning)
    remembered.add("local", ["Bash(make)"], str(desk.workspace))
    page = page_at("/ui/rules")

    page.get_by_label("Tool").fill("Bash")
    page.get_by_label("Arguments, as JSON").fill('{"command": "curl https://example.org"}')
    page.get_by_role("button", name="Test").click()
    expect(page.locator("article")).to_contain_text("Bash: denied, by rule Bash(curl *)")
    assert list(violations(page)) == [] and overflow(page) == []

    page.get_by_label("Effect").select_option("ask")
    page.get_by_label("Rule", exact=True).fill("Bash(git push *)")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("status").first).to_contain_text("Asked about each time: commands like `git push *`.")
    expect(page.get_by_role("row").filter(has_text="Bash(git push *)")).to_have_count(1)

    page.get_by_role("button", name="Remove deny Bash(curl *)").click()
    expect(page.get_by_role("status").first).to_contain_text("Taken out: deny Bash(curl *)")
    page.get_by_role("button", name="Forget Bash(make)").click()
    expect(page.get_by_role("status").first).to_contain_text("Forgotten: Bash(make)")
    expect(page.get_by_text("Nothing is remembered.")).to_be_visible()
    assert list(violations(page)) == [] and overflow(page) == []
    assert list(remembered.oldest_first()) == []
    assert "curl" not in (desk.home / ".config" / "goat-mcp" / "goat-mcp.yaml").read_text()
