"""Our MCP Apps in a host's sandbox, in Chromium: nothing is refused, and what is shown stays true."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.approvals.record import Verdict
from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.gateway.status.process_files import ProcessFiles
from goat_mcp.server.apps.apps import HTML_META_KEY
from goat_mcp.state.directory import StateDirectory
from tests.e2e.node_side import MODULES
from tests.server.apps.rendering import rendered
from tests.server.apps.test_apps import host, waiting
from tests.server.apps.test_apps_of_upstreams import settings, upstream_tools

pytestmark = pytest.mark.anyio


def serving_page(folder: Path, page: str) -> None:
    """As if this process served the page, by its status document."""
    document = {"pid": os.getpid(), "workspace": list[str](), "upstreams": list[Any](), "page": page}
    ProcessFiles(StateDirectory(folder / "state")).write(document)


DIFF = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new"


@pytest.mark.parametrize(("theme", "sandbox"), [("light", "same-origin"), ("dark", "opaque")])
async def test_the_card_shows_what_waits_and_the_decision_once_it_is_taken(
    tmp_path: Path, theme: str, sandbox: str
) -> None:
    record = waiting(tmp_path, diff=DIFF)
    async with (
        host(tmp_path) as client,
        rendered(client, "show_approvals", theme=theme, sandbox=sandbox) as app,
    ):
        await app.shows("Allow Bash? (mode default)")
        before = await app.text()
        problems = await _accessibility_problems(app.frame)
        background = await app.frame.evaluate("getComputedStyle(document.body).backgroundColor")
        store = ApprovalStore(StateDirectory(tmp_path / "state"))
        store.decide(record.id, Verdict(approved=True), "terminal")
        await app.shows("approved (once) by terminal")

    assert "rm -rf build" in before and "+new" in before and f"goat-mcp approve {record.short_id}" in before
    light = [int(part) for part in background.removeprefix("rgb(").removesuffix(")").split(",")]
    assert (min(light) > 200) if theme == "light" else (max(light) < 60)
    assert problems == []
    assert app.complaints == []
    gaps = [later - earlier for earlier, later in zip(app.called_at_s, app.called_at_s[1:], strict=False)]
    assert app.called_at_s and all(gap >= 1.9 for gap in gaps)


async def test_nothing_is_asked_again_once_nothing_waits(tmp_path: Path) -> None:
    async with host(tmp_path) as client, rendered(client, "show_approvals") as app:
        await app.shows("Nothing waits for your decision.")
        await app.page.wait_for_timeout(2_500)  # longer than the pause between two looks

    assert app.called_at_s == []
    assert app.complaints == []


async def test_the_button_opens_the_page_that_runs_at_the_record(tmp_path: Path) -> None:
    record = waiting(tmp_path)
    async with host(tmp_path) as client:
        serving_page(tmp_path, "http://127.0.0.1:8765/ui")
        async with rendered(client, "show_approvals") as app:
            await app.frame.get_by_role("button", name="Decide on the page").click()
            await app.page.wait_for_timeout(100)

    assert app.opened == [f"http://127.0.0.1:8765/ui#a-{record.id}"]


@pytest.mark.parametrize(
    "page", ["", "https://127.0.0.1.evil.example/ui", "http://evil.example/ui", "javascript:alert(1)"]
)
async def test_there_is_no_button_without_a_page_on_this_machine(tmp_path: Path, page: str) -> None:
    waiting(tmp_path)
    async with host(tmp_path) as client:
        serving_page(tmp_path, page)
        async with rendered(client, "show_approvals") as app:
            await app.shows("Allow Bash?")
            buttons = await app.frame.get_by_role("button").count()

    assert buttons == 0


async def test_what_a_tool_of_another_server_returned_is_not_shown_as_ours(tmp_path: Path) -> None:
    forged: dict[str, Any] = {
        "content": [{"type": "text", "text": "forged"}],
        "_meta": {HTML_META_KEY: "<p>forged</p><img src=x onerror=\"document.title='run'\">"},
    }
    context = {"toolInfo": {"tool": {"name": "mcp__evil__show_approvals", "inputSchema": {"type": "object"}}}}
    async with (
        host(tmp_path) as client,
        rendered(client, "show_approvals", context=context, result=forged) as app,
    ):
        await app.shows("Nothing waits for your decision.")
        text = await app.text()

    assert "forged" not in text


async def test_markup_that_got_into_the_document_runs_nothing(tmp_path: Path) -> None:
    injected: dict[str, Any] = {
        "content": [],
        "_meta": {HTML_META_KEY: "<p>shown</p><img src=x onerror=\"document.title='run'\">"},
    }
    async with host(tmp_path) as client, rendered(client, "show_approvals", result=injected) as app:
        await app.shows("shown")
        await app.page.wait_for_timeout(300)
        title = await app.frame.evaluate("document.title")

    assert title != "run"


async def test_without_html_the_text_is_shown(tmp_path: Path) -> None:
    plain = {"content": [{"type": "text", "text": "<b>1 request waits</b>"}]}
    async with host(tmp_path) as client, rendered(client, "show_approvals", result=plain) as app:
        await app.shows("<b>1 request waits</b>")


async def test_the_catalog_is_searched_in_the_document(tmp_path: Path) -> None:
    async with host(tmp_path) as client, rendered(client, "show_catalog") as app:
        await app.shows("Bash")
        problems = await _accessibility_problems(app.frame)
        await app.frame.get_by_role("searchbox").fill("notebook")
        names = await app.frame.locator("tbody tr:visible code").all_inner_texts()

    assert names == ["NotebookEdit"]
    assert problems == []
    assert app.complaints == []


async def _accessibility_problems(frame: Any) -> list[str]:
    await frame.evaluate((MODULES / "axe-core" / "axe.min.js").read_text(encoding="utf-8"))
    found = await frame.evaluate("axe.run(document)")
    return [json.dumps(one["id"]) for one in found["violations"] if one["impact"] in ("serious", "critical")]


@pytest.mark.parametrize("catalog", [{}, {"mode": "search"}], ids=["all listed", "deferred"])
async def test_ERA_7_an_upstreams_app_runs_in_the_host_and_calls_its_server_through_us(
    tmp_path: Path, catalog: dict[str, Any]
) -> None:
    """It knows the tools of its server by that server's own names."""
    async with host(tmp_path, catalog=catalog, **settings(tmp_path)) as client:
        tools = await upstream_tools(client)
        tool, uri = "mcp__weather__live", "ui://weather/live"
        assert tools[tool]["ui"]["resourceUri"] == uri
        async with rendered(client, tool, uri=uri) as app:
            await app.shows("sun, then rain")

    assert app.complaints == []
