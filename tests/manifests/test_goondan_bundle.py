"""A bundle as Goondan writes it: its tools answer, its agent has the tools it names, and nothing is passed over.

Source: Goondan, "The Tool resource schema", "ToolHandler: the implementation contract", "Built-in Tools".
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.gateway.gateway import Gateway
from tests.agents.scripted import ScriptedModel, ground, results_in, says, use
from tests.cli.test_call import run
from tests.manifests.declared import call, error_of, gateway_over

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")]

BUNDLE = Path(__file__).with_name("goondan_bundle")
OFFICE = [
    *("bash__exec", "bash__script", "file-system__read", "file-system__write"),
    *("notes__add", "notes__list", "weather__today"),
]
AGENTS_TOOLS = {"weather__today", "bash__exec", "bash__script"}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return Path(shutil.copytree(BUNDLE, tmp_path / "bundle"))


def seen(gateway: Gateway) -> list[str]:
    return sorted(tool.spec.name for tool in gateway.catalog.tools())


async def test_its_tools_in_two_languages_answer(tmp_path: Path, bundle: Path) -> None:
    gateway = gateway_over(tmp_path, bundle)

    async with gateway.running():
        weather = await call(gateway, "weather__today", city="Oslo", wind="on")
        unknown = await call(gateway, "weather__today", city="A" * 200)
        added = await call(gateway, "notes__add", text="Take an umbrella.")
        listed = await call(gateway, "notes__list")

    assert weather.structured == {"city": "Oslo", "degrees": 7, "wind": "on"}
    error = error_of(unknown)
    assert (error["code"], error["name"], error["suggestion"]) == ("E_TOOL", "UnknownCity", "Ask about Paris or Oslo.")
    assert len(error["message"]) == 100  # errorMessageLimit: 50 counts as 100
    assert (added.structured, listed.structured) == ({"written": True}, {"result": ["Take an umbrella."]})


async def test_its_toolset_with_package_references_is_exactly_what_clients_see(tmp_path: Path, bundle: Path) -> None:
    assert seen(gateway_over(tmp_path, bundle, catalog={"toolsets": ["office"]})) == OFFICE


async def test_its_agent_is_a_type_with_exactly_its_tools(tmp_path: Path, bundle: Path) -> None:
    uses = (use("weather__today", {"city": "Paris"}, "1"), use("notes__list", {}, "2"))
    model = ScriptedModel([says("", *uses), says("18 degrees.")])
    settings: dict[str, Any] = {"manifests": [str(bundle)], "catalog": {"toolsets": ["core", "agent", "office"]}}

    async with ground(tmp_path, model, **settings) as on:
        answer = await on.agent("Paris?", subagent_type="forecaster")

    first, second = model.requests
    assert {tool.name for tool in first.tools} == AGENTS_TOOLS
    assert "You forecast the weather.\n\nName the station that you asked." in first.system
    weather, notes = results_in(second.messages[-1])
    assert '"degrees": 18' in weather
    assert "notes__list is not among this agent's tools" in notes
    assert "18 degrees." in answer.text, answer.text


def test_manifest_check_names_each_kind_that_has_no_effect(tmp_path: Path, bundle: Path) -> None:
    done = run("manifest", "check", str(bundle), cwd=tmp_path)

    file = bundle / "goondan.yaml"
    missing = (
        "sideEffect is missing, so people are asked before each call; write one of none, read_only, mutating, network, "
        "blocking, spawns; until then it counts as network"
    )
    no_effect = "has no effect here"
    assert done.stdout.splitlines() == [
        f"{file}:7: warning: spec.errorMessageLimit: 50 is out of range and counts as 100; write 100 to 10000",
        f"{file}:9: warning: {missing}",
        f"{file}:27: warning: {missing}",
        f"{file}:34: warning: {missing}",
        f"{file}:64: note: spec.modelConfig {no_effect}; see the settings `agent.*`, and `extensions`",
        f"{file}:77: note: spec.extensions {no_effect}; see the settings `agent.*`, and `extensions`",
        f"{file}:81: warning: kind: Extension {no_effect}: what it does around calls is not done; "
        "write it in Python (docs/extensions.md), or as a hook (docs/hooks.md)",
        f"{file}:88: note: kind: Model {no_effect}; models are the settings `agent.*`",
    ]
    assert done.stderr == "5 warnings, 3 notes; read: 3 tools, 1 toolset, 1 agent\n"
    assert done.returncode == 0
