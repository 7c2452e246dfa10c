"""Results against the output schemas their tools were listed with: what clients get, what is counted, what it costs."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.catalog.schemas.bounded_schema import MAX_DEPTH, MAX_SCHEMA_BYTES, BoundedSchema, Uncheckable
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.calls.output_check import MISSING, OutputCheck, OutputMode
from tests.upstreams.fleet import fleet, server

pytestmark = pytest.mark.anyio

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"days": {"type": "array", "items": {"type": "object", "properties": {"high": {"type": "number"}}}}},
    "required": ["days"],
}
GOOD = {"days": [{"high": 21.5}, {"high": 19}]}
BAD = {"days": [{"high": 21.5}, {"high": "canary"}]}


@dataclass
class Log(Telemetry):
    lines: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def warning(self, event: str, **fields: Any) -> None:
        self.lines.append({"event": event, **fields})


def checker(mode: OutputMode) -> tuple[OutputCheck, Log]:
    log = Log()
    return OutputCheck("weather", mode, log), log


# REL-3
async def test_a_mismatch_is_counted_each_time_and_logged_once_per_tool_without_its_data() -> None:
    output, log = checker("warn")

    for tool in ("forecast", "forecast", "history"):
        await output.check(tool, SCHEMA, BAD)
    await output.check("forecast", SCHEMA, GOOD)

    assert output.mismatches == 3
    place = {"event": "result breaks its outputSchema", "upstream": "weather", "path": "$.days[1].high"}
    assert log.lines == [
        {**place, "tool": "forecast", "keyword": "type"},
        {**place, "tool": "history", "keyword": "type"},
    ]


async def test_a_strict_check_names_the_place_in_the_data_and_the_demand_of_the_schema() -> None:
    output, _ = checker("strict")
    await output.check("forecast", SCHEMA, GOOD)

    with pytest.raises(ToolError) as caught:
        await output.check("forecast", SCHEMA, BAD)

    assert caught.value.code is ErrorCode.UPSTREAM
    assert caught.value.message == (
        "upstream weather ran the call, but its result breaks the tool's outputSchema: "
        'structuredContent at $.days[1].high does not satisfy type: "number"'
    )


async def test_a_result_without_structured_content_breaks_any_output_schema() -> None:
    output, _ = checker("strict")

    with pytest.raises(ToolError, match="structuredContent, which is missing"):
        await output.check("forecast", SCHEMA, MISSING)


async def test_a_check_that_is_off_finds_nothing() -> None:
    output, _ = checker("off")

    await output.check("forecast", SCHEMA, BAD)

    assert (output.mismatches, output.unchecked) == (0, ())


async def test_a_schema_that_changed_is_the_one_that_counts() -> None:
    output, _ = checker("warn")

    await output.check("t", {"type": "object"}, {})
    await output.check("t", {"type": "array"}, {})

    assert output.mismatches == 1


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"not": schema}
    return schema


def doubling(levels: int) -> dict[str, Any]:
    """Each definition refers twice to the next: as many checks as atoms in a glass of water."""
    twice = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"$defs": {**twice, f"d{levels}": {"type": "object"}}, "$ref": "#/$defs/d0"}


# SCH-4
@pytest.mark.parametrize("mode", ["warn", "strict"])
@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "nonsense"}, "is broken at $.type"),
        ({"type": "object", "description": "x" * MAX_SCHEMA_BYTES}, "is larger than"),
        (nested(MAX_DEPTH + 1), "is nested deeper than"),
        (nested(5000), "is nested deeper than"),
        ({"anyOf": [True] * 20_000}, "has more than 10000 parts"),
        pytest.param({"$ref": "file:///etc/passwd"}, "refers to something beside itself", id="UP-24-file"),
        pytest.param({"$ref": "http://127.0.0.1:9/schema"}, "refers to something beside itself", id="UP-24-ref"),
        pytest.param({"$dynamicRef": "http://127.0.0.1:9/s"}, "refers to something beside itself", id="UP-24-dynamic"),
        pytest.param(
            {"properties": {"a": {"$id": "http://127.0.0.1:9/", "$ref": "#"}}},
            "refers to something beside itself",
            id="UP-24-id",
        ),
        ({"$ref": "#/$defs/nowhere"}, "cannot be followed"),
        ({"$ref": "#"}, "cannot be followed: RecursionError"),
        pytest.param(doubling(40), "takes too many steps", id="UP-26"),
        ({"properties": {"a": {"pattern": "(?=x)"}}}, "has a pattern we do not run"),
        ({"properties": {"a": {"pattern": "("}}}, "has a pattern we do not run"),
        pytest.param(
            {"$schema": "http://json-schema.org/draft-03/schema#"}, "is of a dialect other than", id="UP-24-dialect"
        ),
    ],
)
async def test_a_schema_we_cannot_check_against_is_named_and_never_the_clients_problem(
    mode: OutputMode, schema: dict[str, Any], reason: str
) -> None:
    output, log = checker(mode)

    for _ in range(2):
        await output.check("t", schema, {"a": 1})

    assert log.lines == [] and output.mismatches == 0
    (unchecked,) = output.unchecked
    assert unchecked.startswith(("t: its ", "t: checking its "))
    assert reason in unchecked


async def test_a_result_too_large_to_check_is_relayed_and_named_and_smaller_ones_are_still_checked() -> None:
    output, _ = checker("strict")
    schema = {"type": "array", "items": {"type": "integer"}}

    await output.check("t", schema, ["x"] * 200_000)
    with pytest.raises(ToolError):
        await output.check("t", schema, [*range(1000), "x"])

    assert output.unchecked == ("t: a value was too large to check",)


# SCH-4
@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "^(a+)+$"},
        {"patternProperties": {"^(a+)+$": {"type": "string"}}, "additionalProperties": False},
        {"additionalProperties": {"pattern": "^(a|a)*$"}},
    ],
)
async def test_a_pattern_that_would_run_for_years_does_not_hold_up_anybody(schema: dict[str, Any]) -> None:
    output, _ = checker("warn")
    evil = "a" * 60 + "!"

    with anyio.fail_after(60):
        await output.check("t", schema, evil)
        await output.check("t", schema, {evil: evil})

    assert output.unchecked == ()
    assert output.mismatches == 1


@pytest.mark.parametrize(
    ("schema", "data", "path"),
    [
        ({"uniqueItems": True}, [1, 1.0], "$"),
        ({"uniqueItems": True}, [1, True, "1", [1], [True], {"a": 1}, {"a": True}], None),
        ({"uniqueItems": True}, [{"a": [1], "b": 2}, {"b": 2, "a": [1]}], "$"),
        ({"patternProperties": {"^x-": {"type": "string"}}}, {"x-a": 1, "y": 1}, "$['x-a']"),
        ({"patternProperties": {"^x-": {}}, "additionalProperties": False}, {"x-a": 1}, None),
        ({"patternProperties": {"^x-": {}}, "additionalProperties": False}, {"y": 1}, "$.y"),
        ({"additionalProperties": {"type": "null"}}, {"y": 1}, "$.y"),
        ({"properties": {"n": {"$ref": "#"}}, "additionalProperties": False}, {"n": {"n": {"m": 1}}}, "$.n.n.m"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}, [1], "$[0]"),
        ({"$id": "https://example.org/s", "$ref": "#/$defs/d", "$defs": {"d": {"type": "string"}}}, 1, "$"),
        ({"properties": {"$schema": {"type": "string"}, "$id": {"type": "string"}}}, {"$schema": 1}, "$['$schema']"),
        ({"type": "null"}, None, None),
        ({"required": ["a"]}, {}, "$"),
        (False, {}, "$"),
        (True, {}, None),
    ],
)
def test_keywords_mean_what_the_specification_says(schema: Any, data: Any, path: str | None) -> None:
    found = BoundedSchema(schema).mismatch(data)

    assert (found.path if found else None) == path


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(
    schema=st.dictionaries(
        st.sampled_from(
            ["type", "$ref", "$dynamicAnchor", "properties", "items", "pattern", "uniqueItems", "$id", "not"]
        )
        | st.sampled_from(
            ["patternProperties", "required", "enum", "unevaluatedProperties", "allOf", "if", "multipleOf"]
        ),
        JSON | st.sampled_from(["#", "#/$defs/x", "object", "array"]),
    ),
    data=JSON,
)
def test_no_schema_breaks_the_check(schema: dict[str, Any], data: Any) -> None:
    try:
        BoundedSchema(schema).mismatch(data)
    except Uncheckable as reason:
        assert "outputSchema" in str(reason) or "steps" in str(reason)


# REL-3
@pytest.mark.e2e
async def test_clients_get_what_the_mode_of_the_upstream_says(tmp_path: Path) -> None:
    entries = {mode: server("raw.py", "outputs", output_check=mode) for mode in ("off", "warn", "strict")}
    async with fleet(tmp_path, entries) as running:
        for mode in entries:
            good = await running.call(f"mcp__{mode}__measure", {"value": 1})
            assert good.structured == {"value": 1}
            failed = await running.call(f"mcp__{mode}__measure", {"value": "x", "fails": True})
            assert failed.is_error and failed.text == "measured"
        relayed = [(await running.call(f"mcp__{mode}__measure", {"value": "x"})).wire() for mode in ("off", "warn")]
        refused = await running.failing("mcp__strict__measure", {"value": "x"})
        counts = [running.status(mode).output_mismatches for mode in entries]
        tool = running.registry.get("mcp__warn__measure")

    answer = {"content": [{"type": "text", "text": "measured"}], "isError": False, "structuredContent": {"value": "x"}}
    assert relayed == [{**answer, "resultType": "complete"}] * 2
    assert refused.message.endswith('structuredContent at $.value does not satisfy type: "number"')
    assert counts == [0, 1, 1]
    assert tool is not None and tool.spec.wire()["outputSchema"]["properties"] == {"value": {"type": "number"}}


@pytest.mark.e2e
async def test_the_validation_library_is_not_loaded_before_it_is_needed() -> None:
    imports = "import goat_mcp.upstreams.supervisor, goat_mcp.upstreams.transports.connect, sys"
    shown = await anyio.run_process([sys.executable, "-c", f"{imports}; print('jsonschema' in sys.modules)"])

    assert shown.stdout.decode().strip() == "False"
