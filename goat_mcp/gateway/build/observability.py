"""From settings to what counts calls, and to what sends spans. The libraries are extras."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from goat_mcp.calls.observability.options import MetricsOptions, TracingOptions
from goat_mcp.core.redaction import Redactor
from goat_mcp.settings.settings import BrokenSettings

if TYPE_CHECKING:  # loaded if settings ask for it
    from opentelemetry.sdk.trace import TracerProvider

    from goat_mcp.calls.observability.call_metrics import CallMetrics

EXPORT_TIMEOUT_S = 3.0
"""A collector that does not answer in this time costs the spans, and a server that ends no more than that."""
MAX_ATTRIBUTE_CHARS = 1000
_TRACES_PATH = "/v1/traces"


def call_metrics(options: MetricsOptions) -> CallMetrics | None:
    """None if they are off. Raises `BrokenSettings` without the extra."""
    if not options.listen:
        return None
    from goat_mcp.calls.observability.call_metrics import CallMetrics

    try:
        return CallMetrics(options.tools)
    except ImportError:
        raise _without_extra("metrics.listen", "metrics") from None


def check_tracing(options: TracingOptions) -> None:
    """Raises `BrokenSettings` if spans are wanted without the extra."""
    if options.endpoint and not all(map(find_spec, ("opentelemetry.sdk", "opentelemetry.exporter"))):
        raise _without_extra("tracing.endpoint", "tracing")


def tracer_provider(options: TracingOptions, redactor: Redactor) -> TracerProvider:
    """What sends spans to the collector, from a thread of its own. `check_tracing` comes first.

    Headers for the collector come from OTEL_EXPORTER_OTLP_HEADERS, the service's name and attributes from
    OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import SpanLimits, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio

    from goat_mcp.gateway.build.redacted_spans import RedactedSpans

    exporter = OTLPSpanExporter(endpoint=f"{options.endpoint}{_TRACES_PATH}", timeout=EXPORT_TIMEOUT_S)
    resource = Resource.create({SERVICE_NAME: "goat-mcp"}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(
        resource=resource,
        sampler=ParentBasedTraceIdRatio(options.sample),
        span_limits=SpanLimits(max_attribute_length=MAX_ATTRIBUTE_CHARS),
    )
    provider.add_span_processor(BatchSpanProcessor(RedactedSpans(exporter, redactor)))
    return provider


def _without_extra(key: str, extra: str) -> BrokenSettings:
    return BrokenSettings(
        f"{key} needs the extra goat-mcp[{extra}]", f"Run: pip install 'goat-mcp[{extra}]', or leave {key} out."
    )
