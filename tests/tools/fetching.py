"""A WebFetch tool over local servers, a resolver that tests fill, and a clock that they turn."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from goat_mcp.agents.models.choice import ModelChoice
from goat_mcp.agents.options import ModelOptions
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError
from goat_mcp.core.model import ModelReply, ModelRequest
from goat_mcp.core.result import ToolResult, text_block
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.windows_job import JobLimits
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.spill import SpillFiles
from goat_mcp.tools.web_fetch import WebFetch
from goat_mcp.web.http import HttpClient
from goat_mcp.web.options import WebOptions
from goat_mcp.web.pages.pages import Pages
from tests.web.http.local_server import LocalServer


@dataclass
class ScriptedModel:
    """Says `says`, or raises it. `requests` are what it was asked."""

    says: str | ToolError
    stop_reason: str = "endTurn"
    takes_tools: bool = False
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])

    async def reply(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        if isinstance(self.says, ToolError):
            raise self.says
        return ModelReply((text_block(self.says),), stop_reason=self.stop_reason)


class Repeating(ScriptedModel):
    """A model that a page has talked into repeating the word of the marks: `{nonce}` in what it says."""

    async def reply(self, request: ModelRequest) -> ModelReply:
        asked = request.messages[0].content[0]["text"]
        said = str(self.says).format(nonce=asked.partition(":")[0].rpartition(" ")[2])
        return ModelReply((text_block(said),), stop_reason=self.stop_reason)


class WatchedGuard(ProcessGuard):
    """Remembers which workers there were. Made inside the event loop of a test."""

    def __init__(self) -> None:
        super().__init__()
        self.watched: list[int] = []
        self.forgotten: list[int] = []
        self.has_watched = anyio.Event()
        self.has_forgotten = anyio.Event()
        self._begun = threading.Semaphore(0)
        self._ended = threading.Semaphore(0)
        self._loop = asyncio.get_running_loop()

    async def begun(self, workers: int) -> None:
        """Wait until so many more have begun."""
        for _ in range(workers):
            assert await anyio.to_thread.run_sync(self._begun.acquire, True, 60)

    async def ended(self, workers: int) -> None:
        """Wait until so many more have ended and been forgotten."""
        for _ in range(workers):
            assert await anyio.to_thread.run_sync(self._ended.acquire, True, 60)

    def watch(self, group: int, *, is_command: bool = False, limits: JobLimits | None = None) -> None:
        self.watched.append(group)
        super().watch(group, is_command=is_command, limits=limits)
        self._loop.call_soon_threadsafe(self.has_watched.set)
        self._begun.release()

    def forget(self, group: int) -> None:
        super().forget(group)
        self.forgotten.append(group)
        self._loop.call_soon_threadsafe(self.has_forgotten.set)
        self._ended.release()


@dataclass
class WebDesk:
    """`public` servers are reached as `pub.test`; every other name and address stays as guarded as ever."""

    folder: Path
    public: tuple[LocalServer, ...] = ()
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    names: dict[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    max_chars: int = 30_000
    now_s: float = 1_000.0

    def __post_init__(self) -> None:
        self.lookups: list[str] = []
        self.warnings: list[tuple[str, dict[str, Any]]] = []
        allowed = [f"pub.test:{server.port}" for server in self.public]
        options = WebOptions.model_validate({"allow_hosts": allowed, "requests_per_minute": 0, **self.options})
        http = HttpClient(options, self._resolve)
        self._http, self._web_options = http, options
        self.use(ProcessGuard())
        self.spill = SpillFiles(StateDirectory(self.folder / "state"))
        models = ModelChoice(http, ModelOptions())
        self.tool = WebFetch(lambda: self.pages, self.spill, models, options.cache_s, self._warn, self.max_chars)

    def _warn(self, event: str, **fields: Any) -> None:
        self.warnings.append((event, fields))

    def use(self, guard: ProcessGuard) -> None:
        self.pages = Pages(self._http, self._web_options, guard, clock=lambda: self.now_s)

    async def fetch(self, url: str, ctx: ToolContext | None = None, **arguments: Any) -> ToolResult:
        input = self.tool.validate({"url": url, **arguments})
        return await self.tool.execute(input, ctx or ToolContext(call_id="c1"))

    async def refusal(self, url: str, **arguments: Any) -> ToolError:
        with pytest.raises(ToolError) as refused:
            await self.fetch(url, **arguments)
        return refused.value

    async def _resolve(self, host: str, port: int) -> Sequence[str]:
        self.lookups.append(host)
        found = {"pub.test": ["127.0.0.1"], "localhost": ["127.0.0.1"], **self.names}.get(host)
        if found is None:
            raise OSError(-2, "Name or service not known")
        return found


def page_text(result: ToolResult) -> str:
    """What stands between the marks."""
    lines = result.text.split("\n")
    start = next(number for number, line in enumerate(lines) if line.startswith("<<<"))
    nonce = lines[start].split(" ")[-4].rstrip(":")
    end = next(number for number, line in enumerate(lines) if line.endswith(f" {nonce}>>>"))
    return "\n".join(lines[start + 1 : end])
