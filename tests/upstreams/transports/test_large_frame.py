"""Large JSON in small steps: the same values as in one go."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goat_mcp.upstreams.transports.json_parts import JsonParts
from goat_mcp.upstreams.transports.large_frame import MAX_DEPTH, PIECE_BYTES, RUN_BYTES, parsed_in_steps
from tests.repetitions import examples

SMALL_RUN = 24
"""Bytes of a run, so that short texts are cut as long ones are."""
KEYS = st.sampled_from(["", "a", "é", "params", "method", '"', "\\", "]},", "\ud800", "n" * 30])
TEXTS = st.one_of(
    KEYS, st.text(max_size=8), st.sampled_from(["\udfff", "\U0001f600", "\ud83d\\ude00", "x" * 60, "[{,:"])
)
NUMBERS = st.one_of(
    st.integers(), st.integers(-(10**60), 10**60), st.floats(allow_nan=False), st.sampled_from([-0.0, 1e308, 5e-324])
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=40,
)
CONTAINERS = st.lists(VALUES, max_size=8) | st.dictionaries(KEYS, VALUES, max_size=8)
QUICK = settings(
    deadline=None,
    max_examples=examples(300),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def stepped(line: bytes) -> tuple[Any, int, int]:
    """What it is, in how many steps that was found, and the size of the largest part that was parsed in one."""
    sizes = [0]
    parts = JsonParts()

    def part(text: bytes) -> Any:
        sizes.append(len(text))
        return parts.loads(text)

    steps: Generator[None, None, Any] = parsed_in_steps(line, part)
    number = 0
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value, number, max(sizes)
        number += 1


def told(line: bytes | bytearray) -> str:
    """What it says in one go, to the last bit; that it is refused, where it is."""
    try:
        return repr(JsonParts().loads(line))
    except ValueError:
        return "refused"


def told_in_steps(line: bytes) -> str:
    try:
        return repr(stepped(line)[0])
    except ValueError:
        return "refused"


@pytest.fixture
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goat_mcp.upstreams.transports.large_frame.RUN_BYTES", SMALL_RUN)


def test_a_long_text_is_read_in_pieces_and_is_the_same_text() -> None:
    result = {"content": [{"type": "text", "text": 'line of "text"\n' * 200_000}, {"type": "text", "text": "short"}]}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()

    value, steps, _ = stepped(line)

    assert value == {"jsonrpc": "2.0", "id": 1, "result": result}
    assert steps >= len(line) // PIECE_BYTES // 4


@given(
    st.integers(0, 12),
    st.sampled_from(["é", "€", "\U0001f600", "\\", '"', "\n", "\ud83d", "\u2028", "\\ud83d", "\\\\"]),
    st.booleans(),
)
@settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
def test_no_character_is_cut_in_two_at_the_end_of_a_piece(shift: int, character: str, escaped: bool) -> None:
    text = "x" * (PIECE_BYTES - shift) + character * 20_000
    line = json.dumps({"a": text, "b": [character]}, ensure_ascii=escaped or character == "\ud83d").encode()

    value, steps, _ = stepped(line)

    assert value == {"a": text, "b": [character]}
    assert steps >= 1


def test_a_long_name_and_several_long_texts_keep_their_places() -> None:
    value = {"n" * 100_000: ["a" * 100_000, {"deep": ["b" * 300_000, 1, None, True]}], "short": "c"}

    assert stepped(json.dumps(value).encode())[0] == value


MANY: list[Any] = [
    {"rows": [{"id": number, "name": f"n{number}", "tags": [[], {}]} for number in range(20_000)]},
    {"numbers": [1] * 300_000},
    {"names": {f"n{number}": number for number in range(50_000)}},
    {"deep": [[[[[{"a": [[[{"b": 1}]]]}]]]]] * 20_000},
    {"deeper": [json.loads("[" * 90 + "]" * 90)] * 3_000},
    [{"in one list": [True, None, "x" * 100] * 5_000}],
]


# ISO-1
@pytest.mark.parametrize("small", MANY, ids=["rows", "numbers", "names", "deep", "deeper", "list"])
def test_of_many_small_values_never_more_than_a_little_is_parsed_in_one_step(small: Any) -> None:
    line = json.dumps(small).encode()

    value, steps, largest = stepped(line)

    assert value == small
    assert steps >= len(line) // RUN_BYTES // 2
    assert largest <= RUN_BYTES + 2


@pytest.mark.usefixtures("small_runs")
@given(CONTAINERS, st.booleans(), st.sampled_from([None, 1, "\t"]))
@QUICK
def test_what_is_said_in_steps_is_what_is_said_in_one_go(value: Any, escaped: bool, indent: int | str | None) -> None:
    """Numbers of any size, lone surrogates, names that come twice, and texts that look like JSON."""
    line = json.dumps(value, ensure_ascii=escaped, indent=indent).encode("utf-8", "surrogatepass")

    assert told_in_steps(line) == told(line)


@pytest.mark.usefixtures("small_runs")
@given(CONTAINERS, st.data())
@QUICK
def test_what_is_broken_is_refused_in_steps_where_it_is_in_one_go(value: Any, data: st.DataObject) -> None:
    line = bytearray(json.dumps({"k": value, "l": [1, 2.5e3, "x" * 40]}).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(line) - 1))
        match data.draw(st.sampled_from(["leave out", "put in", "twice"])):
            case "leave out":
                del line[at]
            case "put in":
                line[at:at] = data.draw(st.sampled_from([b",", b"]", b"}", b"[", b"{", b'"', b":", b" ", b"0", b"\\"]))
            case _:
                line[at:at] = line[at : at + 12]

    assert told_in_steps(bytes(line)) == told(line)


@pytest.mark.usefixtures("small_runs")
@pytest.mark.parametrize(
    "line",
    [
        b'{"a":1,"b":{"c":"' + b"x" * 40 + b'"},"a":2,"b":3,"a":{"d":"' + b"y" * 40 + b'"}}',
        b'{"a":[1,2,3],"b":-0.0,"c":1E400,"d":123456789012345678901234567890,"e":0.1,"f":NaN,"g":-Infinity}',
        b"[" + b" " * 90 + b"1" + b"\n" * 90 + b"," + b"2" * 90 + b" ]",
        b'[1,2,"' + b"\\ud83d\\ude00" * 30 + b'","\\ud83d","\xed\xa0\x80"]',
        b"[" + b"9" * 5_000 + b",1]",
        b"[1]\x00",
        b"[[[" * 20 + b"1]" + b"]]" * 29 + b"]",
        b"{" + b'"k":{' * 60 + b"}" * 61,
        b'{"a":"' + b"x" * 40 + b'" "b":1}',
        b'{"a":"' + b"x" * 40 + b'",}',
        b'["' + b"x" * 40 + b'" , , 1]',
        b'["' + b"x" * 40 + b'"}',
        b'{"' + b"x" * 40 + b'":}',
        b'{"' + b"x" * 40 + b'"}',
        b"[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,]",
        b'[ , "' + b"x" * 40 + b'"]',
        b'{ , "k":"' + b"x" * 40 + b'"}',
        b"[" * 40 + b'"' + b"]" * 60 + b"x" * 5_000 + b'"' + b"]" * 40,
    ],
)
def test_what_few_texts_say_is_the_same_in_steps(line: bytes) -> None:
    assert told_in_steps(line) == told(line)


@pytest.mark.parametrize(
    "broken", [b'{"a":"%s', b'{"a":"%s\\', b'{"a":"%s"', b'{"a":"%s"]}', b'{"a":"%s\\q"}', b'{"a":%s}']
)
def test_what_is_no_json_is_refused_like_anything_that_is_none(broken: bytes) -> None:
    with pytest.raises(ValueError):
        stepped(broken % (b"x" * 300_000))


def test_what_is_nested_beyond_all_measure_is_refused() -> None:
    deep = b"[" * 600_000 + b"]" * 600_000

    with pytest.raises(ValueError, match="nested too deeply"):
        stepped(deep)
    value, _, _ = stepped(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    assert len(value) == 1
