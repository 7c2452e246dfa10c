"""ListMcpResources and ReadMcpResource of a real goat-mcp in front of other servers, for clients of both eras."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters

from tests.e2e.conftest import fill, ours, upstream_file
from tests.e2e.goat import HttpGoat, Launch, connected, http_goat
from tests.e2e.node_side import Node
from tests.e2e.processes import end
from tests.e2e.servers.library import BYTES, png
from tests.free_port import free_port
from tests.quick_start import script_command

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.matrix]

GOOD = Path(__file__).parents[1] / "upstreams" / "servers" / "good.py"
STARTS_WITHIN_S = 60.0
BOTH_ERAS = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])


def listening(command: list[str], port: int, **variables: str) -> subprocess.Popen[str]:
    """A server process, once it takes connections."""
    process = subprocess.Popen(
        command,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    ends_at_s = time.monotonic() + STARTS_WITHIN_S
    while process.poll() is None and time.monotonic() < ends_at_s:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process
        time.sleep(0.05)
    process.kill()
    raise AssertionError(f"{command} does not listen on {port}")


@pytest.fixture(scope="module")
def everything(node: Node) -> StdioServerParameters:
    command = node.server_command("server-everything", "stdio")
    return StdioServerParameters(command=command[0], args=command[1:])


@pytest.fixture(scope="module")
def goat(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Generator[HttpGoat]:
    """In front of servers of both eras over both transports, and of one that hangs."""
    folder = tmp_path_factory.mktemp("goat")
    stdio = node.server_command("server-everything", "stdio")
    node_port, python_port = free_port(), free_port()
    servers = [
        listening(node.server_command("server-everything", "streamableHttp"), node_port, PORT=str(node_port)),
        listening(script_command(GOOD, "http", str(python_port)), python_port),
    ]
    file = upstream_file(
        folder / "upstreams.json",
        everything={"command": stdio[0], "args": stdio[1:]},
        **{"everything over http": {"url": f"http://127.0.0.1:{node_port}/mcp"}},
        stateless={"url": f"http://127.0.0.1:{python_port}/mcp"},
        library=ours("library"),
        hangs=ours("library", "hangs-in-lists"),
        none=ours("library", "none"),
    )
    try:
        # The default mode: neither tool is asked about.
        with http_goat(Launch(folder, fill(folder / "workspace"), ("--upstreams", str(file)))) as goat:
            yield goat
    finally:
        for server in servers:
            end(server)


def stored(block: dict[str, Any]) -> bytes:
    """What is in the file that a text block names."""
    return Path(block["text"].split("stored in ")[1]).read_bytes()


async def rows(goat: HttpGoat, mode: str, **arguments: Any) -> dict[str, Any]:
    async with connected(goat, mode) as client:
        answer = await client.call_tool("ListMcpResources", arguments)
    assert not answer.is_error, answer.content
    found: dict[str, Any] = answer.structured_content or {}
    return found


async def reading(goat: HttpGoat, mode: str, server: str, uri: str) -> tuple[bool, list[dict[str, Any]]]:
    async with connected(goat, mode) as client:
        answer = await client.call_tool("ReadMcpResource", {"server": server, "uri": uri})
    return bool(answer.is_error), [block.model_dump(by_alias=True, exclude_none=True) for block in answer.content]


@BOTH_ERAS
async def test_all_servers_are_listed_and_one_that_hangs_is_a_notice(goat: HttpGoat, mode: str) -> None:
    found = await rows(goat, mode)

    by_server: dict[str, list[str]] = {}
    for row in found["resources"]:
        by_server.setdefault(row["server"], []).append(row.get("uri") or row["uriTemplate"])
    assert list(by_server) == ["everything", "everything over http", "stateless", "library", "hangs"]
    assert by_server["everything"] == by_server["everything over http"]
    assert "demo://resource/static/document/features.md" in by_server["everything"]
    assert by_server["stateless"] == ["good://0", "good://1", "good://2", "good://large/{megabytes}"]
    assert by_server["library"][-2:] == ["lib://evil", "lib://shelf/{number}"]
    assert by_server["hangs"] == ["lib://0"]
    assert [notice.split(":")[0] for notice in found["notices"]] == ["hangs"]


# AGG-6
async def test_server_everything_lists_and_sends_the_same_as_directly(
    goat: HttpGoat, everything: StdioServerParameters
) -> None:
    async with connected(everything, "legacy") as direct:
        listed = (await direct.list_resources()).resources
        templates = (await direct.list_resource_templates()).resource_templates
        texts = {
            str(one.uri): (await direct.read_resource(str(one.uri))).contents[0].model_dump()["text"] for one in listed
        }

    found = await rows(goat, "auto", server="everything")
    read = {uri: await reading(goat, "auto", "everything", uri) for uri in texts}

    assert found["resources"] == [
        *({"server": "everything", "uri": str(o.uri), "name": o.name, "mimeType": o.mime_type or ""} for o in listed),
        *(
            {"server": "everything", "uriTemplate": o.uri_template, "name": o.name, "mimeType": o.mime_type or ""}
            for o in templates
        ),
    ]
    assert read == {uri: (False, [{"type": "text", "text": text}]) for uri, text in texts.items()}


@BOTH_ERAS
@pytest.mark.parametrize("server", ["everything", "everything over http"])
async def test_a_filled_in_template_is_read_over_either_transport(goat: HttpGoat, mode: str, server: str) -> None:
    text = await reading(goat, mode, server, "demo://resource/dynamic/text/7")
    failed, (blob,) = await reading(goat, mode, server, "demo://resource/dynamic/blob/7")

    assert text[1][0]["text"].startswith("Resource 7: This is a plaintext resource")
    assert not failed and not text[0]
    assert stored(blob).startswith(b"Resource 7: This is a base64 blob")


@BOTH_ERAS
async def test_a_stateless_upstream_is_read(goat: HttpGoat, mode: str) -> None:
    assert await reading(goat, mode, "stateless", "good://1") == (False, [{"type": "text", "text": "stateless"}])


@BOTH_ERAS
async def test_texts_images_blobs_and_several_contents(goat: HttpGoat, mode: str) -> None:
    text, image, blob, several = [
        (await reading(goat, mode, "library", f"lib://{name}"))[1] for name in ("text", "image", "blob.dat", "several")
    ]

    assert text == [{"type": "text", "text": "Grüße from the library\n"}]
    assert image == [
        {"type": "text", "text": f"lib://image: image/png, 3 x 2, {len(png(3, 2))} bytes"},
        {"type": "image", "data": base64.b64encode(png(3, 2)).decode(), "mimeType": "image/png"},
    ]
    assert stored(blob[0]) == BYTES
    assert [block.get("text", block["type"]) for block in several] == [
        "lib://several/1 (text/csv):\na,b\n",
        f"lib://several/2: image/png, 1 x 1, {len(png(1, 1))} bytes",
        "image",
    ]


async def test_a_long_text_is_cut_and_the_whole_is_in_a_file_that_grep_can_open(goat: HttpGoat) -> None:
    async with connected(goat, "auto") as client:
        answer = await client.call_tool("ReadMcpResource", {"server": "library", "uri": "lib://large/100000"})
        shown = answer.content[0].model_dump()["text"]
        path = shown.split("the whole is in ")[1].split(",")[0]
        found = await client.call_tool("Grep", {"pattern": "^x{100000}$", "path": path})

    assert len(shown) < 31_000
    assert path in found.content[0].model_dump()["text"]


# FS-48, for the tool: a URI is the upstream's own to answer; this server opens no file for it.
@pytest.mark.parametrize("uri", ["file:///etc/passwd", "lib://tex"])
async def test_an_unknown_uri_gives_no_content_but_the_nearest(goat: HttpGoat, uri: str) -> None:
    failed, blocks = await reading(goat, "auto", "library", uri)

    assert failed and len(blocks) == 1
    assert blocks[0]["text"].startswith(f"upstream library has no resource {uri}: no such resource: {uri}\n")
    assert "root:" not in blocks[0]["text"]
    assert ("Did you mean lib://text" in blocks[0]["text"]) == (uri == "lib://tex")
    assert blocks[0]["text"].endswith("[E_NOT_FOUND]")


async def test_an_unknown_server_is_refused_with_the_names_there_are(goat: HttpGoat) -> None:
    failed, (answer,) = await reading(goat, "auto", "libary", "lib://text")

    assert failed
    assert "Servers are: everything, everything over http, stateless, library, hangs, none." in answer["text"]


async def test_a_server_without_resources_has_none(goat: HttpGoat) -> None:
    async with connected(goat, "auto") as client:
        answer = await client.call_tool("ListMcpResources", {"server": "none"})

    assert [block.model_dump()["text"] for block in answer.content] == ["No resources found"]


@pytest.mark.parametrize("rule", ["ListMcpResourcesTool", "ListMcpResources"])
async def test_rules_know_both_names(tmp_path: Path, rule: str) -> None:
    launch = Launch(tmp_path, fill(tmp_path / "workspace"), ("--set", f'permissions.deny=["{rule}"]'))
    async with connected(launch, "auto") as client:
        denied = await client.call_tool("ListMcpResources", {})
        allowed = await client.call_tool("ReadMcpResource", {"server": "x", "uri": "y"})

    assert "[E_PERMISSION]" in denied.content[0].model_dump()["text"]
    assert "[E_NOT_FOUND]" in allowed.content[0].model_dump()["text"]


@pytest.mark.parametrize("setting", ["permissions.deny", "catalog.deny"])
async def test_a_server_denied_as_a_whole_is_not_read_either(tmp_path: Path, setting: str) -> None:
    file = upstream_file(tmp_path / "upstreams.json", library=ours("library"), other=ours("library"))
    options = ("--upstreams", str(file), "--set", f'{setting}=["mcp__library"]')
    launch = Launch(tmp_path, fill(tmp_path / "workspace"), options)
    async with connected(launch, "auto") as client:
        listed: dict[str, Any] = (await client.call_tool("ListMcpResources", {})).structured_content or {}
        read = await client.call_tool("ReadMcpResource", {"server": "library", "uri": "lib://text"})

    assert {row["server"] for row in listed["resources"]} == {"other"}
    assert listed["notices"][0].startswith("library: is denied by ")
    assert "[E_PERMISSION]" in read.content[0].model_dump()["text"]
