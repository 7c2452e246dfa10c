"""Spans on their way to a collector, without secrets: names and texts may quote what clients and upstreams sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import Status

from goat_mcp.core.redaction import Redactor


class RedactedSpans(SpanExporter):
    """Hands spans to `exporter` without what `redactor` knows or recognises as a secret."""

    def __init__(self, exporter: SpanExporter, redactor: Redactor) -> None:
        self._exporter = exporter
        self._redactor = redactor

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._exporter.export([self._redacted(span) for span in spans])

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)

    def _redacted(self, span: ReadableSpan) -> ReadableSpan:
        status = span.status
        if status.description:
            status = Status(status.status_code, self._redactor.text(status.description))
        return ReadableSpan(
            name=self._redactor.text(span.name),
            context=span.context,
            parent=span.parent,
            resource=span.resource,
            attributes=self._tree(span.attributes),
            events=[
                Event(self._redactor.text(event.name), self._tree(event.attributes), event.timestamp)
                for event in span.events
            ],
            links=span.links,
            kind=span.kind,
            status=status,
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=span.instrumentation_scope,
        )

    def _tree(self, attributes: Mapping[str, Any] | None) -> dict[str, Any]:
        return self._redactor.tree(dict(attributes or {}))
