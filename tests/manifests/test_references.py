"""References of Goondan's form in toolsets: each means one declared tool and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.manifests.declared import gateway_over, python
from tests.manifests.test_gateway_over_manifests import ONE, document, names

BASE_BASH = {"kind": "Tool", "name": "bash", "package": "@goondan/base"}
EXPORTS_OF_BASH = ["bash__exec", "bash__script"]


def problems(folder: Path, *tools: Any) -> list[str]:
    document(folder / "tools", "Toolset", "ops", tools=list(tools))
    gateway = gateway_over(folder, folder / "tools", catalog={"toolsets": ["ops"]})
    return [problem["detail"].partition("Toolset-ops.yaml".lower() + ":")[2] for problem in gateway.problems()]


@pytest.mark.parametrize("package", ["@goondan/base", "goat-mcp"])
@pytest.mark.parametrize("is_wrapped", [True, False])
def test_a_reference_with_a_package_turns_on_exactly_that_tool(tmp_path: Path, package: str, is_wrapped: bool) -> None:
    reference = {**BASE_BASH, "package": package}
    document(tmp_path / "tools", "Toolset", "ops", tools=[{"ref": reference} if is_wrapped else reference])

    gateway = gateway_over(tmp_path, tmp_path / "tools", catalog={"toolsets": ["ops"]})

    assert names(gateway) == EXPORTS_OF_BASH
    assert gateway.problems() == []


def test_denying_a_reference_with_a_package_takes_nothing_else_away(tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    document(folder, "Toolset", "ops", tools=[BASE_BASH])
    settings = {"toolsets": ["core", "base"]}

    whole = gateway_over(tmp_path, folder, catalog=settings)
    without = gateway_over(tmp_path, folder, catalog={**settings, "deny": ["toolset:ops"]})

    assert [name for name in names(whole) if name not in names(without)] == EXPORTS_OF_BASH


def test_a_reference_without_a_package_is_the_users_own_tool_and_no_alias_of_a_built_in(tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    python(folder, "bash", ONE, "say")
    document(folder, "Toolset", "ops", tools=[{"ref": {"kind": "Tool", "name": "bash"}}])

    assert names(gateway_over(tmp_path, folder, catalog={"toolsets": ["ops"]})) == ["bash__say"]


def test_a_users_tool_of_that_name_is_not_what_a_reference_with_a_package_means(tmp_path: Path) -> None:
    python(tmp_path / "tools", "bash", ONE, "say")

    found = problems(tmp_path, BASE_BASH, "Read")

    gateway = gateway_over(tmp_path, tmp_path / "tools", catalog={"toolsets": ["ops"]})
    place = tmp_path / "tools" / "bash" / "tool.yaml"
    assert names(gateway) == ["Read"]
    assert (
        "the toolset ops: 'bash' of the package is not there: "
        f"{place}:1 declares a tool of that name; rename that tool, or leave the package out to mean it"
    ) in "".join(found)


@pytest.mark.parametrize("reference", ["Tool/probe", {"ref": "Tool/probe"}, {"ref": {"kind": "Tool", "name": "probe"}}])
def test_each_of_goondans_ways_to_write_a_reference_is_understood(tmp_path: Path, reference: Any) -> None:
    folder = tmp_path / "tools"
    python(folder, "probe", ONE, "say")
    document(folder, "Toolset", "ops", tools=[reference])

    gateway = gateway_over(tmp_path, folder, catalog={"toolsets": ["ops"]})

    assert (names(gateway), gateway.problems()) == (["probe__say"], [])


AGENTS_TOOLS: dict[str, tuple[dict[str, Any], set[str] | None]] = {
    "one of the package": ({"tools": [BASE_BASH]}, set(EXPORTS_OF_BASH)),
    "their own and a built-in": ({"tools": ["Tool/probe", "Read"]}, {"probe__say", "Read"}),
    "a declared toolset": ({"tools": ["toolset:ops"]}, {"Grep", "probe__say"}),
    "an upstream": ({"tools": ["mcp__github", "mcp__jira__get"]}, {"mcp__github", "mcp__jira__get"}),
    "none": ({"tools": []}, set()),
    "all": ({}, None),
}


@pytest.mark.parametrize(("spec", "tools"), AGENTS_TOOLS.values(), ids=AGENTS_TOOLS)
def test_an_agent_has_the_tools_that_its_references_mean(
    tmp_path: Path, spec: dict[str, Any], tools: set[str] | None
) -> None:
    folder = tmp_path / "tools"
    python(folder, "probe", ONE, "say")
    document(folder, "Toolset", "ops", tools=["Grep", "probe"])
    document(folder, "Agent", "guide", **spec)

    (agent,) = gateway_over(tmp_path, folder, catalog={"toolsets": ["core", "base"]}).declared.agent_types()

    assert (agent.name, agent.source, agent.tools) == ("guide", "manifest", tools)


def test_a_tool_that_an_agent_names_and_nobody_has_is_reported(tmp_path: Path) -> None:
    document(tmp_path / "tools", "Agent", "guide", tools=["Bsh", BASE_BASH])

    (found,) = gateway_over(tmp_path, tmp_path / "tools").problems()

    assert found["detail"].endswith("the agent guide: 'Bsh' names no tool; did you mean Bash or bash?")


def test_a_name_that_the_package_does_not_have_is_reported(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, {**BASE_BASH, "name": "bahs"})

    assert found.endswith("the toolset ops: 'bahs' names no tool; did you mean bash?")


NOT_ONE_TOOL = ["toolset:core", "mcp__github", "mcp__github__*", "*", "shipped:bash"]


@pytest.mark.parametrize("name", NOT_ONE_TOOL)
@pytest.mark.parametrize("package", [{}, {"package": "@goondan/base"}], ids=["its own", "of the package"])
def test_a_reference_to_more_than_one_tool_is_refused(tmp_path: Path, name: str, package: dict[str, str]) -> None:
    folder = tmp_path / "tools"
    document(folder, "Agent", "guide", tools=["Grep", {"ref": {"kind": "Tool", "name": name, **package}}])

    gateway = gateway_over(tmp_path, folder)
    (found,) = gateway.problems()

    assert gateway.declared.agent_types() == ()
    assert found["detail"].endswith(
        f"spec.tools[1].ref.name: {name!r} is no usable name; write the name of one tool, e.g. bash or bash__exec"
    )


def test_a_text_reference_to_a_toolset_selects_nothing(tmp_path: Path) -> None:
    document(tmp_path / "tools", "Agent", "guide", tools=["Tool/toolset:core"])

    (agent,) = gateway_over(tmp_path, tmp_path / "tools").declared.agent_types()

    assert agent.tools == set()
