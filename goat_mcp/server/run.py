"""From settings to a served gateway, until a signal, the end of input or a dead parent stops it."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core import platform
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.gateway.build.program_tools import ProgramTools
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.asyncio_children import watch_exits_without_threads
from goat_mcp.processes.stop_signals import StopSignals
from goat_mcp.server.adapter import Adapter
from goat_mcp.server.host_process import HostProcess
from goat_mcp.server.restart_handoff import DRAIN_S, RestartHandoff, StdioHandoff, is_possible, taken_over
from goat_mcp.server.stdio.transport import stdio_streams
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.upstreams.upstreams import FIRST_LIST_WAIT_S

if TYPE_CHECKING:  # uvicorn's side is loaded when HTTP is served
    from goat_mcp.server.http.drain import Drain
    from goat_mcp.server.http.metrics import MetricsServer
    from goat_mcp.server.http.server import HttpServer
    from goat_mcp.server.replicas.this_replica import ThisReplica
    from goat_mcp.server.ui.hosts import Hosts

Check = Callable[[], object]
LEAVE_AFTER_S = 1.5
"""Whoever presses Ctrl-C waits so long for calls, hooks and servers to end in an orderly way."""
FIRST_WRITE_S = 1.0
AFTER_THE_LIST_S = 0.3
"""The status is first written so long after the start, or after the client's first list."""

_SIGBREAK: signal.Signals = getattr(signal, "SIGBREAK", signal.SIGINT)


def _nothing_to_check() -> None:
    """The command's settings are not read again."""


def run_stdio(
    settings: Settings,
    *,
    host: HostProcess,
    check: Check = _nothing_to_check,
    tools: ProgramTools | None = None,
    state: StateDirectory | None = None,
) -> None:
    """Serve this process's stdin and stdout until the client leaves or the host is gone.

    `check` raises where a process with the same command could not start now. `tools` are those of a program that
    embeds us, `state` is its directory.
    """
    handoff = taken_over()
    gateway = Gateway(settings, approval=Approval.HOST, ask_client_for_roots=True, tools=tools, state=state)
    gateway.modes.resume(handoff.modes)
    gateway.restart.resume(check, handoff.restarts_s)
    gateway.services.how_started = host.how_started
    gateway.diagnostics.log()
    watch_exits_without_threads()
    anyio.run(_serve_stdio, gateway, host, handoff)
    _replace_process(gateway, handoff, host)


def _replace_process(gateway: Gateway, handoff: RestartHandoff, host: HostProcess | None = None) -> None:
    """If that is wanted, and prepared."""
    if handoff.is_complete:
        if host is not None:
            host.keep_over_exec(os.environ)
        gateway.telemetry.warning("starting again", reason=gateway.restart.reason)
        handoff.replace_process(gateway.modes.decided(), gateway.restart.times_s)


def run_http(
    settings: Settings,
    http: str,
    *,
    token_file: Path | None,
    no_token: bool,
    say: Callable[[str], None],
    check: Check = _nothing_to_check,
    tools: ProgramTools | None = None,
    state: StateDirectory | None = None,
    hosts: Callable[[], Hosts] | None = None,
) -> None:
    """Serve HTTP until a signal. `hosts` are the other programs of this machine, for the page.

    Raises `ToolError(CONFIG)` for an address or token that cannot be used."""
    from goat_mcp.server.http.page import MountedPage
    from goat_mcp.server.http.server import HttpServer, check_identity, parse_address
    from goat_mcp.server.http.token import profile_tokens, read_or_create_token

    handoff = taken_over()
    address = parse_address(http)
    gateway = Gateway(settings, approval=Approval.ELICIT, serves_http=True, tools=tools, state=state)
    gateway.modes.resume(handoff.modes)
    gateway.restart.resume(check, handoff.restarts_s)
    gateway.diagnostics.log()
    token: str | None = None
    files = {name: one.token_file.expanduser() for name, one in settings.profiles.items() if one.token_file}
    of_profiles: dict[str, str] = {}
    if settings.identity.is_on:
        check_identity(settings, address, no_token=no_token)
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
    page = MountedPage(gateway, hosts) if settings.ui.enabled else None
    hosts_served = frozenset(settings.http.hosts)
    server = HttpServer(
        Adapter(gateway, "http"),
        address,
        token,
        settings.limits,
        of_profiles,
        page,
        hosts_served,
        settings.identity,
    )
    metrics = None
    if gateway.services.metrics is not None:
        from goat_mcp.server.http.metrics import MetricsServer

        metrics = MetricsServer(settings.metrics, settings.limits)
    server.bind(handoff.listener)
    server.replica = _this_replica(gateway, server)
    watch_exits_without_threads()
    anyio.run(_serve_http, gateway, server, say, handoff, metrics)
    _replace_process(gateway, handoff)


def _this_replica(gateway: Gateway, server: HttpServer) -> ThisReplica | None:
    """Several servers with one state are replicas of one. Raises `ToolError(CONFIG)`."""
    shared = gateway.services.shared
    if shared is None:
        return None
    from goat_mcp.server.replicas.this_replica import ThisReplica

    options, warn = gateway.settings.replica, gateway.telemetry.warning
    replica = ThisReplica(shared.connection, shared.keys, options, url=server.origin, port=server.port, warn=warn)
    server.adapter.suspended.replica = replica.name
    replica.on_standing_still(server.adapter.suspended.drop_all)
    return replica


async def _serve_stdio(gateway: Gateway, host: HostProcess, handoff: RestartHandoff) -> None:
    adapter = Adapter(gateway, "stdio", tells_newcomers=handoff.greeting is not None)
    async with gateway.running(), anyio.create_task_group() as group:
        stop = group.cancel_scope.cancel
        with stopping_on_signals(stop, gateway.guard) as on_term, sending_spans(gateway):
            group.start_soon(_stop_when_gone, host, stop, on_term)
            await group.start(adapter.run)
            group.start_soon(publish_status, gateway)
            group.start_soon(notify_people, gateway)
            _collect_garbage_from_now_on()
            let_event_loop_interrupt_threads()
            frame_bytes = gateway.settings.limits.frame_bytes
            sessions = StdioHandoff(gateway.restart, handoff, adapter.changes.close)
            streams = stdio_streams(
                adapter.fast_path(), max_frame_bytes=frame_bytes, telemetry=gateway.telemetry, handoff=sessions
            )
            async with streams as (read, write):
                await adapter.server.run(read, write, adapter.server.create_initialization_options())
        stop()


async def _serve_http(
    gateway: Gateway,
    server: HttpServer,
    say: Callable[[str], None],
    handoff: RestartHandoff,
    metrics: MetricsServer | None = None,
) -> None:
    async def hand_over() -> None:
        await gateway.restart.wanted.wait()
        with anyio.move_on_after(DRAIN_S):
            await gateway.pipeline.slots.none_running()
        handoff.keep_listener(server.keep_listening())
        server.stop()

    def listens(where: str) -> None:
        say(f"goat-mcp: listening on {where}")
        if metrics is not None:
            say(f"goat-mcp: metrics at {metrics.url}")
        if gateway.settings.identity.is_on:
            from goat_mcp.gateway.status.shared_server import shared_server_lines

            for line in shared_server_lines(gateway.settings):
                say(f"goat-mcp: {line}")

    refused: ToolError | None = None
    if is_possible():
        gateway.restart.allow()
    async with gateway.running(), anyio.create_task_group() as group:
        on_term = server.stop
        if server.replica is not None:
            drain = drain_of(gateway, server, server.replica)
            on_term = drain.begin
            group.start_soon(drain.run)
        stopping = stopping_on_signals(server.stop, gateway.guard, on_term=on_term, leaving=server.close)
        with stopping, sending_spans(gateway):
            await group.start(server.adapter.run)
            if gateway.services.shared is not None:
                from goat_mcp.server.http.shared_rates import SharedRates

                group.start_soon(SharedRates(server.rates, gateway.services.shared.connection).run)
            if metrics is not None:
                group.start_soon(show_metrics, gateway, server, metrics)
            group.start_soon(publish_status, gateway)
            group.start_soon(notify_people, gateway)
            group.start_soon(hand_over)
            _collect_garbage_from_now_on()
            let_event_loop_interrupt_threads()
            # Its connections start threads, which must not get signals.
            try:
                async with _registered(gateway, server.replica):
                    await server.serve(listens)
            except ToolError as problem:  # for the user, and not as one of a group
                refused = problem
        group.cancel_scope.cancel()
    if refused is not None:
        raise refused


@asynccontextmanager
async def _registered(gateway: Gateway, replica: ThisReplica | None) -> AsyncGenerator[None]:
    """Be one of several meanwhile, and own processes of upstreams as one of them."""
    shared, owners = gateway.services.shared, gateway.services.owners
    if replica is None or shared is None or owners is None:
        yield
        return
    from goat_mcp.server.replicas.task_hops import join_tasks
    from goat_mcp.server.replicas.upstream_hops import owning

    takeover = join_tasks(gateway, shared, replica)
    async with replica.registered(), owning(owners(), shared, replica), takeover.running():
        yield


def drain_of(gateway: Gateway, server: HttpServer, replica: ThisReplica) -> Drain:
    """How this replica leaves on SIGTERM."""
    from goat_mcp.server.http.drain import Drain

    options = gateway.settings.replica
    return Drain(
        server.stop,
        leave_delay_s=options.leave_delay_s,
        drain_s=options.drain_s,
        before=replica.leave,
        # A suspended call that has only asked can be started again by another replica.
        unfinished=(
            server.adapter.suspended.none_begun,
            lambda: gateway.pipeline.slots.none_running(),
            replica.finish,
        ),
    )


async def show_metrics(gateway: Gateway, server: HttpServer, metrics: MetricsServer) -> None:
    """Until cancelled."""
    from goat_mcp.gateway.status.metrics import CONTENT_TYPE, GatewayMetrics

    assert gateway.services.metrics is not None, "they are on"
    of_gateway = GatewayMetrics(gateway, gateway.services.metrics, server.counts)
    await metrics.serve(of_gateway.text, CONTENT_TYPE)


@contextmanager
def sending_spans(gateway: Gateway) -> Generator[None]:
    """Trace calls if the settings name a collector. Enter it where new threads do not take the process's signals."""
    options = gateway.settings.tracing
    if not options.endpoint:
        yield
        return
    from opentelemetry import trace

    from goat_mcp.gateway.build.observability import tracer_provider

    provider = tracer_provider(options, gateway.redactor)
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()


def _collect_garbage_from_now_on() -> None:
    # What start-up made lives as long as the process: out of the collector's sight, it costs nothing later.
    gc.freeze()
    gc.enable()


THREAD_TURN_S = 0.0005


def let_event_loop_interrupt_threads() -> None:
    """Python lets a thread run for 5 ms before the event loop gets the interpreter back, at each of its system calls:
    checking the list of one upstream would delay the calls of all others."""
    sys.setswitchinterval(THREAD_TURN_S)


def _nothing_to_close() -> None:
    """Over stdio nobody else finds anything of ours in the file system."""


@contextmanager
def stopping_on_signals(
    stop: Callable[[], object],
    guard: ProcessGuard,
    *,
    on_term: Callable[[], object] | None = None,
    leaving: Callable[[], None] = _nothing_to_close,
) -> Generator[Callable[[int], None]]:
    """Call `stop` on the event loop at SIGINT, and `on_term` (or `stop`) at a SIGTERM that none of our own commands
    sent. Yields what is called with the sender of a SIGTERM that another process has got for us.

    After SIGINT the process ends within `LEAVE_AFTER_S`: `leaving` is called, and the guard ends the children.
    If the sender of a signal is not known, every SIGTERM counts. Enter it before any thread starts.
    """
    loop = asyncio.get_running_loop()

    terminated = on_term or stop

    def stop_soon() -> None:
        loop.call_soon_threadsafe(terminated)

    def leave() -> None:
        leaving()
        guard.close()
        os._exit(0)

    def interrupted() -> None:
        stop()
        loop.call_later(LEAVE_AFTER_S, leave)

    if not platform.HAS_SIGNAL_MASKS:
        with _console_signals(lambda: loop.call_soon_threadsafe(interrupted)):
            yield lambda _sender: stop_soon()
        return
    term = StopSignals(stop_soon, guard) if StopSignals.block() else None
    if term is not None:
        term.start()
    else:
        loop.add_signal_handler(signal.SIGTERM, terminated)
    loop.add_signal_handler(signal.SIGINT, interrupted)
    try:
        yield term.sent_by if term is not None else lambda _sender: stop_soon()
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        if term is not None:
            term.close()


@contextmanager
def _console_signals(stop: Callable[[], object]) -> Generator[None]:
    """Call `stop` at Ctrl-C and Ctrl-Break. The event loop of Windows handles no signals, but wakes up for them."""
    before = {number: signal.signal(number, lambda _number, _frame: stop()) for number in {signal.SIGINT, _SIGBREAK}}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _stop_when_gone(host: HostProcess, stop: Callable[[], None], on_term: Callable[[int], None]) -> None:
    await host.gone(on_term)
    stop()


async def publish_status(gateway: Gateway) -> None:
    """Publish what `goat-mcp status` and other programs of the user read, and do what the user asks of running
    servers (`goat-mcp restart`, a cancelled call), until cancelled; nothing is left then.

    Nothing of it runs at start: the client's first list and what its first call needs come before.
    """
    with anyio.move_on_after(FIRST_WRITE_S):
        await gateway.first_list.wait()
    if gateway.upstreams.anyone_listed:
        # Upstreams that were never seen are on their way into the list: what this loads would take their time.
        with anyio.move_on_after(FIRST_LIST_WAIT_S):
            await gateway.first_list.wait()
            await anyio.sleep(AFTER_THE_LIST_S)
    await anyio.to_thread.run_sync(import_module, "goat_mcp.gateway.status.gateway_status", abandon_on_cancel=True)
    from goat_mcp.gateway.status.log_files import LogWriter
    from goat_mcp.gateway.status.process_files import ProcessFiles, StatusPublisher
    from goat_mcp.gateway.status.requests import RequestWatcher

    with suppress(OSError):
        gateway.telemetry.copy_to((await anyio.to_thread.run_sync(LogWriter, gateway.state)).write)
    files = ProcessFiles(gateway.state)
    running = gateway.on_demand.running()
    requests = RequestWatcher(
        gateway.state,
        os.getpid(),
        upstreams=gateway.upstreams,
        running=running,
        revoke=gateway.on_demand.revoke_grant,
        telemetry=gateway.telemetry,
        redactor=gateway.redactor,
    )
    warn, last_runs = gateway.telemetry.warning, gateway.last_runs
    async with anyio.create_task_group() as group:
        group.start_soon(requests.watch)
        await StatusPublisher(gateway.status, files, gateway.announcements, warn, last_runs, running).run()


async def notify_people(gateway: Gateway) -> None:
    """Send what waits for a person to whom `approval.notify` names, until cancelled. Without it nothing is loaded."""
    if not gateway.settings.approval.notify:
        return
    with anyio.move_on_after(FIRST_WRITE_S):
        await gateway.first_list.wait()
    await anyio.to_thread.run_sync(import_module, "goat_mcp.gateway.approvals.notify.build", abandon_on_cancel=True)
    from goat_mcp.gateway.approvals.notify.build import build_notifier

    try:
        await build_notifier(gateway.services, gateway.diagnostics.report_feature).run()
    except Exception as bug:  # whatever it is, calls go on
        gateway.telemetry.warning("approval.notify has stopped", problem=repr(bug))
        gateway.diagnostics.report_feature("approval.notify", "it has stopped; see the log")
