"""Large JSON in small steps: the same values as in one go."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goat_mcp.upstreams.links.frames import loads
from goat_mcp.upstreams.links.large_frame import PIECE_BYTES, parsed_in_steps


def stepped(line: bytes) -> tuple[Any, int]:
    """What it is, and in how many steps that was found."""
    steps: Generator[None, None, Any] = parsed_in_steps(line, loads)
    number = 0
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value, number
        number += 1


def test_a_long_text_is_read_in_pieces_and_is_the_same_text() -> None:
    result = {"content": [{"type": "text", "text": 'line of "text"\n' * 200_000}, {"type": "text", "text": "short"}]}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()

    value, steps = stepped(line)

    assert value == {"jsonrpc": "2.0", "id": 1, "result": result}
    assert steps >= len(line) // PIECE_BYTES


@given(
    st.integers(0, 12),
    st.sampled_from(["é", "€", "\U0001f600", "\\", '"', "\n", "\ud83d", "\u2028", "\\ud83d", "\\\\"]),
    st.booleans(),
)
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_no_character_is_cut_in_two_at_the_end_of_a_piece(shift: int, character: str, escaped: bool) -> None:
    text = "x" * (PIECE_BYTES - shift) + character * 20_000
    line = json.dumps({"a": text, "b": [character]}, ensure_ascii=escaped or character == "\ud83d").encode()

    value, steps = stepped(line)

    assert value == {"a": text, "b": [character]}
    assert steps > 1


def test_a_long_name_and_several_long_texts_keep_their_places() -> None:
    value = {"n" * 100_000: ["a" * 100_000, {"deep": ["b" * 300_000, 1, None, True]}], "short": "c"}

    assert stepped(json.dumps(value).encode())[0] == value


def test_many_small_values_are_read_in_one_go() -> None:
    value = {"rows": [{"id": number, "name": f"n{number}"} for number in range(50_000)]}

    assert stepped(json.dumps(value).encode()) == (value, 0)


@pytest.mark.parametrize(
    "broken", [b'{"a":"%s', b'{"a":"%s\\', b'{"a":"%s"', b'{"a":"%s"]}', b'{"a":"%s\\q"}', b'{"a":%s}']
)
def test_what_is_no_json_is_refused_like_anything_that_is_none(broken: bytes) -> None:
    with pytest.raises(ValueError):
        stepped(broken % (b"x" * 300_000))
