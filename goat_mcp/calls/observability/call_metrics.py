"""Counts of calls for Prometheus: how long they took and how they failed, by tool and upstream.

A label never holds what a client made up: tools are those of the catalog, error codes those of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from goat_mcp.core.errors import ErrorCode
from goat_mcp.core.names import SEPARATOR, UPSTREAM_PREFIX

if TYPE_CHECKING:  # loaded if metrics are on
    from prometheus_client import CollectorRegistry

UNKNOWN, OTHER = "unknown", "other"
"""Rows of calls whose tool there is not, and of tools past the limit."""
PROTOCOL_ERROR = "protocol_error"
"""The code of a JSON-RPC error of an upstream, whatever number it has."""
BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_CODES = frozenset(map(str, ErrorCode))


class CallMetrics:
    """Of one gateway. Raises `ImportError` without the extra `metrics`."""

    def __init__(self, max_tools: int) -> None:
        from prometheus_client import CollectorRegistry, Counter, Histogram

        self.registry: CollectorRegistry = CollectorRegistry()
        self._max_tools = max_tools
        self._rows: dict[str, tuple[str, str]] = {}
        self._durations = Histogram(
            "goat_mcp_call_duration_seconds",
            "Time from a call's arrival to its result, with what it waited for",
            ["tool", "upstream"],
            buckets=BUCKETS_S,
            registry=self.registry,
        )
        self._errors = Counter(
            "goat_mcp_call_errors", "Calls that failed", ["tool", "upstream", "code"], registry=self.registry
        )

    def record(self, rule_name: str | None, elapsed_s: float, error_code: str | None) -> None:
        """A call has ended. `rule_name` is None if the catalog has no such tool."""
        row = self._row(rule_name)
        self._durations.labels(*row).observe(elapsed_s)
        if error_code is not None:
            code = error_code if error_code in _CODES else PROTOCOL_ERROR if _is_number(error_code) else OTHER
            self._errors.labels(*row, code).inc()

    def _row(self, rule_name: str | None) -> tuple[str, str]:
        if rule_name is None:
            return UNKNOWN, ""
        row = self._rows.get(rule_name)
        if row is None:
            if len(self._rows) >= self._max_tools:
                return OTHER, ""
            row = self._rows[rule_name] = rule_name, _upstream_of(rule_name)
        return row


def _upstream_of(rule_name: str) -> str:
    """The server in `mcp__server__tool`; empty for a tool of ours."""
    prefix, server, _ = [*rule_name.split(SEPARATOR, 2), "", ""][:3]
    return server if prefix + SEPARATOR == UPSTREAM_PREFIX else ""


def _is_number(code: str) -> bool:
    return code.removeprefix("-").isdigit()
