"""Upstreams' resources, prompts and completions as clients of both eras see them, from real upstream processes."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partialmethod
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    GetPromptRequest,
    GetPromptRequestParams,
    GetPromptResult,
    PromptReference,
    ResourceTemplateReference,
)

from goat_mcp.core.context import ToolContext
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.upstreams.upstreams import Upstreams
from tests.server.handlers.test_resources import connected, gateway
from tests.upstreams.fleet import server, warm

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")]
both_eras = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
START_S = 60


def serving(folder: Path, entries: dict[str, Any], **settings: Any) -> Gateway:
    file = folder / "upstreams.json"
    file.write_text(json.dumps({"mcpServers": entries}))
    return gateway(folder, upstreams=[file], **settings)


@asynccontextmanager
async def client_of(served: Gateway, mode: str, **options: Any) -> AsyncGenerator[Client]:
    """A client of a gateway that has seen all its upstreams."""
    async with connected(served, mode, **options) as client:
        await served.upstreams.all_offers(START_S)
        yield client


async def uris(client: Client) -> list[str]:
    listed = [str(found.uri) for found in (await client.list_resources()).resources]
    return [uri for uri in listed if not uri.startswith("goat://")]


async def templates(client: Client) -> list[str]:
    listed = [found.uri_template for found in (await client.list_resource_templates()).resource_templates]
    return [template for template in listed if not template.startswith("goat://")]


async def prompts(client: Client) -> list[str]:
    return [found.name for found in (await client.list_prompts()).prompts]


def wire(result: Any) -> dict[str, Any]:
    """An answer as it travelled, without what belongs to the hop."""
    tree = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    tree.get("_meta", {}).pop("io.modelcontextprotocol/serverInfo", None)
    return {key: value for key, value in tree.items() if key not in ("resultType", "ttlMs", "cacheScope") and value}


# AGG-1, AGG-5
@both_eras
async def test_what_upstreams_offer_stands_in_one_list_in_config_order(tmp_path: Path, mode: str) -> None:
    entries = {"b": server("shelf.py", "b"), "a": server("shelf.py", "a")}
    async with client_of(serving(tmp_path, entries), mode) as client:
        listed = (await uris(client), await templates(client), await prompts(client))
        first = str((await client.list_resources()).resources[0].uri)

    assert listed == (
        ["b://one", "b://two", "a://one", "a://two"],
        ["b://page/{number}", "a://page/{number}"],
        ["mcp__b__greet", "mcp__b__all_kinds_cda14841", "mcp__a__greet", "mcp__a__all_kinds_c04986d1"],
    )
    assert first == "goat://todos"


# AGG-2
@both_eras
async def test_completions_go_to_whoever_owns_the_prompt_or_the_template(tmp_path: Path, mode: str) -> None:
    entries = {
        "a": server("shelf.py", "a"),
        "mute": server("shelf.py", "m", "mute"),
        "boasting": server("shelf.py", "n", "boasting"),
    }
    argument = {"name": "who", "value": "B"}
    async with client_of(serving(tmp_path, entries), mode) as client:
        of_prompt = await client.complete(PromptReference(name="mcp__a__greet"), argument, {"k": "v"})
        of_template = await client.complete(ResourceTemplateReference(uri="a://page/{number}"), argument)
        of_mute = await client.complete(PromptReference(name="mcp__mute__greet"), argument)
        of_boasting = await client.complete(PromptReference(name="mcp__boasting__greet"), argument)
        of_ours = await client.complete(ResourceTemplateReference(uri="goat://tasks/{id}"), argument)
        refused: list[int] = []
        for unknown in (PromptReference(name="mcp__a__none"), ResourceTemplateReference(uri="z://{z}")):
            with pytest.raises(MCPError) as error:
                await client.complete(unknown, argument)
            refused.append(error.value.error.code)

    assert wire(of_prompt) == {"completion": {"values": ["greet:who:B", "k=v"], "total": 7, "hasMore": True}}
    assert of_template.completion.values == ["a://page/{number}:who:B"]
    assert [of.completion.values for of in (of_mute, of_boasting, of_ours)] == [[], [], []]
    assert refused == [-32602, -32602]


# REL-1, REL-2, REL-5
@both_eras
async def test_what_an_upstream_sends_is_what_a_client_gets(tmp_path: Path, mode: str) -> None:
    entries = {"a": server("shelf.py", "a")}
    async with client_of(serving(tmp_path, entries), mode) as client:
        listed = next(wire(one) for one in (await client.list_resources()).resources if str(one.uri) == "a://one")
        read = wire(await client.read_resource("a://page/blob"))
        prompt = wire(await client.get_prompt("mcp__a__all_kinds_c04986d1"))

    assert listed == {
        "uri": "a://one",
        "name": "one",
        "title": "Text one",
        "mimeType": "text/plain",
        "annotations": {"audience": ["user"], "priority": 0.5},
        "icons": [{"src": "https://example.org/i.png"}],
        "_meta": {"vendor/key": [1, {"deep": True}]},
    }
    blob = {"uri": "a://page/blob", "blob": "AAECAw==", "mimeType": "application/octet-stream", "_meta": {"b": 1}}
    assert read == {"contents": [blob], "_meta": {"vendor/answer": 7}}
    assert prompt == {
        "description": "d",
        "messages": [
            {
                "role": "user",
                "content": {"type": "text", "text": "t", "annotations": {"priority": 0.5}, "_meta": {"c": 1}},
            },
            {"role": "assistant", "content": {"type": "image", "data": "AAAA", "mimeType": "image/png"}},
            {"role": "user", "content": {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}},
            {"role": "assistant", "content": {"type": "resource_link", "uri": "a://one", "name": "one"}},
            {
                "role": "user",
                "content": {"type": "resource", "resource": {"uri": "a://hidden", "blob": "AAEC"}},
            },
        ],
        "_meta": {"vendor/answer": [1]},
    }


# FLW-1
async def test_progress_of_a_prompt_reaches_the_client(tmp_path: Path) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    request = GetPromptRequest(params=GetPromptRequestParams(name="mcp__a__odd"))
    async with client_of(serving(tmp_path, {"a": server("shelf.py", "a", "odd")}), "legacy") as client:
        await client.session.send_request(request, GetPromptResult, progress_callback=note)

    assert told[1:-1] == [(1, 2, "half"), (2, 2, "whole")]
    assert [told[0][2], str(told[-1][2])[:20]] == ["mcp__a__odd started", "mcp__a__odd finished"]


# REL-6
@both_eras
async def test_an_upstreams_own_error_keeps_code_message_and_data(tmp_path: Path, mode: str) -> None:
    async with client_of(serving(tmp_path, {"a": server("shelf.py", "a")}), mode) as client:
        with pytest.raises(MCPError) as of_read:
            await client.read_resource("a://page")  # not a page's URI, and yet the template's prefix
        with pytest.raises(MCPError) as of_prompt:
            await client.get_prompt("mcp__a__greet")

    assert of_read.value.error.code == (-32002 if mode == "legacy" else -32602)
    told = of_prompt.value.error
    assert (told.code, told.message, told.data) == (-32602, "who is missing", {"missing": ["who"]})


# PRF-2, AGG-1
@both_eras
@pytest.mark.parametrize("rule", ["mcp__a", "mcp__a__*", "mcp__*"])
async def test_a_denied_server_has_nothing_to_list_read_or_complete(tmp_path: Path, mode: str, rule: str) -> None:
    entries = {"a": server("shelf.py", "a")}
    served = serving(tmp_path, entries, permissions={"deny": [rule]})
    async with client_of(served, mode) as client:
        listed = (await uris(client), await templates(client), await prompts(client))
        refused: list[str] = []
        for ask in (
            client.read_resource("a://one"),
            client.get_prompt("mcp__a__greet", {"who": "x"}),
            client.complete(PromptReference(name="mcp__a__greet"), {"name": "who", "value": ""}),
            client.complete(ResourceTemplateReference(uri="a://page/{number}"), {"name": "number", "value": ""}),
        ):
            with pytest.raises(MCPError) as error:
                await ask
            refused.append(error.value.error.message)

    assert listed == ([], [], [])
    hidden = "prompt mcp__a__greet exists but is not in this client's catalog"
    assert refused == ["resource not found: a://one", hidden, hidden, "no such template: a://page/{number}"]


# AGG-1
async def test_reads_and_prompts_are_on_record_as_calls_are(tmp_path: Path) -> None:
    served = serving(tmp_path, {"a": server("shelf.py", "a")})
    async with client_of(served, "legacy") as client:
        await client.read_resource("a://one")
        await client.get_prompt("mcp__a__greet", {"who": "x"})
        recorded = [json.loads(line) for line in audit_file(tmp_path).read_text().splitlines()]

    assert [(line["event"], line["tool"], line.get("decision")) for line in recorded if "tool" in line] == [
        ("decision", "mcp__a__resources/read", "allow"),
        ("outcome", "mcp__a__resources/read", None),
        ("decision", "mcp__a__greet", "allow"),
        ("outcome", "mcp__a__greet", None),
    ]


def audit_file(folder: Path) -> Path:
    (file,) = (folder / "state").rglob("*.jsonl")
    return file


# NAM-6
async def test_a_uri_is_read_where_it_is_listed_fits_a_template_or_was_given(tmp_path: Path) -> None:
    entries = {"a": server("shelf.py", "a", "shared"), "b": server("shelf.py", "b", "shared")}
    async with client_of(serving(tmp_path, entries), "legacy") as client:
        await uris(client)
    # Both are known now, and the first in the file has the URI that both list.
    served = serving(tmp_path, entries)
    async with client_of(served, "legacy") as client:
        listed = await uris(client)
        shared = wire(await client.read_resource("shared://everyone"))["contents"][0]["text"]
        page = wire(await client.read_resource("b://page/7"))["contents"][0]["text"]
        with pytest.raises(MCPError):
            await client.read_resource("b://hidden")
        await client.call_tool("mcp__b__give")
        given = wire(await client.read_resource("b://hidden"))["contents"][0]["text"]
        with pytest.raises(MCPError):
            await client.read_resource("goat://nothing")
        shadowed = await served.call(
            "ReadMcpResource", {"server": "b", "uri": "shared://everyone"}, ToolContext(call_id="c")
        )

    assert listed.count("shared://everyone") == 1
    assert (shared, page, given) == ("of a", "page 7", "given")
    assert "of b" in shadowed.text


# NAM-6: neither who was read first nor who started first changes the owner, also after a restart.
@both_eras
@pytest.mark.parametrize("slow", ["a", "b", "none"])
async def test_f13_11_takeover_of_a_resource_by_a_later_upstream_fails(
    tmp_path: Path, mode: str, slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However busy the machine is: an upstream that takes longer to be seen for the first time owns nothing yet.
    monkeypatch.setattr(Upstreams, "first_offers", partialmethod(Upstreams.first_offers, 60.0))

    def entry(name: str, *modes: str) -> dict[str, Any]:
        return server("shelf.py", name, *modes, *(("slow",) if slow == name else ()))

    entries = {
        "a": entry("a", "shared"),
        "b": entry("b", "shared"),
        "c": entry("c", "greedy", "also=a://one", "also=b://one", "also=shared://everyone"),
    }
    uris = ("b://one", "c://two", "shared://everyone", "a://one", "b://page/7", "z://unknown")
    found: list[list[str]] = []
    for order in (uris, uris[::-1], uris):
        served = serving(tmp_path, entries)
        async with connected(served, mode) as client:
            texts = {uri: wire(await client.read_resource(uri))["contents"][0]["text"] for uri in order}
            other = await served.call("ReadMcpResource", {"server": "b", "uri": uris[2]}, ToolContext(call_id="c"))
            watched = await served.on_demand.resource_calls().find_owner("b://one", ToolContext(call_id="c"))
            named = await client.complete(
                ResourceTemplateReference(uri="b://page/{number}"), {"name": "n", "value": ""}
            )
        found.append([texts[uri] for uri in uris])

        assert "of b" in other.text
        assert watched == "upstream:b"
        assert named.completion.values == ["b://page/{number}:n:"]

    assert found == [["first", "second", "of a", "first", "page 7", "of c"]] * 3


# LIF-2, ISO-4
@both_eras
async def test_what_was_seen_once_is_listed_while_the_upstream_is_down(tmp_path: Path, mode: str) -> None:
    entries = {"a": server("shelf.py", "a")}
    async with client_of(serving(tmp_path, entries), mode) as client:
        seen = (await uris(client), await templates(client), await prompts(client))

    # The same entry, which finds no program any more.
    served = serving(tmp_path, entries)
    with anyio.fail_after(START_S):
        async with connected(served, mode) as client:
            again = (await uris(client), await templates(client), await prompts(client))
            state = served.upstreams.status()[0].state

    assert again == seen and all(seen)
    assert state == "idle"


# CHG-5
@pytest.mark.parametrize("era", ["stateless", "handshake"])
async def test_a_list_stays_fresh_as_long_as_its_shortest_part_and_is_the_clients_own(tmp_path: Path, era: str) -> None:
    entries = {"a": server("shelf.py", "a"), "b": server("shelf.py", "b")}
    if era == "handshake":
        # One of the two does not say how long: that era knows no such thing.
        tool = {"name": "give", "inputSchema": {"type": "object"}}
        warm(tmp_path, entries, {"b": [tool]}, "2025-11-25")
    async with client_of(serving(tmp_path, entries), "2026-07-28") as client:
        lists = [
            await client.list_resources(),
            await client.list_resource_templates(),
            await client.list_prompts(),
            await client.list_tools(),
        ]

    expected = [5_000, 9_000, 0, 7_000] if era == "stateless" else [0, 0, 0, 0]
    assert [listed.ttl_ms for listed in lists] == expected
    assert {listed.cache_scope for listed in lists} == {"private"}
