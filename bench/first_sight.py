"""What a gateway lists at once, and letting it see its upstreams once, so that later starts find them on disk."""

from __future__ import annotations

import time
from collections.abc import Sequence

from bench.wire import WireClient
from bench.workbench import CannotMeasure, Workbench

CATALOG_TIMEOUT_S = 120.0


def listed_at_once(bench: Workbench, command: Sequence[str]) -> int:
    with WireClient(command, bench.env, stderr=bench.root / "startup.log") as client:
        client.open()
        return len(client.list_tools())


def warm_the_catalog(bench: Workbench, command: Sequence[str], wanted: int) -> None:
    """Run the gateway until it lists as many tools as are wanted."""
    deadline = time.monotonic() + CATALOG_TIMEOUT_S
    with WireClient(command, bench.env, stderr=bench.root / "startup.log") as client:
        client.open()
        while (listed := len(client.list_tools())) < wanted:
            bench.say(f"first sight of the upstreams, {listed} of {wanted} tools")
            if time.monotonic() > deadline:
                raise CannotMeasure(f"only {listed} of {wanted} tools were ever listed")
            time.sleep(0.2)
