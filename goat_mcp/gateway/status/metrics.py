"""The metrics of one gateway as Prometheus reads them: counts of calls, and how things stand at that moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import anyio.to_thread
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from goat_mcp.calls.observability.call_metrics import CallMetrics
from goat_mcp.core.errors import ToolError
from goat_mcp.core.version import __version__
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.upstreams.status import UpstreamState, UpstreamStatus

CONTENT_TYPE = CONTENT_TYPE_LATEST
APPROVALS_EVERY_S = 5.0
"""Reading the queue of approvals costs the database, or the shared state, a query: a scrape more often than this
shows what was read before."""
Gauges = Callable[[], Mapping[str, float]]
"""What the server counts: by the name of a gauge in `SERVER_GAUGES`."""
SERVER_GAUGES = {
    "sessions": "Sessions of the handshake era that are open",
    "connections": "HTTP connections of clients that have shown who they are",
    "calls_suspended": "Calls that wait for an answer of their client",
}


class GatewayMetrics:
    """`of_server` is read with each scrape, on the event loop."""

    def __init__(self, gateway: Gateway, calls: CallMetrics, of_server: Gauges) -> None:
        self._gateway = gateway
        self._calls = calls
        self._of_server = of_server
        self._standing = _Standing()
        self._approvals: tuple[float, float | None] = (-APPROVALS_EVERY_S, None)
        calls.registry.register(self._standing)
        ProcessCollector(registry=calls.registry)

    async def text(self) -> bytes:
        """All metrics, in the format of `CONTENT_TYPE`."""
        statuses = await self._gateway.status.upstreams()
        slots = self._gateway.pipeline.slots
        found = [
            _gauge("info", "The version that runs", {(("version", __version__),): 1}),
            _gauge("calls_running", "Calls that have a slot", {(): slots.running()}),
            _gauge("calls_waiting", "Calls that wait for a slot", {(): slots.waiting()}),
            *_of_upstreams(statuses),
        ]
        found += [_gauge(name, SERVER_GAUGES[name], {(): value}) for name, value in sorted(self._of_server().items())]
        if (waiting := await self._approvals_waiting()) is not None:
            found.append(_gauge("approvals_waiting", "What waits for a person's decision", {(): waiting}))
        self._standing.metrics = found
        return await anyio.to_thread.run_sync(generate_latest, self._calls.registry)

    async def _approvals_waiting(self) -> float | None:
        """None if the queue cannot be read: no number is better than a wrong one."""
        read_at_s, count = self._approvals
        if time.monotonic() - read_at_s >= APPROVALS_EVERY_S:
            store = self._gateway.services.approvals()
            try:
                count = len(await anyio.to_thread.run_sync(store.waiting)) if store.exists else 0
            except ToolError:
                count = None
            self._approvals = (time.monotonic(), count)
        return count


class _Standing(Collector):
    """Shows what was read for this scrape."""

    def __init__(self) -> None:
        self.metrics: Sequence[Metric] = ()

    def collect(self) -> Iterator[Metric]:
        return iter(self.metrics)

    def describe(self) -> Iterator[Metric]:
        """Nothing: what there is depends on the moment."""
        return iter(())


Labels = tuple[tuple[str, str], ...]


def _gauge(name: str, help: str, values: Mapping[Labels, float]) -> GaugeMetricFamily:
    labels = [label for label, _ in next(iter(values), ())]
    family = GaugeMetricFamily(f"goat_mcp_{name}", help, labels=labels)
    for labelled, value in values.items():
        family.add_metric([text for _, text in labelled], value)
    return family


def _of_upstreams(statuses: Sequence[UpstreamStatus]) -> Iterator[Metric]:
    named = {status.server: status for status in statuses if status.server}
    states = {
        (("upstream", server), ("state", str(state))): float(status.state is state)
        for server, status in named.items()
        for state in UpstreamState
    }
    running = {(("upstream", server),): float(status.calls_in_flight) for server, status in named.items()}
    waiting = {(("upstream", server),): float(status.calls_waiting) for server, status in named.items()}
    yield _gauge("upstream_state", "1 for the state that an upstream is in", states)
    yield _gauge("upstream_calls_running", "Calls that an upstream works on", running)
    yield _gauge("upstream_calls_waiting", "Calls that wait for an upstream's slot", waiting)
