"""Run `Upstreams` over entries as a user writes them, for tests that want real processes."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from goat_mcp.catalog.registry import Registry
from goat_mcp.core.calling_client import RootsOf, no_roots
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError
from goat_mcp.core.result import ToolResult
from goat_mcp.core.tool import ChecksInput
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.cache.warm_catalog import StoredCatalog, WarmCatalog
from goat_mcp.upstreams.config.entry import Confine
from goat_mcp.upstreams.config.upstream_files import UpstreamFiles, load_upstream_files
from goat_mcp.upstreams.oauth.logins import Logins
from goat_mcp.upstreams.retry_policy import RetryLimits, SupervisorLimits
from goat_mcp.upstreams.sharing.shared_connect import SHARE_NAMED, Sharing
from goat_mcp.upstreams.status import UpstreamStatus
from goat_mcp.upstreams.upstreams import Upstreams
from tests.quick_start import script_command

SERVERS = Path(__file__).parent / "servers"
SERVERS_OF_THE_SDK = ("good.py", "guarded.py", "shelf.py")
"""Slow to import; the others start as quickly as Python does."""
QUICK = SupervisorLimits(
    start_timeout_s=15,
    list_timeout_s=5,
    relist_interval_s=0.2,
    retry=RetryLimits(backoff_min_s=0.01, backoff_max_s=0.05, probe_after_s=0.5),
)


def server(script: str, *args: str | Path, **members: Any) -> dict[str, Any]:
    """An entry that runs one of our test servers."""
    command, *words = _command(script, args)
    return {"command": command, "args": words, **members}


def _command(script: str, args: Iterable[str | int | Path]) -> list[str]:
    words = [str(argument) for argument in args]
    if script in SERVERS_OF_THE_SDK:
        return script_command(SERVERS / script, *words)
    return [sys.executable, str(SERVERS / script), *words]


@contextmanager
def serving_at(port: int, script: str, *args: str | int | Path) -> Generator[None]:
    """One of our test servers as a process that listens at this port."""
    process = subprocess.Popen(_command(script, args), stderr=subprocess.DEVNULL)
    try:
        for _ in range(1200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            try:
                process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
        yield
    finally:
        process.send_signal(signal.SIGHUP)  # ends it at once, and passes the launcher of a forked one
        process.wait()


def load(folder: Path, entries: Mapping[str, Any], **environ: str) -> UpstreamFiles:
    file = folder / "upstreams.json"
    file.write_text(json.dumps({"mcpServers": entries}))
    return load_upstream_files([file], references=SecretReferences(environ))


@dataclass
class Fleet:
    upstreams: Upstreams
    registry: Registry
    generations: list[int] = field(default_factory=list[int])

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None, **ctx: Any) -> ToolResult:
        tool = self.registry.get(name)
        assert tool is not None, f"{name} is not among {self.registry.names()}"
        input = tool.validate(arguments or {})
        if isinstance(tool, ChecksInput):
            input = await tool.checked(input)
        return await tool.execute(input, ToolContext(call_id="t", **ctx))

    async def failing(self, name: str, arguments: Mapping[str, Any] | None = None, **ctx: Any) -> ToolError:
        try:
            result = await self.call(name, arguments, **ctx)
        except ToolError as error:
            return error
        raise AssertionError(f"{name} answered {result}")

    def status(self, name: str) -> UpstreamStatus:
        return next(status for status in self.upstreams.status() if status.name == name)

    async def until(self, holds: Callable[[], bool], max_wait_s: float = 60.0) -> None:
        with anyio.fail_after(max_wait_s):
            while not holds():  # noqa: ASYNC110  # what is waited for happens in another process
                await anyio.sleep(0.02)


def warm(
    folder: Path, entries: Mapping[str, Any], listed: Mapping[str, list[dict[str, Any]]], version: str = ""
) -> None:
    """Store catalogs as an earlier run would have left them."""
    store = WarmCatalog(StateDirectory(folder / "state"))
    for config in load(folder, entries).configs:
        if config.name in listed:
            store.store(config.server, config.fingerprint, StoredCatalog(version, tuple(listed[config.name])))


@asynccontextmanager
async def fleet(
    folder: Path,
    entries: Mapping[str, Any],
    *,
    limits: SupervisorLimits = QUICK,
    first_list: bool = True,
    why_denied: Callable[[str], str] = lambda server: "",
    confine: Confine | None = None,
    logins: Logins | None = None,
    environ: Mapping[str, str] | None = None,
    drain_s: float = 60.0,
    roots: RootsOf = no_roots,
    sharing: Sharing = SHARE_NAMED,
) -> AsyncGenerator[Fleet]:
    """Running upstreams, with the tools of those that answered in time. All ended afterwards."""
    files = load(folder, entries, **(environ or {}))
    registry = Registry()
    upstreams = Upstreams(
        files.configs,
        registry=registry,
        state=StateDirectory(folder / "state"),
        telemetry=Telemetry("error"),
        problems=files.problems,
        limits=limits,
        why_denied=why_denied,
        confine=confine,
        logins=logins,
        drain_s=drain_s,
        roots=roots,
        sharing=sharing,
    )
    upstreams.load_warm_catalogs()
    running = Fleet(upstreams, registry)
    registry.on_change(lambda snapshot: running.generations.append(snapshot.generation))
    async with anyio.create_task_group() as group:
        await group.start(_run, upstreams)
        if first_list:
            await upstreams.first_list(20)
        yield running
        group.cancel_scope.cancel()


async def _run(upstreams: Upstreams, *, task_status: Any) -> None:
    await upstreams.run(task_status=task_status)
