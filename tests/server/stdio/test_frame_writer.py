"""An id stands for one request at a time (PR-12)."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest

from goat_mcp.server.stdio.frame_validation import Fault
from goat_mcp.server.stdio.frame_writer import OpenRequests


def request(request_id: int | str) -> types.JSONRPCRequest:
    return types.JSONRPCRequest(jsonrpc="2.0", id=request_id, method="ping")


def result(request_id: int | str) -> types.JSONRPCResponse:
    return types.JSONRPCResponse(jsonrpc="2.0", id=request_id, result={})


def cancelled(**params: Any) -> types.JSONRPCNotification:
    return types.JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=params)


@pytest.mark.parametrize("again", [1, "1"])
def test_a_second_request_under_an_open_id_is_refused_under_that_id(again: int | str) -> None:
    requests = OpenRequests()
    assert requests.arrives(request(1)) is None

    refusal = requests.arrives(request(again))

    assert refusal == Fault(-32600, "this id belongs to a request that has not been answered yet", again)


def test_an_answered_id_may_be_used_again() -> None:
    requests = OpenRequests()
    error = types.JSONRPCError(jsonrpc="2.0", id=1, error=types.ErrorData(code=-32601, message="no"))

    for answer in (result(1), error):
        assert requests.arrives(request(1)) is None
        requests.leaves(answer)

    assert requests.arrives(request(1)) is None


def test_a_cancelled_request_is_over() -> None:
    requests = OpenRequests()
    requests.arrives(request(1))

    requests.arrives(cancelled(requestId=1))

    assert requests.arrives(request(1)) is None


def test_other_ids_and_answers_to_our_own_requests_are_no_concern() -> None:
    requests = OpenRequests()
    requests.arrives(request(1))

    arrived = [requests.arrives(message) for message in (request(2), result(1), cancelled(), cancelled(requestId=None))]

    assert arrived == [None] * 4
    assert requests.arrives(request(1)) is not None
