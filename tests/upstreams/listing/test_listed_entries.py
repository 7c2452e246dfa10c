"""What becomes of listed tools on their way to clients: hidden characters, long texts, schemas that are too large."""

from __future__ import annotations

from typing import Any

from goat_mcp.core.result import Block
from goat_mcp.registry import Registry
from goat_mcp.upstreams.calls.relay import relayed_result
from goat_mcp.upstreams.config.entry import StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.listing.listed_entries import MAX_SCHEMA_BYTES, usable_entries
from goat_mcp.upstreams.listing.proxy_tool import upstream_tool
from goat_mcp.upstreams.listing.withheld import Withheld
from goat_mcp.upstreams.reason_code import ReasonCode

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

    usable = usable_entries([listed, entry(name="plain", description="ümlaut\n\ttab")])

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


def test_values_a_schema_holds_are_data_and_stay_and_names_that_look_like_keywords_are_names() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "default": {"type": "string", "title": HIDDEN, "enum": [HIDDEN], "default": {"title": HIDDEN}},
            "title": {"type": "string", "const": HIDDEN},
        },
    }

    (shown,) = usable_entries([entry(inputSchema=schema)]).entries

    properties = shown["inputSchema"]["properties"]
    assert properties == {
        "default": {"type": "string", "title": SHOWN, "enum": [HIDDEN], "default": {"title": HIDDEN}},
        "title": {"type": "string", "const": HIDDEN},
    }


def test_a_hidden_character_in_a_name_reaches_nobody_but_the_upstream() -> None:
    native = "get\u202eteg"
    usable = usable_entries([entry(name=native)])
    config = UpstreamConfig(name="s", server="s", target=StdioLaunch("s"))
    registry = Registry()
    tool: Any = upstream_tool(config, usable.entries[0], None)  # pyright: ignore[reportArgumentType]  # never called
    registry.replace_source(config.source, [tool])

    (name,) = registry.names()

    assert usable.escaped == 1
    assert name.isascii() and name.startswith("mcp__s__get_teg_")
    assert tool.spec.title == name
    assert tool.spec.native_name == native


def test_withheld_tools_are_named_without_hidden_characters() -> None:
    usable = usable_entries([{"name": "x\u202e", "inputSchema": {"type": "array"}}])

    assert [withheld.name for withheld in usable.withheld] == ["x\\u202e"]


def test_results_are_relayed_with_their_hidden_characters() -> None:
    blocks: list[Block] = [{"type": "text", "text": HIDDEN}]

    relayed = relayed_result("s", {"content": blocks, "structuredContent": {"x": HIDDEN}})

    assert relayed.result.content == tuple(blocks)
    assert relayed.result.structured == {"x": HIDDEN}


def test_a_tool_whose_output_schema_is_too_large_passes_without_it_and_is_named() -> None:
    usable = usable_entries([entry(outputSchema={"type": "object", "description": "x" * MAX_SCHEMA_BYTES})])

    assert usable.entries == (entry(),)
    assert usable.without_output == (f"t: its outputSchema is larger than {MAX_SCHEMA_BYTES} bytes",)


def test_an_entry_nested_without_end_is_withheld_alone() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"not": deep}

    usable = usable_entries([entry(inputSchema=deep), entry(name="fine")])

    assert usable.entries == (entry(name="fine"),)
    assert usable.withheld == (Withheld("t", "its entry is nested too deeply", ReasonCode.SCHEMA_TOO_DEEP),)


def test_a_tool_that_runs_only_as_a_task_is_withheld_and_one_that_may_is_not() -> None:
    """ERA-7."""
    needs, may = entry(execution={"taskSupport": "required"}), entry(name="u", execution={"taskSupport": "optional"})

    usable = usable_entries([needs, may])

    assert [one["name"] for one in usable.entries] == ["u"]
    assert [(one.name, one.reason_code) for one in usable.withheld] == [("t", ReasonCode.TASKS_ONLY)]
