"""The spans of a hop between replicas: one where a request leaves, one where it comes in, both in the client's trace.

The trace travels in the signed headers of the hop. A request whose own `_meta` names a trace goes on in that one.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import cast

from opentelemetry import trace
from opentelemetry.propagate import extract, inject

from goat_mcp.core.tracing import is_traced

_TRACER = "goat-mcp"
_FIELDS = ("traceparent", "tracestate")


def trace_of(message: object) -> dict[str, str]:
    """What the `_meta` of a JSON-RPC request says of its trace."""
    meta = _member(_member(message, "params"), "_meta")
    found = {key: _member(meta, key) for key in _FIELDS}
    return {key: value for key, value in found.items() if isinstance(value, str)}


def _member(value: object, name: str) -> object:
    return cast("Mapping[str, object]", value).get(name) if isinstance(value, Mapping) else None


@contextmanager
def leaving(to: str, headers: Mapping[str, str]) -> Generator[Mapping[str, str]]:
    """Yields the headers to send, with the trace in them."""
    if not is_traced():
        yield headers
        return
    inside = trace.get_current_span().get_span_context().is_valid
    with trace.get_tracer(_TRACER).start_as_current_span(
        f"hop to {to}",
        context=None if inside else extract(headers),
        kind=trace.SpanKind.CLIENT,
        attributes={"goat_mcp.replica": to},
        record_exception=False,
    ):
        sent = dict(headers)
        inject(sent)
        yield sent


@contextmanager
def arriving(by: str, headers: Mapping[str, str]) -> Generator[None]:
    if not is_traced():
        yield
        return
    with trace.get_tracer(_TRACER).start_as_current_span(
        f"hop from {by}",
        context=extract(headers),
        kind=trace.SpanKind.SERVER,
        attributes={"goat_mcp.replica": by},
        record_exception=False,
    ):
        yield
