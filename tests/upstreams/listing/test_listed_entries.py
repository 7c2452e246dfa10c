"""What becomes of listed tools on their way to clients: hidden characters, long texts, large schemas. REL-2."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from goat_mcp.catalog.registry import Registry
from goat_mcp.core.result import Block
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.upstreams.calls.calls import relayed_result
from goat_mcp.upstreams.config.entry import StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.listing.entry_validation import MAX_SCHEMA_BYTES, valid_entries
from goat_mcp.upstreams.listing.proxy_tool import upstream_tool
from goat_mcp.upstreams.status import ReasonCode, RejectedEntry
from tests.upstreams.listing.definition_texts import HIDING, HONEST

HIDDEN = "a\u202eb\u200bc\x1b[0m\U000e0041"
SHOWN = "a\\u202eb\\u200bc\\x1b[0m\\U000e0041"


def entry(**members: Any) -> dict[str, Any]:
    return {"name": "t", "inputSchema": {"type": "object"}, **members}


def test_hidden_characters_in_texts_about_a_tool_are_shown_as_escapes_and_counted() -> None:
    texts = {"title": HIDDEN, "description": HIDDEN}
    listed = entry(
        **texts,
        annotations={"title": HIDDEN, "readOnlyHint": True},
        inputSchema={"type": "object", "properties": {"x": {"type": "string", "description": HIDDEN}}},
    )

    usable = valid_entries([listed, entry(name="plain", description="ümlaut\n\ttab")])

    assert usable.entries == (
        {
            "name": "t",
            "title": SHOWN,
            "description": SHOWN,
            "annotations": {"title": SHOWN, "readOnlyHint": True},
            "inputSchema": {"type": "object", "properties": {"x": {"type": "string", "description": SHOWN}}},
        },
        entry(name="plain", description="ümlaut\n\ttab"),
    )
    assert usable.escaped == 1


def test_names_that_look_like_keywords_are_names() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "default": {"type": "string", "title": HIDDEN, "enum": ["a"], "default": {"title": "a"}},
            "title": {"type": "string", "const": "a", "description": HIDDEN},
        },
    }

    (shown,) = valid_entries([entry(inputSchema=schema)]).entries

    properties = shown["inputSchema"]["properties"]
    assert properties == {
        "default": {"type": "string", "title": SHOWN, "enum": ["a"], "default": {"title": "a"}},
        "title": {"type": "string", "const": "a", "description": SHOWN},
    }


IN_TEXTS: dict[str, dict[str, Any]] = {
    "$comment": {"$comment": HIDDEN},
    "description of a part": {"properties": {"a": {"anyOf": [{"items": {"description": HIDDEN}}]}}},
    "labels of values": {"properties": {"a": {"enum": ["x"], "enumNames": [HIDDEN]}}},
    "titles of values": {"properties": {"a": {"oneOf": [{"const": "x", "title": HIDDEN}]}}},
    "unknown keyword": {"x-hint": HIDDEN},
    "below an unknown keyword": {"x-hint": {"a": [HIDDEN, {"b": HIDDEN}]}},
    "name of a keyword": {f"x-{HIDDEN}": "a"},
    "name below an unknown keyword": {"x-hint": {HIDDEN: 1}},
    "markdown": {"properties": {"a": {"markdownDescription": HIDDEN}}},
    "error message": {"properties": {"a": {"errorMessage": {"type": HIDDEN}}}},
    "below a definition": {"$defs": {"a": {"description": HIDDEN}}},
    "below a pattern": {"patternProperties": {"^a": {"title": HIDDEN}}},
    "below not": {"not": {"$comment": HIDDEN}},
    "below if": {"if": {}, "then": {"description": HIDDEN}},
    "below a list of items": {"properties": {"a": {"type": "array", "prefixItems": [{"description": HIDDEN}]}}},
}
"""Schemas with text in which something hides."""
IN_DATA: dict[str, dict[str, Any]] = {
    "value": {"properties": {"a": {"enum": ["x", HIDDEN]}}},
    "constant": {"properties": {"a": {"const": HIDDEN}}},
    "default": {"properties": {"a": {"default": {"x": [HIDDEN]}}}},
    "name in a default": {"properties": {"a": {"default": {HIDDEN: 1}}}},
    "example": {"properties": {"a": {"examples": [HIDDEN]}}},
    "one example": {"properties": {"a": {"example": HIDDEN}}},
    "name": {"properties": {HIDDEN: {"type": "string"}}},
    "name far below": {"properties": {"a": {"items": {"anyOf": [{"properties": {HIDDEN: {}}}]}}}},
    "required": {"required": [HIDDEN]},
    "pattern": {"properties": {"a": {"pattern": HIDDEN}}},
    "pattern of names": {"patternProperties": {HIDDEN: {}}},
    "format": {"properties": {"a": {"format": HIDDEN}}},
    "definition": {"$defs": {HIDDEN: {}}},
    "reference": {"properties": {"a": {"$ref": f"#/$defs/{HIDDEN}"}}, "$defs": {"b": {}}},
    "identity": {"$id": f"https://x.example/{HIDDEN}"},
    "anchor": {"$defs": {"a": {"$anchor": HIDDEN}}},
    "dialect": {"$schema": f"https://json-schema.org/{HIDDEN}"},
    "dependency": {"dependentRequired": {"a": [HIDDEN]}},
    "old dependency": {"dependencies": {"a": [HIDDEN]}},
    "media type": {"properties": {"a": {"contentMediaType": HIDDEN}}},
}
"""Schemas with data in which something hides."""


@pytest.mark.parametrize("schema", IN_TEXTS.values(), ids=IN_TEXTS)
@pytest.mark.parametrize("member", ["inputSchema", "outputSchema"])
def test_f13_12_hidden_in_schemas_is_shown(member: str, schema: dict[str, Any]) -> None:
    listed = entry(**{member: {"type": "object", **schema}})

    usable = valid_entries([listed])

    (shown,) = usable.entries
    assert shown != listed and not is_hiding(shown)
    assert usable.originals == (listed,)
    assert usable.escaped == 1


@pytest.mark.parametrize("schema", IN_DATA.values(), ids=IN_DATA)
def test_f13_12_hidden_in_data_rejects_that_tool_alone(schema: dict[str, Any]) -> None:
    listed = entry(inputSchema={"type": "object", **schema})

    usable = valid_entries([listed, entry(name="fine")])

    assert usable.entries == (entry(name="fine"),)
    assert [(one.name, one.reason_code) for one in usable.rejected] == [("t", ReasonCode.HIDDEN_DATA)]
    assert not is_hiding(usable.rejected[0].reason)


@pytest.mark.parametrize("schema", IN_DATA.values(), ids=IN_DATA)
def test_f13_12_hidden_in_data_leaves_an_output_schema_out(schema: dict[str, Any]) -> None:
    usable = valid_entries([entry(outputSchema={"type": "object", **schema})])

    assert usable.entries == (entry(),)
    assert len(usable.without_output) == 1


@pytest.mark.parametrize("text", HIDING.values(), ids=HIDING)
def test_f13_12_every_kind_of_invisible_character_is_shown_or_rejected(text: str) -> None:
    shown = valid_entries(
        [
            entry(
                title=text,
                description=text,
                icons=[{"src": f"https://x.example/{text}.png", "mimeType": text, "sizes": [text]}],
                annotations={"title": text, "x": {"y": text}},
                _meta={"note": text, text: [text]},
                **{"x-unknown": [text]},
                inputSchema={"type": "object", "$comment": text},
            ),
            entry(name="u", inputSchema={"type": "object", "properties": {"a": {"enum": [text]}}}),
        ]
    )

    assert [one["name"] for one in shown.entries] == ["t"]
    assert not is_hiding(shown.entries)
    assert [one.reason_code for one in shown.rejected] == [ReasonCode.HIDDEN_DATA]


@pytest.mark.parametrize("text", HONEST.values(), ids=HONEST)
def test_f13_12_honest_texts_pass_as_they_are_in_texts_and_in_data(text: str) -> None:
    schema = {"type": "object", "title": text, "properties": {"a": {"enum": [text], "default": text}}}
    listed = entry(description=text, inputSchema=schema, outputSchema=schema, _meta={"note": text})

    usable = valid_entries([listed])

    assert usable.entries == (listed,)
    assert (usable.rejected, usable.escaped, usable.without_output) == ((), 0, ())


def test_line_ends_are_data_as_others() -> None:
    ends = {"type": "object", "properties": {"end": {"enum": ["\n", "\r\n", "\r"], "default": "\t"}}}

    assert valid_entries([entry(inputSchema=ends)]).rejected == ()


def test_of_two_unknown_keywords_that_are_one_when_visible_none_is_lost() -> None:
    schema = {"type": "object", "x-a\u200b": 1, "x-a\\u200b": 2}

    (shown,) = valid_entries([entry(inputSchema=schema)]).entries

    assert shown["inputSchema"] == {"type": "object", "x-a\\u200b (2)": 1, "x-a\\u200b": 2}


def is_hiding(value: Any) -> bool:
    """Whether something is invisible in the JSON of it."""
    text = json.dumps(value, ensure_ascii=False)
    return bool(re.search(r"\\u00[01][0-9a-f]|\\[bfr]", text.replace("\\\\", ""))) or make_visible(text) != text


def test_a_hidden_character_in_a_name_reaches_nobody_but_the_upstream() -> None:
    native = "get\u202eteg"
    usable = valid_entries([entry(name=native)])
    config = UpstreamConfig(name="s", server="s", target=StdioLaunch("s"))
    registry = Registry()
    tool: Any = upstream_tool(config, usable.entries[0], None)  # pyright: ignore[reportArgumentType]  # never called
    registry.replace_source(config.source, [tool])

    (name,) = registry.names()

    assert usable.escaped == 1
    assert name.isascii() and name.startswith("mcp__s__get_teg_")
    assert tool.spec.title == name
    assert tool.spec.native_name == native


def test_rejected_tools_are_named_without_hidden_characters() -> None:
    usable = valid_entries([{"name": "x\u202e", "inputSchema": {"type": "array"}}])

    assert [rejected.name for rejected in usable.rejected] == ["x\\u202e"]


def test_results_are_relayed_with_their_hidden_characters() -> None:
    blocks: list[Block] = [{"type": "text", "text": HIDDEN}]

    relayed = relayed_result("s", {"content": blocks, "structuredContent": {"x": HIDDEN}})

    assert relayed.result.content == tuple(blocks)
    assert relayed.result.structured == {"x": HIDDEN}


def test_a_tool_whose_output_schema_is_too_large_passes_without_it_and_is_named() -> None:
    usable = valid_entries([entry(outputSchema={"type": "object", "description": "x" * MAX_SCHEMA_BYTES})])

    assert usable.entries == (entry(),)
    assert usable.without_output == (f"t: its outputSchema is larger than {MAX_SCHEMA_BYTES} bytes",)


def test_an_entry_nested_without_end_is_rejected_alone() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"not": deep}

    usable = valid_entries([entry(inputSchema=deep), entry(name="fine")])

    assert usable.entries == (entry(name="fine"),)
    assert usable.rejected == (RejectedEntry("t", "its entry is nested too deeply", ReasonCode.SCHEMA_TOO_DEEP),)


def test_a_tool_that_runs_only_as_a_task_is_rejected_and_one_that_may_is_not() -> None:
    """ERA-7."""
    needs, may = entry(execution={"taskSupport": "required"}), entry(name="u", execution={"taskSupport": "optional"})

    usable = valid_entries([needs, may])

    assert [one["name"] for one in usable.entries] == ["u"]
    assert [(one.name, one.reason_code) for one in usable.rejected] == [("t", ReasonCode.TASKS_ONLY)]
