"""The span of one call: its name and attributes, and how it shows a failure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode, get_current_span

from goat_mcp.calls.observability.call_spans import CallSpans
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.redaction import Redactor
from goat_mcp.core.result import ToolResult, error_result
from goat_mcp.core.spec import ToolSpec, unknown_tool
from goat_mcp.gateway.build.redacted_spans import RedactedSpans
from goat_mcp.tools.glob import Glob

pytestmark = pytest.mark.anyio
SECRET = "a-configured-secret-0123456789"


async def spans_of(spec: ToolSpec, outcome: ToolResult | Exception) -> list[ReadableSpan]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(RedactedSpans(exporter, Redactor([SECRET]))))

    async def run(arguments: Mapping[str, Any]) -> ToolResult:
        get_current_span().add_event(f"works with {SECRET}", {"why": f"because of {SECRET}"})
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    spans = CallSpans(provider.get_tracer("test"))
    try:
        await spans(spec, {"pattern": SECRET}, ToolContext(call_id="c1"), run)
    except UpstreamError as relayed:
        assert relayed is outcome
    return list(exporter.get_finished_spans())


async def test_a_call_is_a_span_without_its_arguments() -> None:
    (span,) = await spans_of(Glob.contract, ToolResult())

    assert span.name == "call Glob"
    assert dict(span.attributes or {}) == {"goat_mcp.tool": "Glob", "goat_mcp.call_id": "c1", "goat_mcp.agent_depth": 0}
    assert span.status.status_code is StatusCode.UNSET


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (error_result(ToolError(ErrorCode.STALE, "changed")), "E_STALE"),
        (ToolResult(is_error=True), "E_TOOL"),
        (UpstreamError(-32602, "no"), "-32602"),
    ],
)
async def test_a_failure_is_a_code_without_its_text(outcome: ToolResult | Exception, code: str) -> None:
    (span,) = await spans_of(Glob.contract, outcome)

    assert (span.attributes or {})["error.type"] == code
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)


async def test_a_name_that_a_client_made_up_is_in_no_span() -> None:
    (span,) = await spans_of(unknown_tool("made_up_by_a_client"), ToolResult())

    assert span.name == "call unknown"


async def test_a_secret_does_not_leave_with_a_span() -> None:
    (span,) = await spans_of(Glob.contract, ToolResult())

    assert SECRET not in span.to_json()
    assert "because of" in span.to_json()
