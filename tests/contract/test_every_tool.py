"""What holds for every built-in tool there is. Contract: tools.md, section 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.calls.permissions.rule import Call
from goat_mcp.catalog.builtin_contracts import app_contracts, builtin_contracts, meta_contracts
from goat_mcp.catalog.filter import TEAMS_VARIABLE
from goat_mcp.catalog.registry import AnyTool
from goat_mcp.core.context import ToolContext
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolSpec
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory

MAX_DESCRIPTION_BYTES = 1_200
MAX_TOKENS = 4_500
ALWAYS_LOADED = {"Read", "Write", "Edit", "Bash", "Glob", "Grep"}
WITH_RESULT_SIZE = {"Read", "Bash", "TaskOutput"}

TAKES_MORE_FIELDS = "ExitPlanMode"  # hosts add their own, says its contract

HINTS = {  # readOnly, destructive, idempotent, openWorld: the table of the contract, in Goat's order
    "Bash": (False, True, False, True),
    "Read": (True, False, True, False),
    "Write": (False, True, True, False),
    "Edit": (False, True, False, False),
    "Glob": (True, False, True, False),
    "Grep": (True, False, True, False),
    "TaskOutput": (True, False, True, False),
    "TaskStop": (False, True, True, False),
    "TodoWrite": (False, False, True, False),
    "Config": (False, False, True, False),
    "ExitPlanMode": (True, False, False, False),
    "AskUserQuestion": (True, False, False, False),
    "WebFetch": (False, False, True, True),
    "WebSearch": (False, False, True, True),
    "Agent": (False, True, False, True),
    "ListMcpResources": (True, False, True, False),
    "ReadMcpResource": (True, False, True, True),
    "NotebookEdit": (False, True, False, False),
    "TeamCreate": (False, True, False, True),
    "SendMessage": (False, False, False, True),
    "TeamDelete": (False, True, True, False),
}
RISKS = {
    "none": "none",
    "read_only": "low",
    "mutating": "medium",
    "network": "high",
    "blocking": "low",
    "spawns": "critical",
}


def gateway_in(folder: Path, **settings: Any) -> Gateway:
    workspace = folder / "ws"
    workspace.mkdir(exist_ok=True)
    tree = Settings.model_validate({"workspace": [str(workspace)], **settings})
    return Gateway(tree, approval=Approval.HOST, state=StateDirectory(folder / "state"))


def every_tool() -> list[AnyTool]:
    import tempfile

    # Nobody closes this gateway, and Windows removes no open file.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv(TEAMS_VARIABLE, "1")
        return list(gateway_in(Path(folder)).catalog.tools())


@pytest.fixture(autouse=True)
def teams_are_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TEAMS_VARIABLE, "1")


TOOLS = every_tool()
each_tool = pytest.mark.parametrize("spec", [tool.spec for tool in TOOLS], ids=lambda spec: spec.name)


def test_the_tools_are_listed_in_goats_order() -> None:
    listed = [tool.spec.name for tool in TOOLS]

    assert [name for name in listed if name in HINTS] == list(HINTS)


@each_tool
def test_all_four_hints_and_a_title_are_stated(spec: ToolSpec) -> None:
    stated = spec.wire()["annotations"]
    names = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")

    assert stated["title"] == spec.title != ""
    assert all(type(stated[name]) is bool for name in names)
    if spec.name in HINTS:  # of a tool that came later, manifests/builtin shows what it states
        assert tuple(stated[name] for name in names) == HINTS[spec.name]


@each_tool
def test_the_risk_follows_from_the_side_effect(spec: ToolSpec) -> None:
    expected = "critical" if spec.name == "Bash" else RISKS[spec.side_effect.value]
    assert spec.risk.name.lower() == expected


@each_tool
def test_a_description_is_short(spec: ToolSpec) -> None:
    assert 0 < len(spec.description.encode()) <= MAX_DESCRIPTION_BYTES


@each_tool
def test_a_schema_is_a_flat_object_that_every_host_takes(spec: ToolSpec) -> None:
    schema = spec.input_schema

    assert schema["type"] == "object"
    assert schema.get("additionalProperties") is (None if spec.name == TAKES_MORE_FIELDS else False)
    assert not {"oneOf", "anyOf", "allOf", "not", "$ref", "$defs"} & set(schema)
    for name, field in schema["properties"].items():
        assert "$ref" not in json.dumps(field), name
        if field.get("type") == "array":
            assert "items" in field, name
    assert "outputSchema" not in spec.wire()


@each_tool
def test_the_hosts_loading_hints_are_there(spec: ToolSpec) -> None:
    meta = spec.wire().get("_meta", {})

    assert meta.get("anthropic/alwaysLoad", False) is (spec.name in ALWAYS_LOADED)
    assert ("anthropic/maxResultSizeChars" in meta) is (spec.name in WITH_RESULT_SIZE)


def test_all_definitions_fit_the_budget() -> None:
    listing = json.dumps([tool.spec.wire() for tool in TOOLS], separators=(",", ":"), ensure_ascii=False)

    assert len(listing) / 4 <= MAX_TOKENS


@each_tool
def test_the_examples_of_a_tool_are_valid_calls(spec: ToolSpec) -> None:
    tool = next(tool for tool in TOOLS if tool.spec is spec)

    assert spec.examples
    for example in spec.examples:
        tool.validate(example.input)


@pytest.mark.anyio
@each_tool
async def test_an_unknown_field_is_refused_by_name_and_shortly(tmp_path: Path, spec: ToolSpec) -> None:
    if spec.name == TAKES_MORE_FIELDS:
        return
    result = await gateway_in(tmp_path).pipeline.call(
        spec.name, {"no_such_field": "x" * 100_000}, ToolContext(call_id="c")
    )

    assert (result.is_error, result.error_code) == (True, "E_INPUT")
    assert "no_such_field" in result.text
    assert len(result.text) <= 1_100


@pytest.mark.anyio
@each_tool
async def test_plan_mode_runs_only_what_changes_nothing(tmp_path: Path, spec: ToolSpec) -> None:
    gateway = gateway_in(tmp_path, mode="plan")
    effect = gateway.pipeline.permission.decide(Call(spec), ToolContext(call_id="c")).effect.value

    asks_the_network_only = spec.name in ("WebFetch", "WebSearch")
    changes_nothing = spec.hints.read_only or spec.side_effect is SideEffect.NONE or asks_the_network_only
    assert effect == ("ask" if asks_the_network_only else "allow" if changes_nothing else "deny")


@pytest.mark.anyio
@each_tool
async def test_a_deny_rule_stops_every_tool(tmp_path: Path, spec: ToolSpec) -> None:
    gateway = gateway_in(tmp_path, permissions={"deny": [spec.name]}, mode="bypassPermissions")
    assert gateway.pipeline.permission.decide(Call(spec), ToolContext(call_id="c")).effect.value == "deny"


def test_each_file_of_the_tools_folder_is_one_tool_and_named_after_it() -> None:
    import goat_mcp.tools

    folder = Path(str(goat_mcp.tools.__file__)).parent
    files = {file.stem for file in folder.glob("*.py")} - {"__init__"}

    assert files == {_snake_case(spec.name) for spec in builtin_contracts()} | {
        spec.name for spec in (*meta_contracts(), *app_contracts())
    }


def _snake_case(name: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name).removeprefix("_")
