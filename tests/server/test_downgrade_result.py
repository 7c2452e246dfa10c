"""Odd members of an upstream's result cost themselves, never the rest of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp_types import methods

from goat_mcp.server.result_compatibility import downgraded_result, is_known_everywhere

both_eras = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
CALL = "tools/call"
GOOD = {"type": "text", "text": "good"}


def answer(*blocks: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"content": list(blocks), "isError": False, "resultType": "complete", **members}


@both_eras
def test_a_result_in_order_is_the_same_object(version: str) -> None:
    whole = answer(GOOD, structuredContent={"a": None}, _meta={"vendor/key": 1})
    assert downgraded_result(whole, version) is whole


@pytest.mark.parametrize("version", sorted({version for method, version in methods.SERVER_RESULTS if method == CALL}))
@pytest.mark.parametrize(
    "structured",
    [{}, {"result": None}, {"a": [None, {"b": None, "_meta": {"c": None}}], "é": 1.5, "": True, "isError": 3}],
    ids=["empty", "null", "nested"],
)
@pytest.mark.parametrize("blocks", [(), (GOOD,), (GOOD, {"type": "text", "text": "Pärís \u2028"})], ids=len)
def test_an_answer_that_passes_unasked_is_one_that_no_revision_would_change(
    version: str, structured: dict[str, Any], blocks: tuple[dict[str, Any], ...]
) -> None:
    whole = answer(*blocks, structuredContent=structured)

    assert is_known_everywhere(whole)
    assert {**methods.serialize_server_result(CALL, version, whole), "resultType": "complete"} == whole


@pytest.mark.parametrize(
    "other",
    [
        answer(GOOD),
        answer(GOOD, structuredContent=[1]),
        answer(GOOD, structuredContent={}, _meta={}),
        answer(GOOD, structuredContent={}, vendor=1),
        answer({**GOOD, "annotations": {}}, structuredContent={}),
        answer({"type": "text", "text": 5}, structuredContent={}),
        answer({"type": "image", "data": "", "mimeType": "image/png"}, structuredContent={}),
        {**answer(GOOD, structuredContent={}), "resultType": "input_required"},
    ],
)
def test_of_any_other_answer_the_revision_is_asked(other: dict[str, Any]) -> None:
    assert not is_known_everywhere(other)


# REL-4
@both_eras
@pytest.mark.parametrize(
    "odd",
    [
        {"type": "text", "text": "x", "annotations": {"priority": 7}},
        {"type": "image", "data": 5, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": 5}},
        {"type": "resource_link", "uri": "x://y", "name": 5},
    ],
    ids=lambda block: block["type"],
)
def test_an_unreadable_block_becomes_its_json_beside_the_good_ones(version: str, odd: dict[str, Any]) -> None:
    repaired = downgraded_result(answer(odd, GOOD, structuredContent={"a": 1}), version)

    assert json.loads(repaired["content"][0]["text"]) == odd
    assert repaired["content"][1] == GOOD
    assert repaired["structuredContent"] == {"a": 1}


def test_structured_content_that_a_handshake_client_cannot_read_is_left_out_for_it() -> None:
    whole = answer(GOOD, structuredContent=[1])

    assert "structuredContent" not in downgraded_result(whole, "2025-11-25")
    assert downgraded_result(whole, "2025-11-25")["content"] == [GOOD]


@pytest.mark.parametrize("listed", [[1, "é"], []])
def test_structured_content_that_is_all_there_is_reaches_a_handshake_client_as_text(listed: list[Any]) -> None:  # REL-4
    whole = answer(structuredContent=listed)

    repaired = downgraded_result(whole, "2025-11-25")

    (block,) = repaired["content"]
    assert (block["type"], json.loads(block["text"])) == ("text", listed)
    assert downgraded_result(whole, "2026-07-28") is whole
