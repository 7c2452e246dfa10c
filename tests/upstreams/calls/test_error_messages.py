"""What is said of a fault between us and an upstream: to a call, which may have run, and to a request that reads."""

from __future__ import annotations

import pytest

from goat_mcp.core.errors import ErrorCode
from goat_mcp.upstreams.calls.attempts import error_message
from goat_mcp.upstreams.config.entry import StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.faults import Fault, FaultKind

CONFIG = UpstreamConfig(name="up", server="up", target=StdioLaunch("server"))


@pytest.mark.parametrize(
    ("kind", "detail", "of_a_call", "of_a_read"),
    [
        (FaultKind.AUTH_REQUIRED, "HTTP 401", ErrorCode.AUTH, ErrorCode.AUTH),
        (FaultKind.UNREACHABLE, "no route", ErrorCode.UPSTREAM_DOWN, ErrorCode.UPSTREAM),
        (FaultKind.SESSION_LOST, "HTTP 404", ErrorCode.UPSTREAM_DOWN, ErrorCode.UPSTREAM),
        (FaultKind.MALFORMED, "its answer is too long", ErrorCode.UPSTREAM, ErrorCode.UPSTREAM),
        (FaultKind.HTTP_STATUS, "HTTP 429", ErrorCode.RATE, ErrorCode.RATE),
        (FaultKind.HTTP_STATUS, "HTTP 500", ErrorCode.OUTCOME_UNKNOWN, ErrorCode.UPSTREAM),
    ],
)
def test_a_call_that_may_have_run_is_an_unknown_outcome_and_a_read_is_none(
    kind: FaultKind, detail: str, of_a_call: ErrorCode, of_a_read: ErrorCode
) -> None:  # LIF-6
    fault = Fault(kind, detail)

    call, read = (error_message(CONFIG, fault, is_call=is_call) for is_call in (True, False))

    assert (call.code, read.code) == (of_a_call, of_a_read)
    assert all("up" in error.message and detail in error.message for error in (call, read))
    proved = kind in (FaultKind.AUTH_REQUIRED, FaultKind.UNREACHABLE, FaultKind.SESSION_LOST)
    assert call.message.endswith("; the call did not run") is proved
    assert ("outcome" in (call.facts or {})) is (of_a_call is ErrorCode.OUTCOME_UNKNOWN)
    assert "call" not in read.message


def test_a_detail_that_an_upstream_wrote_does_not_fill_the_error() -> None:
    fault = Fault(FaultKind.LOST, "x" * 5_000)

    messages = [error_message(CONFIG, fault, is_call=is_call).message for is_call in (True, False)]

    assert all(len(message) < 500 for message in messages)
