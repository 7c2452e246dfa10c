"""The MCP Apps as clients see them: two tools and two documents for those that render them, nothing for others."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client import advertise
from mcp.shared.exceptions import MCPError

from goat_mcp.calls.approvals.record import Approval, Kind, Request, Verdict
from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.core.rights import LOCAL
from goat_mcp.server.apps.apps import HTML_META_KEY
from goat_mcp.server.caller_identity import APP_MIME_TYPE, APPS_EXTENSION
from goat_mcp.state.directory import StateDirectory
from tests.server.test_adapter import connected, gateway

pytestmark = pytest.mark.anyio
both_eras = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
APPS = {"show_approvals": "ui://goat/approvals", "show_catalog": "ui://goat/catalog"}


@asynccontextmanager
async def host(folder: Path, mode: str = "2026-07-28", **settings: Any) -> AsyncGenerator[Client]:
    """A client that renders MCP Apps."""
    shows = advertise(APPS_EXTENSION, {"mimeTypes": [APP_MIME_TYPE]})
    async with connected(gateway(folder, **settings), mode, extensions=[shows]) as client:
        yield client


def waiting(folder: Path, principal: str = LOCAL, **fields: Any) -> Approval:
    """A call in the queue."""
    given: dict[str, Any] = {
        "subject": "hash",
        "title": "Bash: rm -rf build",
        "tool": "Bash",
        "client": "editor 1.0",
        "arguments": (("command", "rm -rf build"),),
        "risk": "critical",
        "why": ("runs a command",),
        "asked_by": "mode default",
        **fields,
    }
    request = Request(kind=Kind.CALL, principal=principal, **given)
    return ApprovalStore(StateDirectory(folder / "state")).add(request)


@both_eras
async def test_a_client_that_renders_apps_is_offered_two_tools_more_and_all_others_the_same_list(
    tmp_path: Path, mode: str
) -> None:
    async with connected(gateway(tmp_path), mode) as client:
        plain = [tool.model_dump() for tool in (await client.list_tools()).tools]
        plain_uris = [str(one.uri) for one in (await client.list_resources()).resources]
    async with host(tmp_path, mode) as client:
        tools = (await client.list_tools()).tools
        resources = (await client.list_resources()).resources

    offered = [tool.model_dump() for tool in tools]
    added = [tool for tool in offered if tool not in plain]
    assert [tool for tool in offered if tool not in added] == plain
    assert {tool["name"]: tool["meta"]["ui"]["resourceUri"] for tool in added} == APPS
    assert all(tool["annotations"]["read_only_hint"] for tool in added)
    assert {str(one.uri) for one in resources} - set(plain_uris) == set(APPS.values())
    assert {one.mime_type for one in resources if str(one.uri) in APPS.values()} == {APP_MIME_TYPE}


@both_eras
async def test_a_document_names_no_domain_and_holds_nobodys_data(tmp_path: Path, mode: str) -> None:
    waiting(tmp_path)
    async with host(tmp_path, mode) as client:
        for tool, uri in APPS.items():
            (content,) = (await client.read_resource(uri)).contents
            html = getattr(content, "text", "")

            assert content.mime_type == APP_MIME_TYPE
            assert content.meta == {
                "ui": {
                    "csp": {"connectDomains": [], "resourceDomains": [], "frameDomains": [], "baseUriDomains": []},
                    "prefersBorder": True,
                }
            }
            assert html.startswith("<!doctype html>") and f'data-tool="{tool}"' in html
            assert "rm -rf" not in html
            assert not any(sign in html for sign in ("http://", "https://", " src=", "<link", "@import"))


@both_eras
async def test_other_clients_can_neither_call_the_tools_nor_read_the_documents(tmp_path: Path, mode: str) -> None:
    waiting(tmp_path)
    async with connected(gateway(tmp_path), mode) as client:
        answers = [await client.call_tool(tool, {}) for tool in APPS]
        for uri in APPS.values():
            with pytest.raises(MCPError):
                await client.read_resource(uri)

    for answer in answers:
        assert answer.is_error and "clients that render MCP Apps" in str(answer.content)
        assert "rm -rf" not in str(answer)


@both_eras
async def test_what_waits_is_told_in_full_as_text_as_data_and_as_html(tmp_path: Path, mode: str) -> None:
    record = waiting(tmp_path, diff="--- a\n+++ a\n@@ -1 +1 @@\n-old\n+new")
    async with host(tmp_path, mode) as client:
        answer = await client.call_tool("show_approvals", {})

    text = answer.content[0].text if answer.content[0].type == "text" else ""
    data, html = _data(answer), (answer.meta or {})[HTML_META_KEY]
    said = ("Allow Bash? (mode default)", "rm -rf build", "critical: runs a command", "editor 1.0", "+new")
    assert all(part in text and part in str(data) and part in html for part in said)
    assert f"goat-mcp approve {record.short_id}" in text and f"goat-mcp approve {record.short_id}" in html
    assert [one["id"] for one in data["waiting"]] == [record.short_id]


async def test_R_HTTP_3b_nobody_is_shown_the_records_of_another_principal(tmp_path: Path) -> None:
    waiting(tmp_path, "somebody else", arguments=(("command", "secret-of-another"),))
    async with host(tmp_path) as client:
        answer = await client.call_tool("show_approvals", {})

    assert "secret-of-another" not in str(answer)
    assert _data(answer)["waiting"] == []


async def test_R_PERM_6_no_argument_of_the_tools_decides_anything(tmp_path: Path) -> None:
    record = waiting(tmp_path)
    async with host(tmp_path) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        tried = await client.call_tool("show_approvals", {"approve": record.id})

    assert all(not tools[name].input_schema.get("properties") for name in APPS)
    assert tried.is_error
    assert ApprovalStore(StateDirectory(tmp_path / "state")).find(record.id).status == "waiting"


async def test_a_decision_is_shown_with_who_took_it(tmp_path: Path) -> None:
    record = waiting(tmp_path)
    store = ApprovalStore(StateDirectory(tmp_path / "state"))
    store.decide(record.id, Verdict(approved=False, reason="not on a Friday"), "terminal")
    async with host(tmp_path) as client:
        answer = await client.call_tool("show_approvals", {})

    (decided,) = _data(answer)["decided"]
    assert decided["outcome"].startswith("denied by terminal") and "not on a Friday" in decided["outcome"]
    assert "Nothing waits" in str(answer.content)


async def test_a_call_that_waits_names_the_tool_that_shows_it_to_hosts_alone(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"approval": {"by": "elicit", "wait_s": 0}}
    call: dict[str, Any] = {"file_path": str(tmp_path / "new.txt"), "content": "new"}
    async with host(tmp_path, **settings) as client:
        pending = str((await client.call_tool("Write", call)).content)
        shown = _data(await client.call_tool("show_approvals", {}))
    async with connected(gateway(tmp_path, **settings), "2026-07-28") as client:
        elsewhere = str((await client.call_tool("Write", call)).content)

    assert "E_APPROVAL_PENDING" in pending and "show_approvals shows it" in pending
    assert [one["headline"] for one in shown["waiting"]] == ["Allow Write? (mode default)"]
    assert "E_APPROVAL_PENDING" in elsewhere and "show_approvals" not in elsewhere


async def test_text_of_others_is_escaped_in_the_html(tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>\u202e"
    waiting(tmp_path, title=evil, tool=evil, client=evil, arguments=((evil, evil),), diff=evil, risk=evil, why=(evil,))
    async with host(tmp_path) as client:
        html = ((await client.call_tool("show_approvals", {})).meta or {})[HTML_META_KEY]

    assert "<img" not in html and "&lt;img" in html
    assert "\u202e" not in html


async def test_the_catalog_is_what_this_client_sees_with_its_cost(tmp_path: Path) -> None:
    async with host(tmp_path, catalog={"deny": ["Bash"]}) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        answer = await client.call_tool("show_catalog", {})

    data = _data(answer)
    assert [row["name"] for server in data["servers"] for row in server["tools"]] == listed
    assert data["tokens"] == sum(row["tokens"] for server in data["servers"] for row in server["tools"]) > 1000
    assert "Bash" not in listed and "Read" in (answer.meta or {})[HTML_META_KEY]


async def test_the_operator_can_turn_the_apps_off(tmp_path: Path) -> None:
    async with host(tmp_path, catalog={"deny": ["toolset:apps"]}) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]

    assert not set(APPS) & set(listed)


def _data(answer: Any) -> dict[str, Any]:
    return answer.structured_content
