"""A change that a model made is taken back in the view Calls, in a browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.ui.browser import Tabs, overflow, violations
from tests.ui.desk import Desk

pytestmark = pytest.mark.e2e


def test_a_change_is_undone_from_its_call(desk: Desk, page_at: Tabs) -> None:
    file = desk.workspace / "src" / "greeting.py"
    before = file.read_text()
    with desk.client() as wire:
        wire.text("Read", {"file_path": str(file)})
        wire.text("Edit", {"file_path": str(file), "old_string": "Hello", "new_string": "Welcome"})
        changed = file.read_text()
        page = page_at("/ui/calls")

        page.get_by_role("row").filter(has=page.get_by_text("Edit", exact=True)).get_by_role("link").first.click()
        expect(page.locator("h1")).to_contain_text("Edit")
        assert list(violations(page)) == [] and overflow(page) == []
        page.get_by_role("link", name="Undo").click()
        expect(page.locator(".diff .removed").first).to_contain_text("Welcome")
        assert list(violations(page)) == [] and overflow(page) == []
        shown_only = file.read_text()
        page.get_by_role("button", name="Undo").click()

        expect(page.get_by_role("status").first).to_contain_text("greeting.py")
        expect(page.locator("main")).to_contain_text("Undone: the files are as they were")
        expect(page.get_by_role("link", name="Undo")).to_have_count(0)
    assert "Welcome" in changed and shown_only == changed
    assert file.read_text() == before
