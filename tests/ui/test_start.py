"""The view Start in a browser: a host is connected and disconnected, the change shown before."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from tests.ui.browser import Tabs
from tests.ui.desk import Desk

pytestmark = pytest.mark.e2e


def test_a_host_is_connected_and_disconnected_from_the_page(desk: Desk, page_at: Tabs) -> None:
    file = desk.home / ".cursor" / "mcp.json"
    before = file.read_bytes()
    page = page_at("/ui/start")
    cursor = page.get_by_role("article", name="Cursor")
    expect(cursor).to_contain_text("not connected")
    expect(cursor).to_contain_text("2 besides goat-mcp")

    cursor.get_by_label("Workspace").fill(str(desk.workspace))
    cursor.get_by_role("button", name="Connect").click()
    expect(page.locator(".diff .added").first).to_be_visible()
    unwritten = file.read_bytes()
    page.get_by_role("button", name="Write it").click()
    expect(page.get_by_role("status").first).to_contain_text("Cursor starts goat-mcp now.")
    expect(cursor).to_contain_text(str(desk.workspace))
    entry = json.loads(file.read_text())["mcpServers"]["goat"]
    cursor.get_by_role("button", name="Disconnect").click()
    page.get_by_role("button", name="Take it out").click()
    expect(cursor).to_contain_text("not connected")

    assert unwritten == before
    assert entry["args"][-2:] == ["--workspace", str(desk.workspace)]
    assert file.read_bytes() == before


def test_a_workspace_that_is_too_wide_is_refused_in_the_page(desk: Desk, page_at: Tabs) -> None:
    page = page_at("/ui/start")
    cursor = page.get_by_role("article", name="Cursor")

    cursor.get_by_label("Workspace").fill(str(desk.home))
    cursor.get_by_role("button", name="Connect").click()

    expect(page.locator("main")).to_contain_text("as the workspace gives the tools everything that is yours")
    page_at.problems.clear()  # the browser notes that it was refused


def test_a_process_that_starts_is_shown_at_once(desk: Desk, page_at: Tabs) -> None:
    page = page_at("/ui/start")
    expect(page.locator("main")).to_contain_text("No goat-mcp runs now.")

    with desk.client():
        expect(page.get_by_role("cell", name=str(desk.workspace))).to_be_visible()
