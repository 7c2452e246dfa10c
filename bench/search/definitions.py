"""What the servers list, from the servers themselves or from the last run. It is kept here and never committed."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from bench.search.servers import INSTALLED, Server

_LISTED_WITHIN_S = 90.0
_AT_ONCE = 2


@dataclass(frozen=True)
class Definition:
    """A tool as its server lists it. `label` is how queries name it: `server/tool`."""

    server: str
    entry: Mapping[str, Any]

    @property
    def label(self) -> str:
        return f"{self.server}/{self.entry['name']}"


async def definitions(servers: Mapping[str, Server]) -> Sequence[Definition]:
    """The tools of all servers that can be had, in the order of the servers. The others are reported."""
    found: dict[str, Sequence[Mapping[str, Any]]] = {}
    limiter = anyio.CapacityLimiter(_AT_ONCE)

    async def take(name: str, server: Server) -> None:
        async with limiter:
            try:
                found[name] = await listed(server)
            except Exception as failed:  # whatever a stranger's server does wrong, the others are measured
                print(f"{name}: {_first_cause(failed)}", file=sys.stderr, flush=True)

    async with anyio.create_task_group() as group:
        for name, server in servers.items():
            group.start_soon(take, name, server)
    return [Definition(name, entry) for name in servers for entry in found.get(name, ())]


async def listed(server: Server) -> Sequence[Mapping[str, Any]]:
    """Its tools, as `tools/list` has them. Raises what starting it or asking it raises."""
    kept = INSTALLED / "tools" / f"{server.package.replace('/', '+')}@{server.version}.json"
    if not kept.exists():
        entries = await _ask(server)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(entries))
    return json.loads(kept.read_text())


async def _ask(server: Server) -> Sequence[Mapping[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        args = [one.replace("{home}", folder) for one in server.args]
        env = server.environment(home)
        launch = StdioServerParameters(command=str(server.command), args=args, env=env, cwd=home)
        with (home / "errors").open("w+") as errors, anyio.fail_after(_LISTED_WITHIN_S):
            async with Client(stdio_client(launch, errlog=errors), mode="legacy", cache=None) as client:
                entries: list[Mapping[str, Any]] = []
                cursor: str | None = None
                while True:
                    page = await client.list_tools(cursor=cursor)
                    entries += [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]
                    cursor = page.next_cursor
                    if cursor is None:
                        return entries


def _first_cause(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return _first_cause(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    return f"{type(error).__name__}: {str(error)[:200]}"
