"""A message that two readers could read differently is refused, under the id of the request it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.server.stdio.frame_validation import Fault, find_fault

PARSE_ERROR, INVALID_REQUEST = -32700, -32600


def call(arguments: str, request_id: str = "7") -> bytes:
    return (
        f'{{"jsonrpc":"2.0","id":{request_id},"method":"tools/call",'
        f'"params":{{"name":"Read","arguments":{arguments}}}}}'
    ).encode()


@pytest.mark.parametrize(
    ("frame", "code", "says"),
    [
        pytest.param(call('{"command":"echo a","command":"echo b"}'), INVALID_REQUEST, '"command" twice', id="twice"),
        pytest.param(call('{"a":[{"b":1,"\\u0062":1}]}'), INVALID_REQUEST, '"b" twice', id="twice, once escaped"),
        pytest.param(call('{"file_path":"f","limit":NaN}'), PARSE_ERROR, "NaN", id="PR-10"),
        pytest.param(call('{"limit":-Infinity}'), PARSE_ERROR, "Infinity", id="infinite"),
        pytest.param(call('{"limit":1e400}'), PARSE_ERROR, "1e400", id="infinite in digits"),
        pytest.param(call('{"file_path":"\\ud83d"}'), INVALID_REQUEST, "Unicode", id="half of a surrogate pair"),
        pytest.param(call('{"limit":' + "9" * 5000 + "}"), INVALID_REQUEST, "4300 digits", id="giant integer"),
        pytest.param(call('{"id":8,"limit":NaN}'), PARSE_ERROR, "NaN", id="another id inside"),
        pytest.param(call("[" * 300 + "]" * 300), INVALID_REQUEST, "nested", id="300 deep"),
        pytest.param(call("[" * 200_000 + "]" * 200_000), INVALID_REQUEST, "nested", id="200,000 deep"),
    ],
)
def test_a_message_with_a_fault_is_refused_for_the_request_it_was(frame: bytes, code: int, says: str) -> None:
    fault = find_fault(frame)

    assert fault is not None
    assert (fault.code, fault.request_id) == (code, 7)
    assert says in fault.message
    assert len(fault.answer()) < 1000


# R-SCHEMA-1
@pytest.mark.parametrize("request_id", ["true", "null", "5004.0", "[7]", "{}"])
def test_a_request_whose_id_is_none_is_answered_instead_of_taken_for_a_notification(request_id: str) -> None:
    fault = find_fault(call("{}", request_id))

    assert fault == Fault(INVALID_REQUEST, "the id of a request must be an integer or a text", None)


def test_answers_to_nobody_and_notifications_are_no_requests() -> None:
    assert find_fault(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"x"}}') is None
    assert find_fault(b'{"jsonrpc":"2.0","method":"notifications/initialized"}') is None


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        pytest.param(b"{not json", PARSE_ERROR, id="PR-01"),
        pytest.param(b"[" * 200_000, INVALID_REQUEST, id="PR-07"),
        pytest.param(b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}', INVALID_REQUEST, id="PR-11"),
        pytest.param(b'{"id":7,"id":8,"method":"ping"}', INVALID_REQUEST, id="two ids"),
        pytest.param(b'[{"id":7,"x":1,"x":2}]', INVALID_REQUEST, id="a batch"),
        pytest.param(b'{"id":"\\ud800","method":"ping"}', INVALID_REQUEST, id="an id that is no text"),
        pytest.param(b'{"id":{"a":1,"a":2}}', INVALID_REQUEST, id="an id that is no id"),
        pytest.param(b'{"id":7,"p":"\xed\xa0\x80"}', PARSE_ERROR, id="a surrogate in UTF-8"),
        pytest.param('{"id":7}'.encode("utf-16"), PARSE_ERROR, id="UTF-16"),
        pytest.param(call('{"id":8,"a":' + "[" * 5000 + "]" * 5000 + "}"), INVALID_REQUEST, id="too deep to tell"),
    ],
)
def test_an_id_that_is_not_certain_is_not_guessed(frame: bytes, code: int) -> None:
    fault = find_fault(frame)

    assert fault is not None
    assert (fault.code, json.loads(fault.answer())["id"]) == (code, None)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.booleans())
def test_sound_json_passes_however_it_is_written(value: object, ascii: bool) -> None:
    assert find_fault(json.dumps(value, ensure_ascii=ascii).encode("utf-8")) is None


def test_the_same_name_in_two_objects_and_150_levels_are_no_fault() -> None:
    assert find_fault(call('[{"a":{"a":1}},{"a":1},' + "[" * 150 + "9" * 4000 + "]" * 150 + "]")) is None


def test_the_answer_is_a_json_rpc_error() -> None:
    assert json.loads(Fault(INVALID_REQUEST, "why", "x").answer()) == {
        "jsonrpc": "2.0",
        "id": "x",
        "error": {"code": INVALID_REQUEST, "message": "why"},
    }
