"""The gateways that are compared, each in front of the same services, listing them in one way or another."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

import anyio
from mcp import Client
from mcp_types import TextContent

from bench.tasks.services import Services, entries
from bench.tasks.ways import Names
from bench.workbench import FASTMCP_PYTHON, Workbench, free_port, script
from goat_mcp.core.spec import DEFAULT_TOOLSETS

Mode = Literal["direct", "host search", "search", "search again", "code"]
"""`search again`: of one who has used the gateway before, so that it lists what was used most."""
GOAT, FASTMCP = "goat-mcp", "FastMCP"
_GOAT_NAMES = Names(prefixed=False)
_FASTMCP_NAMES = Names(prefixed=True, describe="")
_FASTMCP_CODE = Names(prefixed=True, search="search", describe="get_schema", run="execute", script_argument="code")
_GOAT_CATALOG = {"direct": "full", "host search": "full", "search": "search", "search again": "search", "code": "code"}
_LISTED_WITHIN_S = 60.0


@dataclass(frozen=True)
class Contender:
    """A gateway in one mode."""

    gateway: str
    mode: Mode

    @property
    def names(self) -> Names:
        if self.gateway == GOAT:
            return _GOAT_NAMES
        return _FASTMCP_CODE if self.mode == "code" else _FASTMCP_NAMES


@dataclass(frozen=True)
class Running:
    client: Client
    listed: Sequence[Mapping[str, Any]]


@asynccontextmanager
async def running(contender: Contender, bench: Workbench, services: Services) -> AsyncGenerator[Running]:
    """The gateway, started, and a client of it with its list of tools."""
    # What a gateway remembers of another would change what it lists.
    bench = Workbench(bench.folder(f"{contender.gateway} {contender.mode.removesuffix(' again')}"), bench.quick)
    port = free_port()
    urls = entries(services.urls)
    if contender.gateway == GOAT:
        file = bench.upstreams_file({name: {**entry, "naming": "flat"} for name, entry in urls.items()}, f"goat-{port}")
        # What the servers offer is compared, so our own tools are off; and no answer is cut, for the others cut none.
        ours = json.dumps([f"toolset:{name}" for name in DEFAULT_TOOLSETS if name != "upstream"])
        options = ("--upstreams", str(file), "--set", f"catalog.deny={ours}", "--set", "output.max_chars=1000000")
        catalog = f"catalog.mode={_GOAT_CATALOG[contender.mode]}"
        command = bench.goat_over_http(port, *options, "--set", catalog)
    else:
        file = bench.upstreams_file(urls, f"fastmcp-{port}")
        command = script("fastmcp_proxy", str(port), str(file), contender.mode, python=FASTMCP_PYTHON)
    with bench.http_server(command, port):
        async with Client(
            f"http://127.0.0.1:{port}/mcp", mode="2026-07-28", read_timeout_seconds=_LISTED_WITHIN_S, cache=None
        ) as client:
            listed = await _until_ready(client, contender, services)
            yield Running(client, listed)


async def _until_ready(client: Client, contender: Contender, services: Services) -> Sequence[Mapping[str, Any]]:
    """The list, once all servers behind the gateway have started: starting is not measured here."""
    wanted = {contender.names.tool(services, name) for name in services.server_of}
    with anyio.move_on_after(_LISTED_WITHIN_S):
        while wanted:
            listed = (await client.list_tools()).tools
            if contender.mode in ("direct", "host search"):
                wanted -= {tool.name for tool in listed}
                # The fillers' tools count as well.
                wanted = wanted or ({"all"} if len(listed) < services.tool_count else set[str]())
            else:
                for name in [*wanted]:
                    answer = await client.call_tool(contender.names.search, {"query": name})
                    if any(name in block.text for block in answer.content if isinstance(block, TextContent)):
                        wanted.discard(name)
            if wanted:
                await anyio.sleep(0.5)
    listed = (await client.list_tools()).tools
    return [tool.model_dump(by_alias=True, exclude_none=True) for tool in listed]
