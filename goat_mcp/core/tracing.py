"""Whether somebody traces calls: then requests take the ways of the SDK that make spans."""

from __future__ import annotations

from opentelemetry import trace


def is_traced() -> bool:
    """Whether this process has what sends spans, ours or that of a program that embeds us."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
