"""What runs, in the view Now, and its button that ends it."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.gateway.approvals.viewer import THE_OWNER
from goat_mcp.gateway.status.process_files import ProcessFiles
from goat_mcp.gateway.status.requests import RequestKind
from goat_mcp.server.ui.process_requests import answers_to
from goat_mcp.server.ui.running import running_data
from goat_mcp.state.directory import StateDirectory
from tests.gateway.status.test_running_work import serving, until
from tests.server.ui.open_page import open_page, page_parts, request_for
from tests.server.ui.test_now import added, words

pytestmark = pytest.mark.anyio


def a_call(**changes: Any) -> dict[str, Any]:
    return {
        "kind": "call",
        "id": "0123456789abcdef",
        "tool": "mcp__lab__<b>measure</b>",
        "title": "",
        "client": "editor 1.2",
        "principal": "local",
        "started_s": time.time() - 75,
        "progress": {"done": 3, "total": 12, "message": "probe \u202e4"},
        **changes,
    }


def publish(state: Path, *running: dict[str, Any]) -> ProcessFiles:
    files = ProcessFiles(StateDirectory(state))
    document = {"pid": os.getpid(), "transport": "stdio", "workspace": ["/work"], "running": list(running)}
    files.write(document)
    return files


async def test_a_call_that_runs_is_shown_with_who_called_how_far_it_is_and_a_button(tmp_path: Path) -> None:
    publish(tmp_path, a_call())
    async with open_page(tmp_path) as page:
        html = (await page.client.get("/ui")).text

    page_text = words(html)
    for part in (
        "mcp__lab__&lt;b&gt;measure&lt;/b&gt;",
        "editor 1.2 (local)",
        "3 of 12",
        f"process {os.getpid()} (stdio",
    ):
        assert part in page_text, part
    assert '<progress value="3" max="12"' in html
    assert "\u202e" not in html and "<b>" not in html
    assert 'action="/ui/running/0123456789abcdef/cancel"' in html


async def test_a_call_that_waits_for_the_owner_is_shown_once(tmp_path: Path) -> None:
    publish(tmp_path, a_call(tool="Bash"))
    async with open_page(tmp_path) as page:
        added(page, request_for(), call_id="0123456789abcdef")

        page_text = words((await page.client.get("/ui")).text)

    assert "Nothing runs for longer than a second" in page_text


async def test_what_an_older_server_publishes_is_no_reason_to_fail(tmp_path: Path) -> None:
    files = ProcessFiles(StateDirectory(tmp_path))
    files.write({"pid": os.getpid(), "running": [{"id": "x"}, 3, None]})

    assert [one["id"] for one in await running_data(page_parts(tmp_path), THE_OWNER)] == ["x"]


async def test_the_button_ends_the_call_in_its_process_and_the_page_says_so(tmp_path: Path) -> None:
    async with serving(tmp_path) as (gateway, files), open_page(gateway.state.path) as page:
        context = ToolContext(call_id="fedcba9876543210", client_name="editor")
        call = asyncio.create_task(gateway.call("Bash", {"command": "sleep 300"}, context))
        await until(files, bool)
        html = ""
        with anyio.fail_after(20):
            while True:  # the record of arguments lags behind
                html = (await page.client.get("/ui")).text
                if "sleep 300" in html:
                    break
                await anyio.sleep(0.05)
        began_s = time.monotonic()
        answer = await page.post("/ui/running/fedcba9876543210/cancel")
        took_s = time.monotonic() - began_s
        result = await call
        after = words((await page.client.get(answer.headers["location"])).text)

    assert "Cancel Bash" in words(html)
    assert (answer.status_code, answer.headers["location"]) == (303, "/ui?id=fedcba9876543210")
    assert took_s < 2
    assert result.error_code == "E_CANCELLED"
    assert "Cancelled. The model reads that you did it." in after


async def test_a_call_that_has_ended_meanwhile_is_said_to_have(tmp_path: Path) -> None:
    async with serving(tmp_path) as (gateway, files), open_page(gateway.state.path) as page:
        await until(files, lambda _: True)
        answer = await page.post("/ui/running/gone/cancel")
        after = words((await page.client.get(answer.headers["location"])).text)

    assert "It had ended before it could be cancelled." in after


async def test_a_process_that_never_answers_holds_nobody_up(tmp_path: Path) -> None:
    publish(tmp_path, a_call())  # this process serves nothing

    answers = await answers_to(page_parts(tmp_path), RequestKind.CANCEL, "x", within_s=0.2)

    assert answers == []
    assert await anyio.to_thread.run_sync(lambda: list((tmp_path / "requests").iterdir())) == []
