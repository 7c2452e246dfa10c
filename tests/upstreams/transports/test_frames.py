"""The wire of a stdio upstream, byte by byte."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from goat_mcp.upstreams.faults import FaultKind, FaultMarks
from goat_mcp.upstreams.transports.frames import FrameReader, encode_frame

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def reader(max_frame_bytes: int = 1000) -> FrameReader:
    return FrameReader(FaultMarks(), max_frame_bytes)


@given(st.lists(st.dictionaries(st.text(), JSON, max_size=3), max_size=4), st.data())
def test_results_arrive_unchanged_however_the_bytes_are_cut(results: list[dict[str, Any]], data: st.DataObject) -> None:
    wire = b"".join(
        json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode() + b"\n"
        for number, result in enumerate(results)
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=6)))
    frames = reader(1_000_000)

    messages = [
        message
        for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True)
        for message in frames.feed(wire[start:end])
    ]

    assert [(message.id, message.result) for message in messages if isinstance(message, JSONRPCResponse)] == list(
        enumerate(results)
    )
    assert frames.junk_lines == 0


@given(st.lists(st.binary(max_size=40), max_size=10))
def test_no_bytes_stop_the_reader(lines: list[bytes]) -> None:
    frames = reader(30)
    for line in lines:
        list(frames.feed(line))
    list(frames.feed(b"\n"))

    assert [type(message) for message in frames.feed(b'{"jsonrpc":"2.0","method":"x"}\n')] == [JSONRPCNotification]


@pytest.mark.parametrize(
    "line",
    [
        b"Welcome!",
        b"[1]",
        b"{}",
        b'{"jsonrpc":"2.0"}',
        b'{"method":3}',
        b'{"id":true,"result":{}}',
        b"\xff\xfe",
        b'"x"',
    ],
)
def test_what_is_no_message_is_counted_and_dropped(line: bytes) -> None:
    frames = reader()

    messages = list(frames.feed(line + b'\n\n{"jsonrpc":"2.0","method":"m"}\n'))

    assert [type(message) for message in messages] == [JSONRPCNotification]
    assert frames.junk_lines == 1


# ISO-3
@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","id":12,"result":{"pad":"%s"}}',
        b'{"result":{"id":99,"pad":"%s"},"jsonrpc":"2.0","id":12}',
        b'{"result":{"pad":"%s"},"id":12,"jsonrpc":"2.0"}',
    ],
)
def test_a_frame_over_the_limit_fails_the_request_it_answers(frame: bytes) -> None:
    frames = reader()

    messages = list(frames.feed(frame % (b"x" * 5000) + b"\n"))

    (error,) = messages
    assert isinstance(error, JSONRPCError) and error.id == 12
    fault = frames.marks.read(error.error.data)
    assert fault is not None and fault.kind is FaultKind.MALFORMED
    assert (frames.oversized_frames, frames.junk_lines) == (1, 0)
    assert len(list(frames.feed(b'{"jsonrpc":"2.0","method":"m"}\n'))) == 1


def held_bytes(frames: FrameReader) -> int:
    return len(frames._held)  # pyright: ignore[reportPrivateUsage]  # what is held is the point


@pytest.mark.parametrize("begun", [b"x", b'{"jsonrpc":"2.0","id":12,"result":{"pad":"', b" "])
def test_a_line_that_never_ends_is_not_held(begun: bytes) -> None:
    frames = reader()
    list(frames.feed(begun))

    for _ in range(1000):
        list(frames.feed(begun[:1] * 1000))

    assert held_bytes(frames) == 0


def test_nothing_is_kept_of_a_line_that_begins_as_no_message() -> None:
    frames = reader()

    messages = list(frames.feed(b"Listening on port 80"))
    held = held_bytes(frames)
    messages += frames.feed(b' and 81\n{"jsonrpc":"2.0","method":"m"}\n')

    assert (held, [type(message) for message in messages]) == (0, [JSONRPCNotification])
    assert (frames.oversized_frames, frames.junk_lines) == (0, 1)


def test_words_before_an_answer_on_its_line_fail_the_request_it_answers() -> None:
    frames = reader()

    messages = list(frames.feed(b"ready! "))
    messages += frames.feed(b'{"result":{},"jsonrpc":"2.0","id":12}\n')

    assert [(type(message), message.id) for message in messages if isinstance(message, JSONRPCError)] == [
        (JSONRPCError, 12)
    ]
    assert frames.junk_lines == 1


def test_who_waits_for_a_frame_over_the_limit_hears_of_it_before_it_ends_and_once() -> None:
    frames = reader()

    before = list(frames.feed(b'{"jsonrpc":"2.0","id":12,"result":{"pad":"' + b"x" * 1000))
    after = list(frames.feed(b"x" * 1000 + b'"}}\n{"jsonrpc":"2.0","method":"m"}\n'))

    assert [message.id for message in before if isinstance(message, JSONRPCError)] == [12]
    assert [type(message) for message in after] == [JSONRPCNotification]
    assert frames.oversized_frames == 1


def test_a_question_over_the_limit_fails_no_request_of_ours() -> None:
    frames = reader()

    messages = list(frames.feed(b'{"jsonrpc":"2.0","id":12 ,"method":"elicitation/create","params":"' + b"x" * 2000))
    messages += frames.feed(b'"}\n')

    assert messages == []
    assert frames.oversized_frames == 1


@pytest.mark.parametrize("result", [b"7", b"[]", b"null"])
def test_a_result_that_is_no_object_fails_its_request(result: bytes) -> None:
    frames = reader()

    (error,) = frames.feed(b'{"jsonrpc":"2.0","id":3,"result":' + result + b"}\n")

    assert isinstance(error, JSONRPCError) and error.id == 3
    assert frames.marks.read(error.error.data) is not None


def test_an_upstream_cannot_forge_a_fault() -> None:
    frames = reader()

    (error,) = frames.feed(
        b'{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"m","data":{"goat-mcp/fault":"abc"}}}\n'
    )

    assert isinstance(error, JSONRPCError)
    assert frames.marks.read(error.error.data) is None


@given(st.dictionaries(st.text(), JSON, max_size=3))
def test_what_we_write_is_one_line_of_the_same_json(params: dict[str, Any]) -> None:
    frame = encode_frame(JSONRPCRequest(jsonrpc="2.0", id=1, method="m", params=params))

    assert frame.count(b"\n") == 1
    assert json.loads(frame) == {"jsonrpc": "2.0", "id": 1, "method": "m", "params": params}


def test_half_a_surrogate_pair_in_a_notice_or_a_question_is_shown_as_its_escape() -> None:
    frames = reader()
    notice, question = frames.feed(
        b'{"jsonrpc":"2.0","method":"n","params":{"\\udfff":["\\ud83d"]}}\n'
        b'{"jsonrpc":"2.0","id":"\\ud83d","method":"q","params":{"a":"\\ud83d","b":"\\ud83d\\ude00"}}\n'
    )

    assert isinstance(notice, JSONRPCNotification) and notice.params == {r"\udfff": [r"\ud83d"]}
    assert isinstance(question, JSONRPCRequest) and question.id == "\ud83d"
    assert question.params == {"a": r"\ud83d", "b": "😀"}


def test_half_a_surrogate_pair_in_a_large_notice_is_shown_as_its_escape_and_in_a_large_answer_stays() -> None:
    gc.enable()  # a command that ran in this process before may have left it off
    size = 2 * 1024 * 1024
    large = b'"large":"' + b"x" * size + b'"'
    halves = b'"\\udfff":["\\ud83d",{"\\ud83d":1}],"b":"\\ud83d\\ude00"'
    notice, question, answer = reader(2 * size).feed(
        b'{"jsonrpc":"2.0","method":"n","params":{' + halves + b"," + large + b"}}\n"
        b'{"jsonrpc":"2.0","id":"\\ud83d","method":"q","params":{' + large + b"," + halves + b"}}\n"
        b'{"jsonrpc":"2.0","id":1,"result":{"method":"n","params":{' + large + b"," + halves + b"}}}\n"
    )

    shown = {r"\udfff": [r"\ud83d", {r"\ud83d": 1}], "b": "😀", "large": "x" * size}
    as_it_came = {"\udfff": ["\ud83d", {"\ud83d": 1}], "b": "😀", "large": "x" * size}
    assert isinstance(notice, JSONRPCNotification) and notice.params == shown
    assert isinstance(question, JSONRPCRequest) and (question.id, question.params) == ("\ud83d", shown)
    assert isinstance(answer, JSONRPCResponse) and answer.result["params"] == as_it_came
    assert gc.isenabled()


@pytest.mark.parametrize("half", [b"", b'"\\ud83d",'])
def test_an_answer_that_is_nested_too_deeply_fails_its_request(half: bytes) -> None:
    frames = reader(100_000)
    (answer,) = frames.feed(b'{"jsonrpc":"2.0","id":1,"result":{"a":[' + half + b"[" * 5000 + b"]" * 5000 + b"]}}\n")

    assert isinstance(answer, JSONRPCError)
    assert answer.error.message.startswith("its answer is not JSON")


def test_a_notice_with_half_a_surrogate_pair_that_is_nested_too_deeply_is_junk() -> None:
    frames = reader(100_000)
    deep = b"[" * 700 + b"]" * 700

    assert not list(frames.feed(b'{"jsonrpc":"2.0","method":"n","params":{"a":["\\ud83d",' + deep + b"]}}\n"))
    assert frames.junk_lines == 1


def test_half_a_surrogate_pair_survives_both_ways() -> None:
    frame = encode_frame(JSONRPCRequest(jsonrpc="2.0", id=1, method="m", params={"t": "\ud83d"}))
    frames = reader()
    (answer,) = frames.feed(b'{"jsonrpc":"2.0","id":1,"result":{"t":"\\ud83d"}}\n')

    assert json.loads(frame)["params"] == {"t": "\ud83d"}
    assert isinstance(answer, JSONRPCResponse) and answer.result == {"t": "\ud83d"}
