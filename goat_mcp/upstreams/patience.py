"""How long a person waits for upstreams that start side by side. Clients wait less: see `Upstreams.first_list`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import anyio

from goat_mcp.upstreams.status import UpstreamStatus
from goat_mcp.upstreams.upstream import Upstream


class Patience(NamedTuple):
    """How long somebody waits for upstreams that start side by side: `at_least_s`, and as long as answers come in, each
    within `between_s` of the one before, but not over `at_most_s`."""

    at_least_s: float
    between_s: float = 0.0
    at_most_s: float = math.inf


OF_A_PERSON = Patience(4.5, between_s=1.5, at_most_s=15.0)
"""One that hangs is named within some seconds; many that start slowly on a slow machine are all waited for."""
TO_THE_END = Patience(math.inf)
"""As long as each may take to start and to list."""


async def answers(
    asked: Iterable[Upstream], heard: Callable[[UpstreamStatus, float], None], patience: Patience, *, again: bool
) -> None:
    """Start these side by side. `heard` gets each at the moment in which it has listed or failed, and the seconds."""
    started_s = anyio.current_time()
    with anyio.CancelScope(deadline=started_s + patience.at_least_s) as waiting:

        async def listen(upstream: Upstream) -> None:
            await (upstream.relist() if again else upstream.first_outcome())
            now_s = anyio.current_time()
            heard(upstream.status(), now_s - started_s)
            waiting.deadline = max(waiting.deadline, min(now_s + patience.between_s, started_s + patience.at_most_s))

        async with anyio.create_task_group() as group:
            for upstream in asked:
                group.start_soon(listen, upstream)
