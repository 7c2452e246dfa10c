"""A call that changes its transport on the way: a stdio upstream over HTTP, and an HTTP upstream over stdio.

There is no direct call to compare with, so there is no bar; this is where supergateway can stand beside us. Handshake
opening only: the peers know no other, or start a process for each request of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack

import anyio

from bench.clients import OverSse, Target
from bench.hop import FASTMCP, OURS, echo_p50_ms
from bench.peers import HUB, SUPERGATEWAY, fastmcp, hub, is_here, supergateway_over_http, supergateway_over_stdio
from bench.report import Row
from bench.workbench import FASTMCP_PYTHON, Workbench, free_port, script

STDIO_OVER_HTTP = "upstream call, stdio upstream over HTTP"
HTTP_OVER_STDIO = "upstream call, HTTP upstream over stdio"


def measure(bench: Workbench) -> list[Row]:
    with ExitStack() as stack:

        def serve(command: Callable[[int], list[str]]) -> str:
            port = free_port()
            stack.enter_context(bench.http_server(command(port), port))
            return f"http://127.0.0.1:{port}/mcp"

        over_http = _over_http(bench, serve, script("bare_server", "stdio"))
        over_stdio = _over_stdio(bench, serve(lambda port: script("bare_server", str(port))))
        return [*_rows(bench, STDIO_OVER_HTTP, over_http), *_rows(bench, HTTP_OVER_STDIO, over_stdio)]


def _over_http(
    bench: Workbench, serve: Callable[[Callable[[int], list[str]]], str], upstream: list[str]
) -> Mapping[str, Target]:
    entries = {"echo": {"command": upstream[0], "args": upstream[1:]}}
    file = bench.upstreams_file(entries, "bridged-stdio")
    targets: dict[str, Target] = {OURS: serve(lambda port: bench.goat_over_http(port, "--upstreams", str(file)))}
    if FASTMCP_PYTHON.exists():
        targets[FASTMCP] = serve(lambda port: fastmcp(str(port), *upstream))
    if is_here(HUB):
        targets[HUB] = OverSse(serve(lambda port: hub(bench, port, entries)))
    if is_here(SUPERGATEWAY):
        targets[SUPERGATEWAY] = serve(lambda port: supergateway_over_http(port, upstream))
    return targets


def _over_stdio(bench: Workbench, url: str) -> Mapping[str, Target]:
    file = bench.upstreams_file({"echo": {"url": url}}, "bridged-http")
    targets: dict[str, Target] = {OURS: bench.goat("--upstreams", str(file))}
    if FASTMCP_PYTHON.exists():
        targets[FASTMCP] = fastmcp("stdio", url)
    if is_here(SUPERGATEWAY):
        targets[SUPERGATEWAY] = supergateway_over_stdio(url)
    return targets


def _rows(bench: Workbench, what: str, targets: Mapping[str, Target]) -> list[Row]:
    took = anyio.run(echo_p50_ms, bench, what, "handshake", targets)
    peers = [name for name in targets if name != OURS]
    return [Row(f"{what}, p50", took[OURS], "ms", name, took[name]) for name in peers]
