"""Lists of what upstreams offer beside tools: order, pages, names, and what is not in them and why."""

from __future__ import annotations

import base64
import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from mcp.shared.exceptions import MCPError

from goat_mcp.core.context import ToolContext
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import INSTRUCTIONS
from goat_mcp.server.handlers.resource_lists import Pages
from tests.server.test_resource_requests import client_of, prompts, serving, templates, uris
from tests.upstreams.fleet import server

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.matrix,
]
WAIT_S = 60


async def text_of(client: Client, tool: str) -> str:
    (block,) = (await client.call_tool(tool)).content
    assert isinstance(block, types.TextContent)
    return block.text


async def until_listed(client: Client, prompt: str) -> list[str]:
    with anyio.fail_after(WAIT_S):
        while prompt not in (listed := await prompts(client)):  # noqa: ASYNC110  # it happens in another process
            await anyio.sleep(0.05)
        return listed


def status_of(served: Gateway, name: str) -> Any:
    return next(status for status in served.upstreams.status() if status.name == name)


# AGG-4
async def test_all_pages_of_an_upstream_are_read_and_an_endless_list_ends(tmp_path: Path) -> None:
    served = serving(tmp_path, {"a": server("shelf.py", "a", "long"), "b": server("shelf.py", "b", "endless")})
    async with client_of(served, "2026-07-28") as client:
        listed, offered = await uris(client), await prompts(client)
        long, endless = status_of(served, "a"), status_of(served, "b")

    assert listed == ["a://one", "a://two", "a://extra0", "b://one", "b://two"]
    assert [name for name in offered if name.startswith("mcp__b__")] == [f"mcp__b__p{step}" for step in range(100)]
    assert (long.reason_code, long.resource_count, long.template_count, long.prompt_count) == ("", 3, 1, 3)
    assert (endless.reason_code, endless.prompt_count) == ("list_truncated", 100)
    assert endless.detail == "prompts: more than 100 pages"


# AGG-4
async def test_pages_of_ours_neither_skip_nor_repeat_and_a_cursor_of_an_older_list_is_refused(tmp_path: Path) -> None:
    served = serving(tmp_path, {"a": server("shelf.py", "a", "many")})
    async with client_of(served, "2026-07-28") as client:
        pages: list[list[str]] = []
        cursor: str | None = None
        while True:
            page = await client.list_resources(cursor=cursor)
            pages.append([str(one.uri) for one in page.resources])
            cursor = page.next_cursor
            if cursor is None:
                break
        old = (await client.list_resources()).next_cursor
        async with client.listen(resources_list_changed=True) as changes:
            await client.call_tool("mcp__a__grow")
            with anyio.fail_after(WAIT_S):
                await anext(changes)
        refused: list[tuple[int, str]] = []
        for bad in (old, "", "AAAA", "not a cursor"):
            with pytest.raises(MCPError) as error:
                await client.list_resources(cursor=bad)
            refused.append((error.value.error.code, error.value.error.message))

    whole = [uri for page in pages for uri in page if not uri.startswith("goat://")]
    assert [len(page) for page in pages] == [1_000, 1_000, 507]
    assert whole == [f"a://{number}" for number in range(2_500)]
    assert refused == [(-32602, "this cursor is of another list: list resources from the start")] * 4


# AGG-5
async def test_lists_are_equal_byte_for_byte_whoever_starts_first(tmp_path: Path) -> None:
    lists: list[str] = []
    for number, slow in enumerate([{"b"}, {"a", "c"}]):
        folder = tmp_path / str(number)
        folder.mkdir()
        entries = {name: server("shelf.py", name, *(["slow"] if name in slow else [])) for name in "bac"}
        async with client_of(serving(folder, entries), "legacy") as client:
            for _ in range(2):
                answers = [
                    await client.list_resources(),
                    await client.list_resource_templates(),
                    await client.list_prompts(),
                ]
                lists.append(json.dumps([one.model_dump(mode="json", by_alias=True) for one in answers]))

    assert lists[0].index("b://one") < lists[0].index("a://one") < lists[0].index("c://one")
    assert len(set(lists)) == 1


# AGG-3
async def test_capabilities_and_instructions_are_the_same_whatever_is_up(tmp_path: Path) -> None:
    seen: list[tuple[Any, str | None]] = []
    for number, entries in enumerate([{}, {"a": server("shelf.py", "a")}, {"a": {"command": "/nowhere/at/all"}}]):
        folder = tmp_path / str(number)
        folder.mkdir()
        for mode in ("legacy", "auto"):
            async with client_of(serving(folder, entries), mode) as client:
                told = client.server_capabilities.model_dump(by_alias=True, exclude_none=True)
                seen.append((told, client.instructions))

    told = {
        "completions": {},
        "prompts": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "tools": {"listChanged": True},
    }
    by_handshake = {**told, "logging": {}}
    assert all(instructions == INSTRUCTIONS for _, instructions in seen) and len(INSTRUCTIONS) <= 2_000
    assert [capabilities for capabilities, _ in seen[::2]] == [by_handshake] * 3
    assert [{key: value for key, value in capabilities.items() if key in told} for capabilities, _ in seen] == (
        [told] * 6
    )


# COL-1, COL-2, NAM-2, NAM-3, NAM-4, NAM-5
async def test_of_two_prompts_with_one_name_the_first_is_shown_and_status_names_both(tmp_path: Path) -> None:
    entries = {
        "a": server("shelf.py", "a", naming="flat"),
        "b": server("shelf.py", "b", naming="flat"),
        "c": server("shelf.py", "c", "twice", naming="cc"),
    }
    async with client_of(serving(tmp_path, entries), "legacy") as client:
        await prompts(client)
    # All are known now: the first in the file has the name, not the first to start.
    served = serving(tmp_path, entries)
    async with client_of(served, "legacy") as client:
        listed = await prompts(client)
        (message,) = (await client.get_prompt("cc__greet", {"who": "you"})).messages
        await client.call_tool("cc__grow")
        await until_listed(client, "cc__extra0")
        after = await prompts(client)
        with anyio.fail_after(WAIT_S):
            while not status_of(served, "c").rejected:  # noqa: ASYNC110  # as above
                await anyio.sleep(0.05)
        a, b, c = (status_of(served, name) for name in "abc")

    assert isinstance(message.content, types.TextContent) and message.content.text == "Hello you"
    first = {name for name in listed if name.startswith("all_kinds_")}
    assert listed[0] == "greet" and listed.count("greet") == 1
    assert len(first) == 2, "cleaned names carry a hash of their server"
    assert after == [*listed, "cc__extra0"]
    assert (a.collisions, c.collisions) == ((), ())
    assert [line for line in b.collisions if "greet" in line] == [
        "greet is kept by upstream:a; give upstream:b another `naming` (qualified, or an alias) "
        "so that its greet is visible"
    ]
    assert [(one.kind, one.name, one.reason) for one in c.rejected] == [
        ("prompt", "greet", "it is listed twice; the first one is used"),
    ]


# COL-2
async def test_a_name_that_is_live_stays_with_its_upstream(tmp_path: Path) -> None:
    entries = {"b": server("shelf.py", "b", naming="bb"), "a": server("shelf.py", "a", naming="flat")}
    # Of its tools none, or whoever lists first would have `grow`.
    entries |= {"z": server("shelf.py", "z", "long", naming="flat", enabled_tools=["lists"])}
    served = serving(tmp_path, entries)
    async with client_of(served, "legacy") as client:
        before = await prompts(client)
        await client.call_tool("grow")  # of a, which stands before z and wants z's name
        with anyio.fail_after(WAIT_S):
            while not any("extra0" in line for line in status_of(served, "a").collisions):  # noqa: ASYNC110  # as above
                await anyio.sleep(0.05)
        after = await prompts(client)

    assert before == after and after.count("extra0") == 1
    assert served.upstreams.offers.snapshot.prompts["extra0"][0] == "upstream:z"


# NAM-6, COL-1
async def test_a_uri_of_two_upstreams_is_told_with_the_way_to_both(tmp_path: Path) -> None:
    served = serving(tmp_path, {"a": server("shelf.py", "a", "shared"), "b": server("shelf.py", "goat", "shared")})
    async with client_of(served, "legacy") as client:
        listed, patterns = await uris(client), await templates(client)
        status = status_of(served, "b")
        other = await served.call(
            "ReadMcpResource", {"server": "b", "uri": "shared://everyone"}, ToolContext(call_id="c")
        )

    kept, shadowed = ("a", "b") if "kept by upstream:a" in str(status.collisions) else ("b", "a")
    told = status_of(served, shadowed).collisions
    assert [line for line in told if "shared" in line] == [
        f"shared://everyone is kept by upstream:{kept}; "
        f"ReadMcpResource with the server named reads that of upstream:{shadowed}"
    ]
    assert listed.count("shared://everyone") == 1 and patterns == ["a://page/{number}"]
    assert "of goat" in other.text
    assert [(one.kind, one.name, str(one.reason_code)) for one in status.rejected] == [
        ("resource", "goat://one", "name_collision"),
        ("resource", "goat://two", "name_collision"),
        ("template", "goat://page/{number}", "name_collision"),
    ]


# CHG-1
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_flood_of_notices_is_a_list_a_second_and_no_news(tmp_path: Path, mode: str) -> None:
    told: list[str] = []

    async def note(message: Any) -> None:
        told.append(type(message).__name__)

    served = serving(tmp_path, {"a": server("shelf.py", "a")})
    async with client_of(served, mode, message_handler=note) as client:
        await prompts(client)
        await uris(client)
        before = (await text_of(client, "mcp__a__lists")).split()
        began_s = time.monotonic()
        await client.call_tool("mcp__a__flood")
        # A change that is one, so that the end of it can be waited for.
        await client.call_tool("mcp__a__grow")
        await until_listed(client, "mcp__a__extra0")
        after = (await text_of(client, "mcp__a__lists")).split()
        took_s = time.monotonic() - began_s

    for kind in (0, 1):
        relists = int(after[kind]) - int(before[kind])
        assert 1 <= relists <= took_s + 2, "at most one a second"
    if mode == "legacy":
        assert told.count("PromptListChangedNotification") <= 1, "the flood changed nothing"


def _foreign_cursors() -> list[str]:
    digest = "0123456789abcdef"
    starts = ("0", "1", "-1", "1000", "999999999", "", "x", "1.5", "+1", " 1", "٣")
    sealed = [base64.urlsafe_b64encode(f"{digest}.{start}".encode()).decode() for start in starts]
    plain = ["", " ", "0", "1", "-1", "AAAA", "====", "a.b", "null", "undefined", "{}", "[]", "next", "../..", "\x00"]
    return [*sealed, *plain, "é", "\u202e", "cursor" * 1000, "1" * 5000, '{"page":2}']


# AGG-4: also for the list of tools, which has one page.
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_f13_27_cursor_that_is_not_ours_is_refused_by_every_list(tmp_path: Path, mode: str) -> None:
    answers: dict[str, set[int]] = {}
    async with client_of(serving(tmp_path, {"a": server("shelf.py", "a")}), mode) as client:
        lists = {
            "tools": client.list_tools,
            "resources": client.list_resources,
            "templates": client.list_resource_templates,
            "prompts": client.list_prompts,
        }
        for name, list_all in lists.items():
            await list_all()  # what is listed once is at hand
            for cursor in _foreign_cursors():
                with pytest.raises(MCPError) as refused:
                    await list_all(cursor=cursor)
                answers.setdefault(name, set()).add(refused.value.error.code)
            await list_all()

    assert len(_foreign_cursors()) >= 30
    assert answers == {name: {-32602} for name in lists}


def entries(count: int) -> list[dict[str, Any]]:
    return [{"uri": f"x://{number}"} for number in range(count)]


def all_pages(pages: Pages, listed: list[dict[str, Any]]) -> list[list[Any]]:
    found: list[list[Any]] = []
    cursor: str | None = None
    while True:
        page, cursor = pages.page(listed, cursor)
        found.append(list(page))
        if cursor is None:
            return found


@given(st.integers(0, 40), st.integers(1, 10))
def test_the_pages_together_are_the_list(count: int, page_size: int) -> None:
    listed = entries(count)

    found = all_pages(Pages("resources", page_size), listed)

    assert [one for page in found for one in page] == listed
    assert len(found) == max(1, -(-count // page_size))


@pytest.mark.parametrize("change", ["one more", "one less", "another order"])
def test_a_cursor_of_the_list_as_it_was_is_refused_and_says_what_to_do(change: str) -> None:
    pages, before = Pages("resources", 2), entries(5)
    _, cursor = pages.page(before, None)
    after = {"one more": entries(6), "one less": entries(4), "another order": before[::-1]}[change]

    with pytest.raises(MCPError) as refused:
        pages.page(after, cursor)

    assert cursor is not None
    assert refused.value.error.code == -32602
    assert refused.value.error.message == "this cursor is of another list: list resources from the start"


def test_a_cursor_outlives_the_process_that_gave_it() -> None:
    listed = entries(5)
    _, cursor = Pages("resources", 2).page(listed, None)

    page, _ = Pages("resources", 2).page(list(listed), cursor)

    assert list(page) == listed[2:4]


@pytest.mark.parametrize("cursor", ["", "2", "AAAA", "é", "YWJjLjI=", "\ud800"])
def test_what_is_no_cursor_of_ours_is_refused(cursor: str) -> None:
    with pytest.raises(MCPError):
        Pages("resources", 2).page(entries(5), cursor)


@pytest.mark.parametrize("start", [-4, -2, 0, 1, 3, 5, 6, 8, 10**9])
def test_a_cursor_that_we_never_gave_out_is_refused_though_it_names_the_list(start: int) -> None:
    pages, listed = Pages("resources", 2), entries(5)
    _, cursor = pages.page(listed, None)
    assert cursor is not None
    digest = urlsafe_b64decode(cursor).decode().partition(".")[0]

    with pytest.raises(MCPError):
        pages.page(listed, urlsafe_b64encode(f"{digest}.{start}".encode()).decode())
