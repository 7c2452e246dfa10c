"""Settings of what operators watch: `metrics.*` and `tracing.*`."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from goat_mcp.core.settings_part import BaseUrl, SettingsPart


class MetricsOptions(SettingsPart):
    """`listen` is the address (HOST:PORT) where `serve --http` shows metrics; empty for none. An address that other
    machines reach wants `token_file`, the bearer token of whoever reads them.

    `tools`: so many tools have rows of their own; all others share one.
    """

    listen: str = ""
    token_file: Path | None = None
    tools: int = Field(default=500, ge=1, le=10_000)


class TracingOptions(SettingsPart):
    """`endpoint` is the OpenTelemetry collector that spans are sent to by OTLP over HTTP, without a path; empty for
    none. `sample` is the share of traces that are kept, if the client has not decided."""

    endpoint: BaseUrl = ""
    sample: float = Field(default=1.0, ge=0, le=1)
