"""Metrics of machines, and alerts on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from bench.tasks.worlds.world import ToolWords, World

_METRICS = ("web.latency_ms", "web.errors", "db.connections", "db.disk_percent", "queue.length", "mail.sent")
_BASE = (120, 2, 40, 71, 15, 300)
_PEAK_AT = (5, 20, 11, 23, 2, 9)
_HOURS = 24


class Metrics(World):
    """Metrics of machines, and alerts on them."""

    name = "metrics"
    words = (
        ToolWords("list_metrics", ("names of the metrics that are recorded", "list metrics alerts")),
        ToolWords("query_metric", ("values of a metric over the last hours", "query metric")),
        ToolWords("create_alert", ("alert people when a metric is above a threshold", "create alert metric")),
        ToolWords("silence_alert", ("silence an alert for some minutes", "silence alert")),
    )

    def __init__(self) -> None:
        self._alerts: dict[str, dict[str, Any]] = {}
        self._step_s = 3600
        self.reset(False)

    @property
    def tools(self) -> Sequence[Callable[..., Any]]:
        return (self.list_metrics, self.query_metric, self.create_alert, self.silence_alert)

    @property
    def state(self) -> Mapping[str, Any]:
        return {"alerts": self._alerts}

    def reset(self, is_large: bool) -> None:
        self._step_s = 85 if is_large else 3600
        self._alerts.clear()
        self._alerts["queue.length"] = {"metric": "queue.length", "above": 100.0, "channel": "mail", "silent_min": 0}
        self._alerts["db.disk_percent"] = {
            "metric": "db.disk_percent",
            "above": 90.0,
            "channel": "phone",
            "silent_min": 0,
        }

    def list_metrics(
        self,
        prefix: Annotated[str, Field(description="Only names that begin so, as web.; empty for all.")] = "",
    ) -> dict[str, Any]:
        """List the names of the metrics that are recorded, and the alerts that exist on each."""
        names = [name for name in _METRICS if name.startswith(prefix)]
        return {
            "metrics": [{"name": name, "alerts": [*(one for one in self._alerts if one == name)]} for name in names]
        }

    def query_metric(
        self,
        name: Annotated[str, Field(description="Name of the metric, as web.errors.")],
        hours: Annotated[int, Field(description="How far back.", ge=1, le=24)] = 24,
    ) -> dict[str, Any]:
        """Read the recorded values of one metric over the last hours, oldest first."""
        if name not in _METRICS:
            raise ToolError(f"there is no metric {name!r}")
        index = _METRICS.index(name)
        points: list[dict[str, Any]] = []
        for second in range((_HOURS - hours) * 3600, _HOURS * 3600, self._step_s):
            hour = second / 3600
            value = _BASE[index] + round(_BASE[index] / max(1.0, abs(hour - _PEAK_AT[index])), 1)
            points.append({"hour": round(hour, 3), "value": value, "host": "host-1"})
        return {"name": name, "points": points}

    def create_alert(
        self,
        metric: Annotated[str, Field(description="Name of the metric, as web.errors.")],
        above: Annotated[float, Field(description="Alert if the value is above this.")],
        channel: Annotated[Literal["mail", "chat", "phone"], Field(description="How people are told.")],
    ) -> dict[str, Any]:
        """Create an alert on a metric: people are told when its value goes above a threshold."""
        if metric not in _METRICS:
            raise ToolError(f"there is no metric {metric!r}")
        self._alerts[metric] = {"metric": metric, "above": above, "channel": channel, "silent_min": 0}
        return self._alerts[metric]

    def silence_alert(
        self,
        metric: Annotated[str, Field(description="Name of the metric whose alert is silenced.")],
        minutes: Annotated[int, Field(description="For how long.", ge=1)],
    ) -> dict[str, Any]:
        """Silence the alert of a metric for some minutes."""
        if metric not in self._alerts:
            raise ToolError(f"there is no alert on {metric!r}")
        self._alerts[metric]["silent_min"] = minutes
        return self._alerts[metric]
