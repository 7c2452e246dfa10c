"""No answer keeps its caller waiting because a client cannot read it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from goat_mcp.core.json_values import is_deeper
from goat_mcp.server.result_compatibility import MAX_DEPTH, downgraded_result, sanitized_answer, sanitized_result

GOOD = {"type": "text", "text": "good 🐐"}


def answer(*blocks: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"content": list(blocks), "isError": False, "resultType": "complete", **members}


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


def test_one_in_order_is_the_same_object() -> None:
    whole = answer(GOOD, structuredContent=nested(100))

    assert sanitized_result(whole) is whole


def test_half_a_surrogate_pair_is_shown_as_its_escape_wherever_it_is() -> None:
    odd = answer(
        {"type": "text", "text": "cut \ud83d emoji"}, structuredContent={"\udfff": ["a\ud800"]}, _meta={"a": 1}
    )

    assert sanitized_result(odd) == answer(
        {"type": "text", "text": r"cut \ud83d emoji"}, structuredContent={r"\udfff": [r"a\ud800"]}, _meta={"a": 1}
    )


def test_numbers_that_json_lacks_are_null() -> None:
    odd = answer(GOOD, structuredContent={"a": [float("nan"), float("inf"), 1.5]})

    assert sanitized_result(odd)["structuredContent"] == {"a": [None, None, 1.5]}


@pytest.mark.parametrize("depth", [199, 250, 900, 5000])
def test_what_lies_too_deep_is_left_out_and_told(depth: int) -> None:
    odd = answer(GOOD, {"type": "text", "text": "x", "_meta": nested(depth)}, structuredContent=nested(depth))

    repaired = sanitized_result(odd)

    assert repaired.keys() == {"content", "isError", "resultType"}
    good, block, structured = repaired["content"]
    assert good == GOOD
    assert "a block is left out: more than 190" in block["text"]
    assert "structuredContent is left out: more than 190" in structured["text"]
    json.dumps(repaired)


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("depth", [250, 900])
def test_a_protocol_revision_has_a_say_on_what_lies_deep_without_raising(version: str, depth: int) -> None:
    repaired = downgraded_result(answer(GOOD, structuredContent=nested(depth)), version)

    assert repaired["content"] == [GOOD]


def test_answers_about_resources_and_prompts_are_mended_in_the_same_way() -> None:
    whole = {"contents": [{"uri": "a://b", "text": "good 🐐"}]}
    odd = {"contents": [{"uri": "a://b", "text": "cut \ud83d", "_meta": {"\udfff": float("nan"), "deep": nested(900)}}]}

    repaired: Any = sanitized_answer(odd)

    (content,) = repaired["contents"]
    assert sanitized_answer(whole) is whole
    assert (content["text"], content["_meta"][r"\udfff"]) == (r"cut \ud83d", None)
    assert not is_deeper(repaired, MAX_DEPTH)
