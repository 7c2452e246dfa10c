"""A span for each call, also for those that agents and meta-tools make: between the SDK's span of the request and its
span of what an upstream is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry import trace

from goat_mcp.calls.extensions import CallNext
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, UpstreamError
from goat_mcp.core.result import ToolResult
from goat_mcp.core.spec import ToolSpec


class CallSpans:
    """An extension around each call, the outermost. Arguments and results are in no span."""

    name = "tracing"

    def __init__(self, tracer: trace.Tracer | None = None) -> None:
        self._tracer = tracer or trace.get_tracer("goat-mcp")

    async def __call__(
        self, spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext, call_next: CallNext
    ) -> ToolResult:
        tool = spec.rule_name if spec.is_known else "unknown"
        attributes = {"goat_mcp.tool": tool, "goat_mcp.call_id": ctx.call_id, "goat_mcp.agent_depth": ctx.rights.depth}
        with self._tracer.start_as_current_span(
            f"call {tool}", attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                result = await call_next(arguments)
            except UpstreamError as refused:
                _failed(span, str(refused.code))
                raise
            except Exception:
                _failed(span, str(ErrorCode.INTERNAL))
                raise
            if result.is_error:
                _failed(span, result.error_code or str(ErrorCode.TOOL))
            return result


def _failed(span: trace.Span, code: str) -> None:
    span.set_attribute("error.type", code)
    span.set_status(trace.StatusCode.ERROR)
