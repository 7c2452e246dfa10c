"""`python -m bench.layers [--era ERA] [--calls N] [--upstreams N]`: where the time of one relayed call goes, by layer.

An echo of an upstream, stdio to stdio, one at a time. Watching makes all of it slower: look at shares, and at how many
Python functions a call enters, which no machine's mood changes.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from bench.servers.layered_goat import LOOP, WAIT
from bench.wire import Era, WireClient
from bench.workbench import Workbench, script

WARM_UP = 100
RESULT_TIMEOUT_S = 20.0
LIST_TIMEOUT_S = 60.0


def measure(bench: Workbench, era: Era, calls: int, upstreams: int) -> Mapping[str, Mapping[str, int]]:
    """Times in ns and entered functions, by layer, of all calls together."""
    echo = script("bare_server", "stdio")
    small = script("small_upstream")
    entries: dict[str, dict[str, object]] = {"echo": {"command": echo[0], "args": echo[1:]}}
    for number in range(1, upstreams):
        entries[f"small{number}"] = {"command": small[0], "args": [*small[1:], f"small{number}"]}
    file, result = bench.upstreams_file(entries, "layers"), bench.root / "layers-result.json"
    _, *served = bench.goat("--upstreams", str(file), "--set", "catalog.mode=full")
    with WireClient(script("layered_goat", str(result), *served), bench.env, era, bench.root / "layers.log") as client:
        client.open()
        tool = _echo_of(client, upstreams)
        for _ in range(WARM_UP):
            client.call(tool, {"text": "hello"})
        os.kill(client.process.pid, signal.SIGUSR1)
        client.call(tool, {"text": "hello"})  # the signal has arrived when this is answered
        for _ in range(calls):
            client.call(tool, {"text": "hello"})
        os.kill(client.process.pid, signal.SIGUSR2)
        deadline = time.monotonic() + RESULT_TIMEOUT_S
        while not result.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return json.loads(result.read_text())


def _echo_of(client: WireClient, upstreams: int) -> str:
    """The echo's name, once all upstreams have listed their tools."""
    deadline = time.monotonic() + LIST_TIMEOUT_S
    while time.monotonic() < deadline:
        names = [tool["name"] for tool in client.list_tools() if tool["name"].startswith("mcp__")]
        if len({name.split("__")[1] for name in names}) == upstreams:
            return next(name for name in names if name.endswith("__echo"))
        time.sleep(0.2)
    raise TimeoutError("not all upstreams have listed their tools")


def print_layers(found: Mapping[str, Mapping[str, int]], calls: int) -> None:
    times, functions = dict(found["times_ns"]), found["functions"]
    times.pop(WAIT, None)
    whole = sum(times.values())
    print(f"{'layer':28} {'us a call':>10} {'share':>7} {'functions':>10}")
    for layer, spent in sorted(times.items(), key=lambda one: -one[1]):
        entered = functions.get(layer, 0) / calls
        print(f"{layer:28} {spent / calls / 1000:10.1f} {spent / whole:7.1%} {entered:10.1f}")
    entered = sum(count for layer, count in functions.items() if layer != WAIT) / calls
    print(f"{'all':28} {whole / calls / 1000:10.1f} {1:7.1%} {entered:10.1f}")
    print(f"turns of the {LOOP} a call: {functions.get(WAIT, 0) / calls:.1f}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.layers", description=__doc__)
    parser.add_argument("--era", choices=get_args(Era), default="handshake")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--upstreams", type=int, default=1, help="how many are configured; one of them is called")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="goat-mcp-bench-") as root:
        bench = Workbench(Path(root), quick=False, kept_corpus=None)
        print_layers(measure(bench, options.era, options.calls, options.upstreams), options.calls)
    return 0


if __name__ == "__main__":
    sys.exit(main())
