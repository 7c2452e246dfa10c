"""From settings to a served gateway, until a signal, the end of input or a dead parent stops it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.processes.asyncio_children import watch_exits_without_threads
from goat_mcp.server.adapter import Adapter
from goat_mcp.server.lifetime import stop_when_orphaned, stopping_on_signals
from goat_mcp.server.restart import DRAIN_S, RestartHandoff, is_possible, taken_over
from goat_mcp.server.restart_handoff import HandoffOfSessions
from goat_mcp.server.status_publishing import publish_status
from goat_mcp.server.stdio.transport import stdio_streams
from goat_mcp.settings.settings import Settings

if TYPE_CHECKING:  # uvicorn's side is loaded when HTTP is served
    from goat_mcp.server.http.server import HttpServer

Check = Callable[[], object]


def _nothing_to_check() -> None:
    """The command's settings are not read again."""


def run_stdio(settings: Settings, *, parent: int, check: Check = _nothing_to_check) -> None:
    """Serve this process's stdin and stdout until the client leaves or the process `parent` is gone.

    `check` raises where a process with the same command could not start now.
    """
    handover = taken_over()
    gateway = Gateway(settings, approval=Approval.HOST, ask_client_for_roots=True)
    gateway.modes.resume(handover.modes)
    gateway.restart.check = check
    gateway.restart.times_s = handover.restarts_s
    gateway.log_problems()
    watch_exits_without_threads()
    anyio.run(_serve_stdio, gateway, parent, handover)
    _replace_process(gateway, handover)


def _replace_process(gateway: Gateway, handover: RestartHandoff) -> None:
    """Where that is wanted, and prepared."""
    if handover.is_complete:
        gateway.telemetry.warning("starting anew", reason=gateway.restart.reason)
        handover.modes = gateway.modes.decided()
        handover.restarts_s = gateway.restart.times_s
        handover.replace_process()


def run_http(
    settings: Settings,
    http: str,
    *,
    token_file: Path | None,
    no_token: bool,
    say: Callable[[str], None],
    check: Check = _nothing_to_check,
) -> None:
    """Serve HTTP until a signal. Raises `ToolError(CONFIG)` for an address or token that cannot be used."""
    from goat_mcp.server.http.server import HttpServer, parse_address
    from goat_mcp.server.http.token import profile_tokens, read_or_create_token

    handover = taken_over()
    address = parse_address(http)
    gateway = Gateway(settings, approval=Approval.ELICIT, serves_http=True)
    gateway.modes.resume(handover.modes)
    gateway.restart.check = check
    gateway.restart.times_s = handover.restarts_s
    gateway.log_problems()
    token: str | None = None
    files = {name: one.token_file.expanduser() for name, one in settings.profiles.items() if one.token_file}
    of_profiles: dict[str, str] = {}
    if no_token:
        if files:
            raise ToolError(
                ErrorCode.CONFIG,
                f"profiles.{next(iter(files))}.token_file narrows nobody where clients need no token",
                "Leave --no-token or the token_file out.",
            )
        if not address.is_loopback:
            raise ToolError(ErrorCode.CONFIG, f"--no-token is for loopback only, not {http}", "Use --token-file.")
        say("goat-mcp: WARNING: no token; every program on this machine may call these tools")
    else:
        path = token_file or gateway.state.folder("http") / "token"
        token = read_or_create_token(path)
        say(f"goat-mcp: bearer token in {path}")
        of_profiles = profile_tokens(files, token)
        for name, file in files.items():
            say(f"goat-mcp: bearer token of profile {name} in {file}")
    server = HttpServer(Adapter(gateway, "http"), address, token, settings.limits, of_profiles)
    server.bind(handover.listener)
    watch_exits_without_threads()
    anyio.run(_serve_http, gateway, server, say, handover)
    _replace_process(gateway, handover)


async def _serve_stdio(gateway: Gateway, parent: int, handover: RestartHandoff) -> None:
    adapter = Adapter(gateway, "stdio")
    async with gateway.running(), anyio.create_task_group() as group:
        stop = group.cancel_scope.cancel
        with stopping_on_signals(stop, gateway.guard):
            group.start_soon(stop_when_orphaned, parent, stop)
            await group.start(adapter.run)
            group.start_soon(publish_status, gateway)
            _collect_garbage_from_now_on()
            frame_bytes = gateway.settings.limits.frame_bytes
            succession = HandoffOfSessions(gateway.restart, handover, adapter.changes.close)
            adapter.tells_newcomers = handover.greeting is not None
            streams = stdio_streams(
                adapter.short_calls(),
                max_frame_bytes=frame_bytes,
                telemetry=gateway.telemetry,
                succession=succession,
            )
            async with streams as (read, write):
                await adapter.server.run(read, write, adapter.server.create_initialization_options())
        stop()


async def _serve_http(
    gateway: Gateway, server: HttpServer, say: Callable[[str], None], handover: RestartHandoff
) -> None:
    async def hand_over() -> None:
        await gateway.restart.wanted.wait()
        with anyio.move_on_after(DRAIN_S):
            await gateway.pipeline.slots.none_running()
        handover.listener = server.keep_listening()
        handover.is_complete = True
        server.stop()

    if is_possible():
        gateway.restart.prevented = ""
    async with gateway.running(), anyio.create_task_group() as group:
        with stopping_on_signals(server.stop, gateway.guard):
            await group.start(server.adapter.run)
            group.start_soon(publish_status, gateway)
            group.start_soon(hand_over)
            _collect_garbage_from_now_on()
            await server.serve(lambda where: say(f"goat-mcp: listening on {where}"))
        group.cancel_scope.cancel()


def _collect_garbage_from_now_on() -> None:
    # What start-up made lives as long as the process: out of the collector's sight, it costs nothing later.
    gc.freeze()
    gc.enable()
