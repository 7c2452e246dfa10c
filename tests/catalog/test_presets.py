"""What a person may write to select tools, and what is said of what they may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.catalog.builtin_contracts import builtin_names
from goat_mcp.catalog.filter import labels_of
from goat_mcp.catalog.presets import BrokenSelection, Selections, own_presets
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import BrokenSettings, Settings
from goat_mcp.state.directory import StateDirectory
from tests.tool_doubles import FakeTool, spec


def gateway(folder: Path, *upstream: FakeTool, **catalog: Any) -> Gateway:
    (folder / "ws").mkdir(exist_ok=True)
    settings = Settings.model_validate({"workspace": [str(folder / "ws")], "catalog": catalog})
    made = Gateway(settings, approval=Approval.HOST, state=StateDirectory(folder / "state"))
    made.registry.replace_source("upstream:github", upstream)
    return made


def names(folder: Path, *upstream: FakeTool, **catalog: Any) -> list[str]:
    return [tool.spec.name for tool in gateway(folder, *upstream, **catalog).catalog.tools()]


def refusal(folder: Path, **catalog: Any) -> str:
    with pytest.raises(BrokenSettings) as caught:
        gateway(folder, **catalog)
    return f"{caught.value.message} {caught.value.suggestion}"


GITHUB = FakeTool(spec("mcp__github__search", toolset="upstream"))
GITHUB_ALIASED = FakeTool(spec("gh__search", canonical_name="mcp__github__search", toolset="upstream"))


def test_only_named_tools_are_in(tmp_path: Path) -> None:
    assert names(tmp_path, GITHUB, allow=["Grep", "Read"]) == ["Read", "Grep"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [("FileRead", "Read"), ("FileEdit", "Edit"), ("search", "Grep"), ("bash", "Bash"), (" Glob ", "Glob")],
)
def test_names_of_other_systems_select_ours(tmp_path: Path, written: str, meant: str) -> None:
    assert names(tmp_path, allow=[written]) == [meant]
    assert meant not in names(tmp_path, deny=[written])


@pytest.mark.parametrize("written", ["Task", "Agent", "ListMcpResourcesTool"])
def test_aliases_of_tools_are_known_whether_or_not_the_tool_is_there(written: str) -> None:
    (label,) = Selections({}).labels([written])
    assert label in builtin_names()


@pytest.mark.parametrize("tool", [GITHUB, GITHUB_ALIASED], ids=["qualified", "aliased"])
@pytest.mark.parametrize("written", ["mcp__github", "mcp__github__*", "mcp__github__search", "toolset:upstream"])
def test_an_upstreams_tools_are_selected_by_server_or_name(tmp_path: Path, tool: FakeTool, written: str) -> None:
    assert names(tmp_path, tool, allow=[written]) == [tool.spec.name]
    assert tool.spec.name not in names(tmp_path, tool, deny=[written])


def test_deny_beats_allow_and_presets(tmp_path: Path) -> None:
    assert names(tmp_path, allow=["preset:core"], deny=["Bash", "FileWrite"]) == ["Read", "Edit", "Glob", "Grep"]


def test_the_preset_core_is_its_toolset(tmp_path: Path) -> None:
    assert names(tmp_path, GITHUB, allow=["preset:core"]) == ["Bash", "Read", "Write", "Edit", "Glob", "Grep"]


def test_the_preset_claude_code_is_the_default(tmp_path: Path) -> None:
    assert names(tmp_path, GITHUB, allow=["preset:claude_code"]) == names(tmp_path, GITHUB)


def test_the_preset_read_only_is_every_built_in_that_only_reads(tmp_path: Path) -> None:
    selected = set(names(tmp_path, GITHUB, allow=["preset:read_only"]))

    reading = {tool.spec.name for tool in gateway(tmp_path).catalog.tools() if tool.spec.hints.read_only}
    assert selected == reading


def test_a_preset_of_ones_own_holds_tools_and_toolsets(tmp_path: Path) -> None:
    presets = {"reviewer": ["FileRead", "Grep", "mcp__github"], "runner": "toolset:tasks"}

    assert names(tmp_path, GITHUB, allow="preset:reviewer", presets=presets) == ["Read", "Grep", "mcp__github__search"]
    assert names(tmp_path, allow=["preset:runner", "Glob"], presets=presets) == ["Glob", "TaskOutput", "TaskStop"]


@pytest.mark.parametrize(
    ("catalog", "said"),
    [
        ({"allow": ["Raed"]}, "catalog.allow: 'Raed' names no tool; did you mean Read"),
        ({"deny": ["Bsah"]}, "catalog.deny: 'Bsah' names no tool; did you mean Bash"),
        ({"allow": ["zzz"]}, "catalog.allow: 'zzz' names no tool; tools are Bash, Read,"),
        ({"allow": ["preset:readonly"]}, "catalog.allow: 'readonly' is no preset; did you mean read_only?"),
        ({"allow": ["toolset:notebooks"]}, "'notebooks' is no toolset; did you mean notebook?"),
        ({"allow": ["Bash(git *)"]}, "'Bash(git *)' is a rule; write it under permissions"),
        ({"allow": ["mcp____x"]}, "'mcp____x' is not of the form mcp__server__tool"),
        ({"allow": ["mcp__github__get_*"]}, "`*` stands only for all tools of a server"),
        (
            {"allow": ["toolset:teams"]},
            "toolset:teams needs the toolset teams, which is off Set CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1.",
        ),
        ({"toolsets": ["core"], "allow": ["TaskStop"]}, "TaskStop needs the toolset tasks, which is off"),
        ({"presets": {"core": ["Read"]}}, "catalog.presets: preset core is one of ours"),
        ({"presets": {"a b": ["Read"]}}, "catalog.presets: preset 'a b': a name has A-Z a-z 0-9 - and _"),
        ({"presets": {"mine": ["Raed"]}}, "catalog.presets: preset mine: 'Raed' names no tool; did you mean Read"),
        ({"presets": {"mine": ["preset:core"]}}, "preset mine: 'preset:core': a preset holds tools and toolset:NAME"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_not_understood_stops_the_start_and_is_named(
    tmp_path: Path, catalog: dict[str, Any], said: str
) -> None:
    assert said in refusal(tmp_path, **catalog)


def test_a_preset_may_hold_more_than_is_on(tmp_path: Path) -> None:
    assert names(tmp_path, toolsets=["tasks"], allow=["preset:claude_code"]) == ["TaskOutput", "TaskStop"]


def test_where_upstreams_go_by_plain_names_a_name_may_be_one_of_theirs() -> None:
    flat = Selections({}, flat_names=True)

    assert flat.labels(["search_notes"]) == {"search_notes"}
    assert flat.labels(["Task"]) == {"Task", "Agent"}
    with pytest.raises(BrokenSelection):
        flat.labels([""])


def test_a_tools_labels_are_its_names_its_toolset_and_its_server() -> None:
    assert labels_of(spec("Read")) == {"Read", "toolset:core"}
    assert labels_of(GITHUB_ALIASED.spec) == {"gh__search", "mcp__github__search", "mcp__github", "toolset:upstream"}


def test_our_presets_are_understood() -> None:
    assert all(Selections({}).labels([f"preset:{name}"]) for name in own_presets())


def test_a_server_that_nobody_configured_is_a_problem_and_no_error(tmp_path: Path) -> None:
    made = gateway(tmp_path, allow=["Read", "mcp__githb__search"], deny=["mcp__x"])

    assert [(found["name"], found["reason_code"]) for found in made.problems()] == [
        ("mcp__githb__search", "unknown_server"),
        ("mcp__x", "unknown_server"),
    ]
