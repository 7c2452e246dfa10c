"""What a hop through a relaying server adds to a call, measured with the SDK's client on all paths at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from bench.clients import Target, connected, tool_ending
from bench.report import Bar, Row
from bench.timing import interleaved_bursts_ms, medians
from bench.wire import Era
from bench.workbench import Workbench

DIRECT, OURS, FASTMCP, RELAY = "direct", "ours", "FastMCP proxy", "SDK client behind SDK server"

BURST_SIZE = 5


async def measure_added(
    bench: Workbench, what: str, era: Era, targets: Mapping[str, Target], added_bar: float, fastmcp_bar: float
) -> list[Row]:
    """Echo through every target by turns. The bars are on what we add to the direct call.

    `added_bar` is a multiple of the direct call, `fastmcp_bar` a share of what FastMCP's proxy adds.
    """
    took = await echo_p50_ms(bench, what, era, targets)
    rows = [
        Row(
            f"{what}, p50",
            took[OURS],
            "ms",
            DIRECT,
            took[DIRECT],
            Bar(added(took[OURS], took[DIRECT]), added_bar, "x added"),
        )
    ]
    if FASTMCP in took:
        ours, theirs = took[OURS] - took[DIRECT], took[FASTMCP] - took[DIRECT]
        rows.append(
            Row(f"{what}, what it adds", ours, "ms", f"{FASTMCP} adds", theirs, Bar(ours / theirs, fastmcp_bar, "x"))
        )
    peers = [name for name in targets if name not in (DIRECT, OURS)]
    return rows + [
        Row(
            f"{what}, {name}, p50",
            took[name],
            "ms",
            f"{DIRECT}, adds {added(took[name], took[DIRECT]):.2f} x:",
            took[DIRECT],
        )
        for name in peers
    ]


async def echo_p50_ms(bench: Workbench, what: str, era: Era, targets: Mapping[str, Target]) -> Mapping[str, float]:
    """The middle time of an echo through each target; they take turns."""
    bursts = bench.rounds(120, 30)
    async with connected(targets, era, bench.env) as clients:
        calls: dict[str, Callable[[], Awaitable[object]]] = {}
        for name, client in clients.items():
            tool = await tool_ending(client, "echo")
            calls[name] = partial(client.call_tool, tool, {"text": "hello"})
        return medians(
            await interleaved_bursts_ms(
                calls,
                bursts=bursts,
                size=BURST_SIZE,
                on_burst=lambda number: bench.say(f"{what}: burst {number + 1} of {bursts}"),
            )
        )


def added(through_ms: float, direct_ms: float) -> float:
    """What the way through adds, as a multiple of the direct call."""
    return (through_ms - direct_ms) / direct_ms
