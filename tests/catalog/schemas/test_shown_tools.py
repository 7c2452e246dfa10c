"""What becomes of schemas on their way to clients, and of arguments on their way back."""

from __future__ import annotations

from typing import Any

import pytest

from goat_mcp.catalog.builtin_contracts import builtin_contracts
from goat_mcp.catalog.catalog import Catalog
from goat_mcp.catalog.registry import Registry
from goat_mcp.catalog.schemas.dialects import DIALECTS, for_handshake, host_findings
from goat_mcp.catalog.schemas.portable import portable
from goat_mcp.upstreams.config.entry import StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.listing.entry_validation import valid_entries
from goat_mcp.upstreams.listing.proxy_tool import upstream_tool

CONFIG = UpstreamConfig(name="s", server="s", target=StdioLaunch("s"))
PLAIN = DIALECTS["plain"]


class _NoRelay:
    def admit(self, spec: Any) -> None:
        """Every call is let through."""

    async def call(self, spec: Any, arguments: Any, ctx: Any) -> Any:
        raise AssertionError("nothing is called here")


def entry(schema: Any, **members: Any) -> dict[str, Any]:
    return {"name": "t", "description": "Does it.", "inputSchema": schema, **members}


def shown(schema: dict[str, Any], dialect: Any = "plain") -> dict[str, Any]:
    return dict(portable(entry(schema), DIALECTS[dialect]).entry)


def test_a_choice_at_the_root_becomes_one_object_and_is_told_in_words() -> None:  # SCH-2
    schema = {
        "oneOf": [
            {
                "type": "object",
                "properties": {"action": {"const": "get"}, "id": {"type": "integer"}},
                "required": ["id"],
            },
            {"$ref": "#/$defs/find"},
            {"type": "null"},
        ],
        "$defs": {"find": {"properties": {"action": {"const": "find"}, "q": {"type": "string"}}, "required": ["q"]}},
    }

    new = shown(schema)

    assert new["inputSchema"] == {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["get", "find"]},
            "id": {"type": "integer"},
            "q": {"type": "string"},
        },
        "$defs": schema["$defs"],
    }
    assert new["description"] == (
        'Does it.\n\nArguments must fit exactly one of: (1) action is "get" and id required; '
        '(2) action is "find" and q required.'
    )


def test_rules_that_only_ask_for_parameters_leave_the_properties_alone() -> None:  # SCH-2
    properties = {"phone": {"type": "string"}, "email": {"type": "string"}, "kind": {"type": "string"}}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
        "required": ["kind"],
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}, {"required": ["phone"]}],
        "if": {"properties": {"kind": {"const": "mail"}}},
        "then": {"required": ["email"]},
        "not": {"required": ["fax"]},
        "additionalProperties": False,
    }

    new = shown(schema)

    assert new["inputSchema"] == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
        "required": ["kind", "phone"],
        "additionalProperties": False,
    }
    assert new["description"].split("\n\n")[1] == (
        "Arguments must fit at least one of: (1) phone required; (2) email required. "
        'If kind is "mail": then email required. Arguments must not fit {"required": ["fax"]}.'
    )


def test_what_the_default_dialect_has_no_quarrel_with_is_the_very_same_object() -> None:  # SCH-1, REL-1
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {"$anchor": "a", "type": "object", "properties": {"street": {"type": ["string", "null"]}}}
        },
        "properties": {"to": {"$ref": "#/$defs/address"}, "n": {"enum": [1, 2]}, "x": {"oneOf": [{"const": 1}, {}]}},
        "additionalProperties": False,
    }
    given = entry(schema)

    result = portable(given, PLAIN)

    assert result.entry is given and result.rewrites == ()


def test_gemini_gets_references_followed_one_type_each_and_enums_of_texts() -> None:  # SCH-2
    schema = {
        "$schema": "x",
        "type": "object",
        "properties": {
            "to": {"$ref": "#/$defs/address", "description": "Where"},
            "n": {"type": "integer", "enum": [1, 2]},
            "tags": {"type": ["array", "null"], "minItems": 1},
            "when": {"type": "string", "format": "iso"},
            "tree": {"$ref": "#/$defs/node"},
        },
        "$defs": {
            "address": {"type": "object", "properties": {"street": {"type": "string"}}},
            "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}},
        },
    }

    assert shown(schema, "gemini")["inputSchema"] == {
        "type": "object",
        "properties": {
            "to": {"type": "object", "properties": {"street": {"type": "string"}}, "description": "Where"},
            "n": {"type": "integer", "description": "One of: 1, 2."},
            "tags": {"anyOf": [{"type": "array", "minItems": 1, "items": {}}, {"type": "null"}]},
            "when": {"type": "string", "description": "Format: iso."},
            "tree": {"type": "object", "properties": {"next": {"type": "object"}}},
        },
    }


@pytest.mark.parametrize(
    ("part", "repaired"),
    [
        ({"type": "array"}, {"type": "array", "items": {}}),
        (
            {"type": "array", "items": [{"type": "string"}]},
            {"type": "array", "prefixItems": [{"type": "string"}], "items": {}},
        ),
        ({"type": "integer", "minimum": 0, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 0}),
        ({"type": "string", "required": True}, {"type": "string"}),
        ({"type": "any", "title": "T"}, {"title": "T"}),
        ({"$ref": "https://example.com/schema.json", "title": "T"}, {"title": "T"}),
        ({"$ref": "#/$defs/gone", "title": "T"}, {"title": "T"}),
    ],
)
def test_parts_that_make_an_api_refuse_the_request_are_mended(part: Any, repaired: Any) -> None:  # SCH-2, SCH-4
    assert shown({"type": "object", "properties": {"x": part}})["inputSchema"]["properties"]["x"] == repaired


def test_refused_parameter_names_are_renamed_and_mapped_back_at_every_depth() -> None:  # SCH-2
    inner = {"type": "object", "properties": {"größe": {"type": "integer"}}, "required": ["größe"]}
    schema = {
        "type": "object",
        "properties": {"filter[]": {"type": "array", "items": inner}, "ok": {"type": "string"}},
        "required": ["filter[]"],
    }
    tool = upstream_tool(CONFIG, entry(schema), _NoRelay())

    new = shown(schema)["inputSchema"]

    (filter_name, _), inner_shown = new["properties"], new["properties"][next(iter(new["properties"]))]["items"]
    (size_name,) = inner_shown["properties"]
    assert (filter_name[:8], size_name[:6]) == ("filter__", "gr__e_")
    assert (new["required"], inner_shown["required"]) == ([filter_name], [size_name])
    sent = {filter_name: [{size_name: 3}], "ok": "x"}
    assert tool.validate(sent) == {"filter[]": [{"größe": 3}], "ok": "x"}
    assert tool.validate({"filter[]": [], "ok": "x"}) == {"filter[]": [], "ok": "x"}
    assert tool.spec.input_schema is schema


def test_a_hopeless_tool_is_rejected_alone() -> None:  # SCH-3, SCH-4
    chain: dict[str, Any] = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(20)}
    doubling: dict[str, Any] = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/d0"}},
        "$defs": {**chain, "d20": {}},
    }
    refused = next(name for name in shown({"type": "object", "properties": {"a b": {}}})["inputSchema"]["properties"])
    listed = [
        entry({"type": "array"}),
        entry(doubling),
        entry({"type": "object", "properties": {"a b": {}, refused: {}}}),
        entry({"anyOf": [{"required": ["a"]}]}, name="fine"),
    ]

    usable = valid_entries(listed)

    assert [rejected.reason for rejected in usable.rejected] == [
        "its inputSchema takes no object, which arguments always are",
        "its inputSchema has more than 10000 parts once its references are followed",
        f"two of its parameters would be listed as {refused}",
    ]
    assert usable.entries == (listed[3],)


def test_a_schema_that_comes_back_to_itself_is_no_expansion_without_end() -> None:  # SCH-4
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}

    assert valid_entries([entry(tree)]).rejected == ()


@pytest.mark.parametrize("output", [{"type": "array", "items": {}}, {"oneOf": [{"type": "object"}]}, {}])
def test_an_output_that_is_no_object_is_kept_from_older_clients_only(output: Any) -> None:  # SCH-3
    given = entry({"type": "object"}, outputSchema=output)

    usable = valid_entries([given])

    assert usable.entries == (given,) and usable.without_output == ()
    assert for_handshake(given) == entry({"type": "object"})
    fine = entry({"type": "object"}, outputSchema={"type": "object"})
    assert for_handshake(fine) is fine


def test_the_built_in_tools_are_plain() -> None:  # SCH-1
    assert [spec.name for spec in builtin_contracts() if portable(spec.wire(), PLAIN).rewrites] == []


def test_a_catalog_lists_in_its_dialect_and_names_every_rewrite() -> None:  # SCH-1
    registry = Registry()
    given = entry({"type": "object", "properties": {"x": {"type": "array"}}})
    tool = upstream_tool(CONFIG, given, _NoRelay())
    registry.replace_source(CONFIG.source, [tool])

    plain, verbatim = Catalog(registry), Catalog(registry, dialect="mcp")

    assert plain.listing()[0]["inputSchema"]["properties"]["x"] == {"type": "array", "items": {}}
    assert verbatim.listing()[0] == {**given, "name": "mcp__s__t"}
    (listed,) = plain.shown().values()
    assert [(rewrite.path, rewrite.what) for rewrite in listed.rewrites] == [
        ("/inputSchema/properties/x", "an array got items")
    ]
    assert [each.rewrites for each in verbatim.shown().values()] == [()]


def test_hosts_that_take_fewer_tools_or_shorter_names_are_named() -> None:
    assert host_findings(["a" * 50] * 80) == []
    assert host_findings([*(["a"] * 100), "b" * 54]) == [
        "Windsurf: takes 100 tools, there are 101",
        "Cursor: takes 80 tools, there are 101",
        f"Claude: takes names of 52 characters, {'b' * 54} has 54",
    ]
