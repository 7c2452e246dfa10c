"""The view Catalog: what there is and what it costs, switches, and the form to try a tool."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.errors import ToolError
from goat_mcp.server.ui.tool_form import Field, arguments_of, fields_of
from goat_mcp.state.directory import config_folder
from tests.server.ui.open_page import OpenPage
from tests.server.ui.test_now import words
from tests.server.ui.test_servers import own_files, page_over, shown
from tests.upstreams.fleet import server

__all__ = ["own_files"]  # a fixture
pytestmark = pytest.mark.anyio

VIEW_S = 0.1
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "a <file>"},
        "count": {"type": ["integer", "null"], "default": 3},
        "mode": {"enum": ["a", "b", 3]},
        "deep": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        "many": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["path"],
}


def test_each_property_has_a_field_that_fits_it() -> None:
    path, count, mode, deep, many = fields_of(SCHEMA)

    assert path == Field("a0", "path", "text", "a <file>", is_required=True)
    assert (count.kind, count.default) == ("number", "3")
    assert mode.choices == (('"a"', "a"), ('"b"', "b"), ("3", "3"))
    assert deep.choices == (("true", "yes"), ("false", "no"))
    assert many.kind == "json"


def test_what_is_filled_in_becomes_arguments_and_what_is_empty_is_left_out() -> None:
    form = {"a0": "x\r\ny", "a1": "", "a2": "3", "a3": "false", "a4": '["p", "q"]', "other": "z"}

    assert arguments_of(SCHEMA, form) == {"path": "x\ny", "mode": 3, "deep": False, "many": ["p", "q"]}
    assert arguments_of(SCHEMA, {}) == {"path": ""}


@pytest.mark.parametrize(
    ("field", "text", "why"), [("a4", "[1,", "many: "), ("a1", "three", "count: "), ("a1", "true", "is no number")]
)
def test_what_cannot_be_read_is_refused_with_the_name_of_the_argument(field: str, text: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        arguments_of(SCHEMA, {field: text})


def test_a_schema_without_named_properties_is_one_json_text() -> None:
    (field,) = fields_of({"type": "object", "additionalProperties": True})

    assert field == Field("arguments", "arguments", "json")
    assert arguments_of({"type": "object", "additionalProperties": True}, {"arguments": '{"a": [1]}'}) == {"a": [1]}
    with pytest.raises(ToolError, match="no JSON object"):
        arguments_of({"type": "object", "additionalProperties": True}, {"arguments": "[1]"})
    assert fields_of({"type": "object"}) == fields_of({"type": "object", "properties": {}}) == []


@pytest.mark.parametrize(
    "schema", [{}, {"properties": 3}, {"properties": {"a": 3}}, {"properties": {"a": {"enum": {}}}}]
)
def test_a_schema_of_a_stranger_breaks_no_page(schema: dict[str, Any]) -> None:
    assert isinstance(fields_of(schema), list)


async def test_tools_are_found_with_what_they_cost_by_server_and_toolset() -> None:
    async with page_over({"raw": server("raw.py")}) as (page, gateway):
        await gateway.upstreams.first_list()
        page_text = words((await page.client.get("/ui/catalog")).text)
        found = words((await page.client.get("/ui/catalog?q=GLOB")).text)
        of_raw = words((await page.client.get("/ui/catalog?server=raw")).text)
        nothing = words((await page.client.get("/ui/catalog?q=zzzzz")).text)

    assert re.search(r"\d+ tools are on: \d+ tokens", page_text)
    assert re.search(r"raw6 of 6\d+ ?Switch off raw", page_text)
    assert re.search(r"network\d of \d\d+ ?Switch off toolset network", page_text)
    assert "Glob" in found and "Bash Runs" not in found
    assert "Tools 6" in of_raw
    assert "No tool is found." in nothing


async def test_a_tool_is_switched_off_and_on_in_the_users_settings() -> None:
    async with page_over({}) as (page, _):
        answer = await page.post("/ui/catalog/switch", name="WebFetch", kind="tool", on="no", back="/ui/catalog?q=web")
        settings = (config_folder() / "goat-mcp.yaml").read_text()
        page_text = words((await page.client.get("/ui/catalog?q=web")).text)
        await page.post("/ui/catalog/switch", name="WebFetch", kind="tool", on="yes", back="https://elsewhere.example")
        after = (config_folder() / "goat-mcp.yaml").read_text()

    assert (answer.status_code, answer.headers["location"]) == (303, "/ui/catalog?q=web")
    assert "WebFetch" in settings and "WebFetch" not in after
    assert "WebFetch is switched off in" in page_text


async def test_after_a_switch_the_page_never_leads_elsewhere() -> None:
    async with page_over({}) as (page, _):
        answer = await page.post(
            "/ui/catalog/switch", name="toolset:network", kind="tool", on="no", back="https://elsewhere.example"
        )

    assert answer.headers["location"] == "/ui/catalog"


async def test_a_server_is_switched_off_and_stays_in_the_list_to_be_switched_on_again() -> None:
    async with page_over({"raw": server("raw.py")}) as (page, _):
        await page.post("/ui/catalog/switch", name="raw", kind="server", on="no")
        page_text = await shown(page, "/ui/catalog", "Switch on raw")

    assert "raw0 of" in page_text


async def tried(page: OpenPage, tool: str, fields: dict[str, str]) -> tuple[str, str]:
    """Where it leads, and what is shown there."""
    answer = await page.post(f"/ui/catalog/tool/{tool}", None, **fields)
    assert answer.status_code == 303, words(answer.text)
    path = answer.headers["location"].partition("#")[0]
    return path, (await page.client.get(path)).text


async def test_a_tool_is_tried_and_its_hostile_result_is_inert(tmp_path: Path) -> None:
    file = tmp_path / "work" / "page.html"
    async with page_over({}) as (page, gateway):
        file.write_text("<script>alert(1)</script>\u202e\n")
        form = (await page.client.get("/ui/catalog/tool/Read")).text
        names = dict(re.findall(r'<label for="(a\d+)">(\w+)', form))
        id = next(field for field, name in names.items() if name == "file_path")
        _, html = await tried(page, "Read", {id: str(file)})
        gateway.audit.close()

    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "<script>alert" not in html and "\u202e" not in html
    assert 'class="badge good">done' in html
    assert f">\n{file}</textarea>" in html


async def test_a_failed_call_shows_the_words_that_models_see() -> None:
    async with page_over({}) as (page, _):
        answer = await page.post("/ui/catalog/tool/Read", a0="/nowhere/at/all.txt")
        html = (await page.client.get(answer.headers["location"].partition("#")[0])).text

    assert 'class="badge bad">failed' in html
    assert re.search(r"\[E_[A-Z_]+\]", html)


async def test_a_tool_that_nobody_has_is_not_found() -> None:
    async with page_over({}) as (page, _):
        shown_answer = await page.client.get("/ui/catalog/tool/Nope")
        run_answer = await page.post("/ui/catalog/tool/Nope")

    assert (shown_answer.status_code, run_answer.status_code) == (404, 404)


async def test_a_call_that_takes_long_is_shown_as_running_and_then_with_its_result() -> None:
    async with page_over({}, mode="bypassPermissions", sandbox="off") as (page, _):
        path, html = await tried(page, "Bash", {"a0": "sleep 2; echo all done now | tr a-z A-Z"})
        running = words(html)
        page_text = await shown(page, path, "ALL DONE NOW")

    assert "It runs since" in running
    assert "It runs since" not in page_text


async def test_a_call_that_a_rule_asks_about_waits_in_the_queue_and_runs_once_it_is_approved() -> None:
    async with page_over({}, sandbox="off", approval={"wait_s": 60}) as (page, gateway):
        path, html = await tried(page, "Bash", {"a0": "echo all done now | tr a-z A-Z"})
        waiting = words(html)
        (approval,) = await page.parts.queue.waiting()
        await page.post(f"/ui/approvals/{approval.id}/approve", scope="once")
        page_text = await shown(page, path, "ALL DONE NOW")
        gateway.audit.close()

    assert "This call waits for you: decide in Now." in waiting
    assert f'href="/ui#a-{approval.id}"' in html
    assert approval.request.client.startswith("goat-mcp page")
    assert "waits for you" not in page_text


async def test_a_denied_call_shows_the_reason_that_models_read() -> None:
    async with page_over({}, sandbox="off", approval={"wait_s": 60}) as (page, _):
        path, _html = await tried(page, "Bash", {"a0": "echo hello"})
        (approval,) = await page.parts.queue.waiting()
        await page.post(f"/ui/approvals/{approval.id}/deny", reason="not on a Friday")
        page_text = await shown(page, path, "not on a Friday")

    assert "failed" in page_text


async def test_with_a_thousand_tools_every_view_answers_within_a_tenth_of_a_second() -> None:
    listed = [
        {
            "name": f"tool_{number}",
            "description": f"Does the thing with the number {number}, and says how it went. " * 3,
            "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "description": "what"}}},
        }
        for number in range(1000)
    ]
    entries = {"many": server("raw.py")}
    async with page_over(entries, stored={"many": listed}) as (page, gateway):
        assert len(gateway.registry.snapshot.tools) >= 1000
        took: dict[str, float] = {}
        for path in ("/ui/catalog", "/ui/catalog?q=number+77", "/ui/servers", "/ui/servers/many", "/ui"):
            assert (await page.client.get(path)).status_code == 200
            times: list[float] = []
            for _ in range(5):
                began_s = time.process_time()  # other programs on the machine do not count
                await page.client.get(path)
                times.append(time.process_time() - began_s)
            took[path] = min(times)

    assert {path: seconds for path, seconds in took.items() if seconds > VIEW_S} == {}
