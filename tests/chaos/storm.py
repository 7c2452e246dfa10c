"""One storm: every bad neighbour is called all the time while a steady series of calls goes to the healthy ones."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent, TextResourceContents

from tests.chaos.neighbourhood import BAD, HEALTHY, HEALTHY_WEB, SILENT
from tests.e2e.open_files import descriptors

BAD_PAUSE_S = 0.4
HEALTHY_PAUSE_S = 0.02
SAMPLE_S = 0.1
SERIES_CALLS = 10
"""What each healthy series has at least, however busy the machine is."""
PATIENCE_S = 240.0
SETTLE_S = 20.0
MIB = 1024 * 1024


def memory_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def text_of(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def status_of(client: Client) -> dict[str, dict[str, Any]]:
    """The upstreams in `goat://status`, by name."""
    (content,) = (await client.read_resource("goat://status")).contents
    assert isinstance(content, TextResourceContents)
    return {entry["name"]: entry for entry in json.loads(content.text)["upstreams"]}


@dataclass
class Storm:
    """What is seen of the goat-mcp with this `pid` through `client`."""

    client: Client
    pid: int
    wrong: list[str] = field(default_factory=list[str])
    """What the healthy ones answered that they should not have."""
    answered: Counter[str] = field(default_factory=Counter[str])
    of_bad_ones: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in BAD})
    """How often each bad one's calls ended in which way."""
    first_bytes: int = 0
    warm_bytes: int = 0
    peak_bytes: int = 0
    """The memory when it began, the most until every bad one had had its turns, and the most since."""
    warm_descriptors: int = 0
    descriptors: int = 0
    _is_warm: bool = False

    async def rage(self, turns: int, for_s: float) -> None:
        """Until every bad one has been bad in so many turns, and as long as said from then on.

        That nobody answers a call is the turn of a silent one: it is not waited for.
        """
        self.first_bytes = memory_bytes(self.pid)
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as group:
                for name in (HEALTHY, HEALTHY_WEB):
                    group.start_soon(self._keep_calling_healthy, name)
                for name in BAD:
                    group.start_soon(self._keep_calling_bad, name)
                group.start_soon(self._keep_sampling)
                loud = [outcomes for name, outcomes in self.of_bad_ones.items() if name not in SILENT]
                await _until(lambda: min(outcomes.total() for outcomes in loud) >= turns)
                self.warm_descriptors = descriptors(self.pid)
                self._is_warm = True
                ends_at_s = time.monotonic() + for_s
                before = {name: self.answered[name] for name in (HEALTHY, HEALTHY_WEB)}
                await _until(lambda: time.monotonic() > ends_at_s)
                await _until(lambda: all(self.answered[name] >= n + SERIES_CALLS for name, n in before.items()))
                self.descriptors = descriptors(self.pid)
                group.cancel_scope.cancel()

    async def left_bytes(self, enough: int) -> int:
        """How much more memory there is than before, once what was under way has ended or time is up."""
        with anyio.move_on_after(SETTLE_S):
            await _until(lambda: memory_bytes(self.pid) - self.first_bytes < enough)
        return memory_bytes(self.pid) - self.first_bytes

    async def _keep_calling_healthy(self, name: str) -> None:
        number = 0
        while True:
            number += 1
            try:
                answer = text_of(await self.client.call_tool(f"mcp__{name}__t", {"number": number}))
            except MCPError as error:
                answer = f"{error}"
            if answer != f"healthy {number}":
                self.wrong.append(f"{name} {number}: {answer[:200]}")
            self.answered[name] += 1
            await anyio.sleep(HEALTHY_PAUSE_S)

    async def _keep_calling_bad(self, name: str) -> None:
        while True:
            try:
                result = await self.client.call_tool(f"mcp__{name}__t", {})
                outcome = text_of(result) if result.is_error else "answered"
            except (MCPError, RuntimeError) as error:  # the latter is the SDK's own for what breaks an outputSchema
                outcome = f"{error}"
            self.of_bad_ones[name][outcome[:200]] += 1
            await anyio.sleep(BAD_PAUSE_S)

    async def _keep_sampling(self) -> None:
        while True:
            now_bytes = memory_bytes(self.pid)
            if self._is_warm:
                self.peak_bytes = max(self.peak_bytes, now_bytes)
            else:
                self.warm_bytes = max(self.warm_bytes, now_bytes)
            await anyio.sleep(SAMPLE_S)


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110  # some of what is waited for happens in another process
        await anyio.sleep(SAMPLE_S)
