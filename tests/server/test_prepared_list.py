"""An answer with prepared entries is the same answer, and its entries are written as JSON once."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
import pytest
from pydantic_core import PydanticSerializationError

from goat_mcp.server.prepared_list import PreparedList, prepared_frame

ENTRIES: list[dict[str, Any]] = [{"name": "a", "description": 'quotes " and ünicode'}, {"name": "b", "_meta": {}}]


def answer(entries: list[Any], **others: Any) -> types.JSONRPCResponse:
    return types.JSONRPCResponse(jsonrpc="2.0", id=7, result={**others, "tools": entries})


@pytest.mark.parametrize("others", [{}, {"ttlMs": 60_000, "cacheScope": "private"}])
def test_the_frame_means_the_same_answer(others: dict[str, Any]) -> None:
    frame = prepared_frame(answer(PreparedList(ENTRIES), **others))

    assert frame is not None
    assert json.loads(frame) == {"jsonrpc": "2.0", "id": 7, "result": {**others, "tools": ENTRIES}}


def test_the_entries_are_written_once_for_all_answers() -> None:
    tool = {"name": "a"}
    entries = PreparedList([tool])
    first = prepared_frame(answer(entries))
    tool["name"] = "changed behind its back"

    assert prepared_frame(answer(entries)) == first


def test_other_answers_have_no_such_frame() -> None:
    assert prepared_frame(answer(list(ENTRIES))) is None
    assert prepared_frame(types.JSONRPCNotification(jsonrpc="2.0", method="x")) is None


def test_a_text_that_is_no_unicode_is_left_to_who_escapes_it() -> None:
    with pytest.raises(PydanticSerializationError):
        prepared_frame(answer(PreparedList([{"name": "\ud800"}])))
