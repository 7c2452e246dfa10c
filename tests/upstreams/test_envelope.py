"""`_meta` changes hops in one place."""

from __future__ import annotations

import json
from typing import Any

import mcp_types
import pytest

from goat_mcp.core.errors import ToolError
from goat_mcp.upstreams.calls.calls import relayed_result
from goat_mcp.upstreams.envelope import stamp_request, strip_result

RESERVED = [value for name, value in vars(mcp_types).items() if name.endswith("_META_KEY")]
PLANTED = {**dict.fromkeys(RESERVED, "planted"), "io.modelcontextprotocol/future": "planted", "progressToken": 3}
PASSING = {"traceparent": "00-1", "vendor/x": None}


# REL-5
@pytest.mark.parametrize("stateless", [True, False])
def test_no_reserved_key_of_the_client_reaches_the_upstream(stateless: bool) -> None:
    meta = stamp_request({"name": "t", "_meta": {**PLANTED, **PASSING}}, stateless=stateless)["_meta"]

    assert "planted" not in meta.values()
    assert {key: meta[key] for key in PASSING} == PASSING
    assert len(meta) == len(PASSING) + (3 if stateless else 0)


def test_a_request_without_meta_gets_none_in_the_handshake_era() -> None:
    assert stamp_request({"name": "t"}, stateless=False) == {"name": "t"}


# REL-5
def test_no_reserved_key_and_no_hop_member_of_the_upstream_reaches_the_client() -> None:
    raw: dict[str, Any] = {
        "_meta": {**PLANTED, **PASSING},
        "resultType": "complete",
        "ttlMs": 5,
        "cacheScope": "public",
        "content": [],
    }

    assert strip_result(raw) == {"content": [], "_meta": PASSING}


# REL-2
def test_unknown_members_and_empty_content_pass() -> None:
    raw = {"content": [], "structuredContent": {"a": None}, "vendorMember": [1], "isError": True}

    relayed = relayed_result("s", raw)

    assert relayed.result.wire() == {**raw, "resultType": "complete"}
    assert relayed.unknown_blocks == 0


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"content": "text"},
        {"content": {"type": "text"}},
        {"content": [], "resultType": "input_required"},
        {"content": None},
    ],
)
def test_an_answer_that_is_no_tool_result_names_the_upstream(raw: dict[str, object]) -> None:
    with pytest.raises(ToolError, match="upstream odd-one answered"):
        relayed_result("odd-one", raw)


# REL-4
@pytest.mark.parametrize("odd", [None, 7, "text", ["text"], {"type": "text"}, {"type": "new", "a": 1}, {}])
def test_a_block_that_clients_cannot_read_costs_itself_only(odd: object) -> None:
    relayed = relayed_result("s", {"content": [{"type": "text", "text": "good"}, odd], "structuredContent": {"a": 1}})

    good, repaired = relayed.result.content
    assert (good, repaired["type"], json.loads(repaired["text"])) == ({"type": "text", "text": "good"}, "text", odd)
    assert (relayed.result.structured, relayed.unknown_blocks) == ({"a": 1}, 1)


def test_structured_content_that_is_null_is_told_from_none_at_all() -> None:
    null = relayed_result("s", {"content": [], "structuredContent": None}).result.wire()
    absent = relayed_result("s", {"content": []}).result.wire()

    assert null == {**absent, "structuredContent": None}
    assert "structuredContent" not in absent
