"""A call to an upstream through us, HTTP on both sides, against the same upstream called directly.

We serve without a token, on loopback, and with `limits.calls_per_s=0`: a limit per client would end the measurement.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import get_args

import anyio

from bench.clients import OverSse, Target
from bench.hop import DIRECT, FASTMCP, OURS, RELAY, added, measure_added
from bench.peers import HUB, fastmcp, hub, is_here
from bench.report import Row
from bench.timing import interleaved, medians, timed_ms
from bench.wire import MODERN_META, MODERN_REVISION, Era
from bench.workbench import FASTMCP_PYTHON, Workbench, free_port, script

ADDED_BAR = 2.0
FASTMCP_BAR = 0.1
WHAT = "upstream call HTTP to HTTP (limits.calls_per_s=0)"


def measure(bench: Workbench) -> list[Row]:
    with ExitStack() as stack:

        def serve(command: Callable[[int], list[str]]) -> str:
            port = free_port()
            stack.enter_context(bench.http_server(command(port), port))
            return f"http://127.0.0.1:{port}/mcp"

        upstream = serve(lambda port: script("bare_server", str(port)))
        file = bench.upstreams_file({"echo": {"url": upstream}}, "echo-http")
        targets: dict[str, str] = {
            DIRECT: upstream,
            OURS: serve(lambda port: bench.goat_over_http(port, "--upstreams", str(file))),
            RELAY: serve(lambda port: script("sdk_relay", str(port), upstream)),
        }
        if FASTMCP_PYTHON.exists():
            targets[FASTMCP] = serve(lambda port: fastmcp(str(port), upstream))
        handshake_only: dict[str, Target] = {}
        if is_here(HUB):
            handshake_only[HUB] = OverSse(serve(lambda port: hub(bench, port, {"echo": {"url": upstream}})))
        rows: list[Row] = []
        for era in get_args(Era):
            all_targets = {**targets, **handshake_only} if era == "handshake" else targets
            rows += anyio.run(measure_added, bench, f"{WHAT}, {era}", era, all_targets, ADDED_BAR, FASTMCP_BAR)
        rows.append(_raw_row(bench, {DIRECT: ("echo", targets[DIRECT]), OURS: ("mcp__echo__echo", targets[OURS])}))
    return rows


def _raw_row(bench: Workbench, targets: dict[str, tuple[str, str]]) -> Row:
    """Modern requests over one kept connection each, with the standard library's client."""
    calls: dict[str, Callable[[], float]] = {}
    for name, (tool, url) in targets.items():
        host, _, path = url.removeprefix("http://").partition("/")
        calls[name] = timed_ms(partial(_post, http.client.HTTPConnection(host, timeout=30), f"/{path}", tool))
        for _ in range(5):
            calls[name]()
    rounds = bench.rounds(400, 80)
    bench.say(f"{WHAT}, raw requests: {rounds} rounds")
    took = medians(interleaved(calls, rounds, lambda number: None))
    against = f"{DIRECT}, adds {added(took[OURS], took[DIRECT]):.2f} x:"
    return Row(f"{WHAT}, modern, raw requests, p50", took[OURS], "ms", against, took[DIRECT])


def _post(connection: http.client.HTTPConnection, path: str, tool: str) -> None:
    params = {"name": tool, "arguments": {"text": "hello"}, "_meta": MODERN_META}
    connection.request(
        "POST",
        path,
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}),
        {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN_REVISION,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        },
    )
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200 or b"hello" not in body:
        raise LookupError(f"{path} answered {answer.status}: {body[:300]!r}")
