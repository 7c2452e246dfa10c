"""ListMcpResources: what a model sees of what servers list."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.resources import ServerResources
from goat_mcp.core.result import ToolResult
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.spill import SpillFiles
from goat_mcp.tools.list_mcp_resources import ALL_WAIT_S, ListMcpResources
from tests.tools.mcp_resources_double import FakeResources

pytestmark = pytest.mark.anyio

INTRO = {"uri": "docs://intro", "name": "Introduction", "mimeType": "text/markdown", "size": 12}
BARE = {"uri": "docs://bare"}
PAGE = {"uriTemplate": "docs://page/{number}", "name": "A page"}
DOCS = ServerResources("docs", (INTRO, BARE), (PAGE,))


async def listing(
    fake: FakeResources, folder: Path, server: str | None = None, *, max_chars: int = 30_000, **ctx: Any
) -> ToolResult:
    tool = ListMcpResources(lambda rights: fake, SpillFiles(StateDirectory(folder / "state")), max_chars)
    arguments = {} if server is None else {"server": server}
    return await tool.execute(tool.validate(arguments), ToolContext(call_id="t", **ctx))


def many(server: str, count: int) -> ServerResources:
    return ServerResources(server, tuple({"uri": f"{server}://{number}", "name": "n"} for number in range(count)))


async def test_each_resource_is_a_line_and_templates_are_marked(tmp_path: Path) -> None:
    result = await listing(FakeResources([DOCS, many("other", 1)]), tmp_path)

    assert result.text.split("\n") == [
        "docs\tdocs://intro\tIntroduction\ttext/markdown",
        "docs\tdocs://bare\t\t",
        "docs\tdocs://page/{number}\tA page\t\ttemplate",
        "other\tother://0\tn\t",
    ]


async def test_the_facts_say_the_same_and_take_the_texts_place(tmp_path: Path) -> None:
    slow = ServerResources("slow", problem="it did not answer")

    sent = (await listing(FakeResources([DOCS, slow]), tmp_path)).wire()

    assert sent["structuredContent"] == {
        "resources": [
            {"server": "docs", "uri": "docs://intro", "name": "Introduction", "mimeType": "text/markdown"},
            {"server": "docs", "uri": "docs://bare", "name": "", "mimeType": ""},
            {"server": "docs", "uriTemplate": "docs://page/{number}", "name": "A page", "mimeType": ""},
        ],
        "notices": ["slow: it did not answer"],
    }


async def test_a_server_that_fails_is_a_notice_after_the_lines_of_the_others(tmp_path: Path) -> None:
    broken = ServerResources("broken", problem="upstream broken is down: exit 4")

    result = await listing(FakeResources([broken, many("fine", 1)]), tmp_path)

    assert result.text == "fine\tfine://0\tn\t\n[broken: upstream broken is down: exit 4]"
    assert not result.is_error


async def test_nothing_found_is_an_answer(tmp_path: Path) -> None:
    result = await listing(FakeResources([ServerResources("plain")]), tmp_path)

    assert (result.text, result.is_error, result.facts) == ("No resources found", False, {"resources": []})


async def test_one_server_is_asked_alone_and_has_the_whole_time_of_the_call(tmp_path: Path) -> None:
    fake = FakeResources([DOCS, many("other", 1)])

    one = await listing(fake, tmp_path, "other")
    await listing(fake, tmp_path, "")

    assert one.text == "other\tother://0\tn\t"
    assert fake.asked == [("list", "other"), ("list",)]
    assert 35 < fake.waits_s[0] <= 45 and fake.waits_s[1] <= ALL_WAIT_S


async def test_an_unknown_server_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as caught:
        await listing(FakeResources([DOCS]), tmp_path, "dogs")

    assert caught.value.code is ErrorCode.NOT_FOUND


async def test_names_and_uris_cannot_forge_a_line_or_hide(tmp_path: Path) -> None:
    evil = {"uri": "x://a\nfine\tx://b", "name": "n\t\u202eeman\x1b[2J\ud83d", "mimeType": "text/plain\r\n"}

    result = await listing(FakeResources([ServerResources("evil", (evil,))]), tmp_path)

    assert result.text == ("evil\tx://a\\nfine\\tx://b\tn\\t\\u202eeman\\x1b[2J\\ud83d\ttext/plain\\x0d\\n")
    json.dumps(result.wire(), ensure_ascii=False).encode()


async def test_members_of_another_type_than_text_are_left_out(tmp_path: Path) -> None:
    odd = {"uri": "x://a", "name": ["n"], "mimeType": 7}

    result = await listing(FakeResources([ServerResources("odd", (odd,))]), tmp_path)

    assert result.text == "odd\tx://a\t\t"


async def test_a_long_list_leaves_the_short_ones_whole_and_is_in_a_file_as_a_whole(tmp_path: Path) -> None:
    fake = FakeResources([many("big", 2_000), many("small", 3), many("tiny", 1)])

    result = await listing(fake, tmp_path, max_chars=5_000)

    lines = result.text.split("\n")
    shown = [line for line in lines if line.startswith("big\t")]
    whole = next((tmp_path / "state" / "spill").rglob("mcp-resources-*.txt"))
    assert shown == [f"big\tbig://{number}\tn\t" for number in range(len(shown))] and len(shown) > 20
    assert lines[len(shown) :] == [
        "small\tsmall://0\tn\t",
        "small\tsmall://1\tn\t",
        "small\tsmall://2\tn\t",
        "tiny\ttiny://0\tn\t",
        f"[big: {len(shown)} of 2,000 shown]",
        f"[the whole list is in {whole}, which Read and Grep can open]",
    ]
    assert len(whole.read_text().splitlines()) == 2_004
    assert result.facts is not None
    assert 4_500 < len(json.dumps(result.facts["resources"])) <= 5_000


async def test_hundreds_of_failing_servers_are_counted_rather_than_quoted(tmp_path: Path) -> None:
    fake = FakeResources([ServerResources(f"s{number}", problem="x" * 5_000) for number in range(300)])

    result = await listing(fake, tmp_path)

    assert len(result.text) < 5_000
    assert result.text.endswith("[and 290 more servers with problems]")


async def test_a_client_that_asked_for_progress_hears_that_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str | None] = []

    async def note(done: float, total: float | None = None, message: str | None = None, **_: object) -> None:
        heard.append(message)

    monkeypatch.setattr("goat_mcp.core.heartbeat.HEARTBEAT_S", 0.01)
    await listing(FakeResources([DOCS], takes_s=0.3), tmp_path, wants_progress=True, progress=note)

    assert set(heard) == {"listing MCP resources"}
