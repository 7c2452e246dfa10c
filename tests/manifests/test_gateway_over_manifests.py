"""Declared tools, upstreams, toolsets and profiles in a running gateway: what is on, what is hot, what is refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from goat_mcp.calls.permissions.mode import Approval, Mode
from goat_mcp.core.context import ToolContext
from goat_mcp.core.rights import Rights
from goat_mcp.gateway.build.manifests import shipped_folder
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import BrokenSettings
from tests.manifests.declared import call, error_of, eventually, gateway_over, python, tool, write

pytestmark = pytest.mark.anyio

ECHO = "handlers = {'say': lambda ctx, input: input}"
ONE = "handlers = {'say': lambda ctx, input: 1}"
WEATHER = Path(__file__).resolve().parents[2] / "examples" / "weather_stdio.py"


def document(folder: Path, kind: str, name: str, **spec: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump({"apiVersion": "goat-mcp/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
    (folder / f"{kind}-{name}.yaml".lower()).write_text(text)


def names(gateway: Gateway) -> list[str]:
    return [tool.spec.name for tool in gateway.catalog.tools()]


async def test_a_declared_tool_is_listed_after_the_built_in_ones_and_before_upstreams(tmp_path: Path) -> None:
    python(tmp_path / "tools", "probe", ONE, "say")

    gateway = gateway_over(tmp_path, tmp_path / "tools")

    assert names(gateway)[0] == "Bash"
    assert names(gateway)[-1] == "probe__say"


async def test_its_entry_in_the_list_is_what_the_manifest_says(tmp_path: Path) -> None:
    export = {
        "name": "say",
        "title": "Say it",
        "description": "Says it.",
        "sideEffect": "network",
        "hints": {"idempotentHint": False},
        "parameters": {"type": "object", "properties": {"it": {"type": "string"}}, "required": ["it"]},
        "output": {"type": "object", "properties": {"said": {"type": "string"}}},
    }
    write(tmp_path / "tools", tool("probe", "./handlers.py", export), handlers_py=ONE)

    entry = gateway_over(tmp_path, tmp_path / "tools").catalog.shown()["probe__say"].entry

    assert entry == {
        "name": "probe__say",
        "title": "Say it",
        "description": "Says it.",
        "inputSchema": {"type": "object", "properties": {"it": {"type": "string"}}, "required": ["it"]},
        "outputSchema": {"type": "object", "properties": {"said": {"type": "string"}}},
        "annotations": {
            "title": "Say it",
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": False,
            "openWorldHint": True,
        },
    }


async def test_all_problems_with_the_arguments_are_told_at_once(tmp_path: Path) -> None:
    parameters = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["C", "F"]}},
        "required": ["city"],
    }
    python(tmp_path / "tools", "probe", ONE, {"name": "say", "parameters": parameters})
    gateway = gateway_over(tmp_path, tmp_path / "tools")

    async with gateway.running():
        result = await call(gateway, "probe__say", dayz=1, days="many", unit="K")

    assert result.text.splitlines() == [
        "dayz: unknown field; did you mean days?",
        'days: wants integer; got str "many"',
        'unit: wants one of C, F; got str "K"',
        "city: is required",
        "Correct these fields and call the tool again. "
        'Their schema: {"city":{"type":"string"},"days":{"type":"integer"},"unit":{"enum":["C","F"]}}',
        "[E_INPUT]",
    ]


async def test_arguments_are_taken_as_leniently_as_those_of_built_in_tools(tmp_path: Path) -> None:
    parameters = {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "days": {"type": "integer"},
            "deep": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "max_bytes": {"type": "integer"},
        },
    }
    source = "handlers = {'say': lambda ctx, input: input}"
    python(tmp_path / "tools", "probe", source, {"name": "say", "parameters": parameters})
    gateway = gateway_over(tmp_path, tmp_path / "tools")

    async with gateway.running():
        result = await call(gateway, "probe__say", text="5", days=" +3", deep="true", tags="a", maxBytes="null")

    assert result.structured == {"text": "5", "days": 3, "deep": True, "tags": ["a"]}


async def test_null_arrives_where_the_schema_takes_it_and_is_left_out_elsewhere(tmp_path: Path) -> None:
    properties: Any = {
        "days": {"type": ["integer", "null"]},
        "word": {"type": ["integer", "null"]},
        "text": {"type": ["string", "null"]},
        "tags": {"type": ["array", "null"]},
        "none": {"type": "null"},
        "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "gone": {"type": "integer"},
        "undefined": {"type": ["integer", "null"]},
    }
    parameters = {"type": "object", "properties": properties, "required": ["tags"]}
    python(tmp_path / "tools", "probe", ECHO, {"name": "say", "parameters": parameters})
    gateway = gateway_over(tmp_path, tmp_path / "tools")
    given: dict[str, Any] = dict.fromkeys(properties)
    given |= {"word": "null", "text": "null", "undefined": "undefined"}

    async with gateway.running():
        result = await call(gateway, "probe__say", **given)

    assert result.structured == {
        "days": None,
        "word": None,
        "text": "null",
        "tags": None,
        "none": None,
        "either": None,
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", "1e400"),
        ("n", "-1e400"),
        ("n", float("inf")),
        ("n", float("nan")),
        ("i", "1" * 5000),
        ("list", "[1, 1e400]"),
        ("list", [1, [float("inf")]]),
        ("any", {"a": float("-inf")}),
    ],
)
async def test_a_number_that_json_does_not_have_is_refused(tmp_path: Path, name: str, value: Any) -> None:
    properties: Any = {"n": {"type": "number"}, "i": {"type": "integer"}, "list": {"type": "array"}, "any": {}}
    python(tmp_path / "tools", "probe", ECHO, {"name": "say", "parameters": {"properties": properties}})
    gateway = gateway_over(tmp_path, tmp_path / "tools")

    async with gateway.running():
        result = await call(gateway, "probe__say", **{name: value})

    first, *_, last = result.text.splitlines()
    assert (first.partition(":")[0], last) == (name, "[E_INPUT]")


async def test_a_value_that_the_manifest_does_not_promise_is_an_error(tmp_path: Path) -> None:
    export = {"name": "say", "output": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    python(tmp_path / "tools", "probe", "handlers = {'say': lambda ctx, input: {'n': 'one'}}", export)
    gateway = gateway_over(tmp_path, tmp_path / "tools")

    async with gateway.running():
        error = error_of(await call(gateway, "probe__say"))

    assert (error["code"], error["name"]) == ("E_TOOL", "OutputMismatch")
    assert error["message"].startswith("probe__say gave back what its manifest does not promise: $.n: type: ")


async def test_rules_hold_for_it(tmp_path: Path) -> None:
    python(tmp_path / "tools", "probe", ONE, "say")
    gateway = gateway_over(tmp_path, tmp_path / "tools", permissions={"deny": ["probe__say(city:Paris)"]})

    async with gateway.running():
        denied = await call(gateway, "probe__say", city="Paris")
        allowed = await call(gateway, "probe__say", city="Rome")

    assert error_of(denied)["code"] == "E_PERMISSION"
    assert allowed.text == "1"


@pytest.mark.parametrize(
    ("given", "is_reading"),
    [
        ({"action": "list"}, True),
        ({"action": "show one", "scope": "mine"}, True),
        ({"action": "show one", "scope": "all"}, True),
        ({"action": "drop"}, False),
        ({"action": "list; drop"}, False),
        ({"action": "LIST"}, False),
        ({"action": " list"}, False),
        ({"action": ["list"]}, False),
        ({"action": None}, False),
        ({}, False),
    ],
)
async def test_a_call_that_only_reads_by_its_manifest_runs_unasked_and_while_planning(
    tmp_path: Path, given: dict[str, Any], is_reading: bool
) -> None:
    parameters: Mapping[str, Any] = {"type": "object", "properties": {"action": {}, "scope": {}}}
    reading = {"readOnlyWhen": {"action": ["list", "show *"]}}
    export = {"name": "do", "sideEffect": "mutating", "parameters": parameters, **reading}
    python(tmp_path / "tools", "notes", ONE, export)
    gateway = gateway_over(tmp_path, tmp_path / "tools", mode="dontAsk")

    admission, ctx = gateway.pipeline.admission, ToolContext(call_id="c")
    effects: list[str] = []
    for mode in (Mode.DONT_ASK, Mode.PLAN):
        gateway.modes.choose(ctx.session_key, mode)
        effects.append(admission.decide("notes__do", given, ctx)[1].effect.value)

    assert effects == (["allow", "allow"] if is_reading else ["deny", "deny"])


async def test_a_file_it_says_it_reads_is_kept_by_rules_about_files(tmp_path: Path) -> None:
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
    export = {"name": "say", "sideEffect": "read_only", "access": {"reads": ["path"]}, "parameters": parameters}
    python(tmp_path / "tools", "probe", ONE, export)
    gateway = gateway_over(tmp_path, tmp_path / "tools", permissions={"deny": ["Read(secret.txt)"]})
    (tmp_path / "workspace" / "secret.txt").write_text("x")

    async with gateway.running():
        denied = await call(gateway, "probe__say", path="secret.txt")
        allowed = await call(gateway, "probe__say", path="other.txt")

    assert error_of(denied)["code"] == "E_PERMISSION"
    assert allowed.text == "1"


async def test_a_broken_one_is_a_problem_and_the_rest_works(tmp_path: Path) -> None:
    python(tmp_path / "tools", "good", ONE, "say")
    place = python(tmp_path / "tools", "bad", ONE, "say")
    (place / "tool.yaml").write_text("apiVersion: goat-mcp/v1\nkind: Tools\nmetadata: {name: bad}\nspec: {}\n")
    gateway = gateway_over(tmp_path, tmp_path / "tools")

    async with gateway.running():
        result = await call(gateway, "good__say")

    assert result.text == "1"
    assert gateway.problems() == [
        {
            "name": "tool.yaml",
            "reason_code": "broken_manifest",
            "detail": f"{place}/tool.yaml:2: kind: the text 'Tools' is unknown; did you mean Tool?",
        }
    ]


async def test_new_changed_and_removed_manifests_are_seen_while_it_runs(tmp_path: Path) -> None:
    place = python(tmp_path / "tools", "probe", ONE, "say")
    gateway = gateway_over(tmp_path, tmp_path / "tools")

    async with gateway.running():
        await call(gateway, "probe__say")
        python(tmp_path / "tools", "second", ONE, "say")
        await eventually(lambda: "second__say" in names(gateway))
        python(tmp_path / "tools", "second", ONE, "shout")
        await eventually(lambda: "second__shout" in names(gateway))
        (place / "tool.yaml").write_text("kind: nonsense")
        await eventually(lambda: "probe__say" not in names(gateway))

        assert {problem["reason_code"] for problem in gateway.problems()} == {"broken_manifest"}
        assert "second__say" not in names(gateway)


async def test_a_declared_upstream_is_one_of_the_gateways_and_is_hot(tmp_path: Path) -> None:
    """CFG-1, CFG-4."""
    folder = tmp_path / "tools"
    document(folder, "Upstream", "weather", transport={"command": sys.executable, "args": [str(WEATHER)]})
    gateway = gateway_over(tmp_path, folder)

    async with gateway.running():
        assert [status.name for status in gateway.upstreams.status()] == ["weather"]
        result = await call(gateway, "mcp__weather__list_towns")
        document(folder, "Upstream", "second", command=sys.executable, args=[str(WEATHER)], naming="w2")
        await eventually(lambda: len(gateway.upstreams.status()) == 2)

    assert not result.is_error, result.text


async def test_a_broken_declared_upstream_is_a_problem_like_one_of_a_file(tmp_path: Path) -> None:
    document(tmp_path / "tools", "Upstream", "weather", transport={"command": 7})

    problems = gateway_over(tmp_path, tmp_path / "tools").problems()

    assert [(problem["name"], problem["reason_code"]) for problem in problems] == [("weather", "config_error")]


async def test_a_declared_toolset_turns_on_what_it_holds_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    python(folder, "probe", ONE, "say", "shout")
    document(folder, "Toolset", "ops", tools=["Read", {"ref": {"kind": "Tool", "name": "probe"}}])

    gateway = gateway_over(tmp_path, folder, catalog={"toolsets": ["ops"]})

    assert names(gateway) == ["Read", "probe__say", "probe__shout"]


async def test_a_declared_toolset_can_be_allowed_and_denied_as_ours_can(tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    python(folder, "probe", ONE, "say", "shout")
    document(folder, "Toolset", "ops", tools=["Read", "probe__say"])

    allowed = gateway_over(tmp_path, folder, catalog={"allow": ["toolset:ops", "Grep"]})
    denied = gateway_over(tmp_path, folder, catalog={"deny": ["toolset:ops"]})

    assert names(allowed) == ["Read", "Grep", "probe__say"]
    assert {"Read", "probe__say"}.isdisjoint(names(denied)) and "probe__shout" in names(denied)


@pytest.mark.parametrize("name", ["core", "tasks", "goa", "upstream"])
async def test_a_declared_toolset_does_not_take_the_place_of_one_of_ours(tmp_path: Path, name: str) -> None:
    """What `toolset:core` denies stays denied, whatever a manifest says."""
    folder = tmp_path / "tools"
    document(folder, "Toolset", name, tools=["TodoWrite"])
    document(folder, "Profile", "small", tools={"deny": [f"toolset:{name}"]})
    (tmp_path / "none").mkdir()
    bare = gateway_over(tmp_path, tmp_path / "none", catalog={"deny": [f"toolset:{name}"]})

    gateway = gateway_over(tmp_path, folder, catalog={"deny": [f"toolset:{name}"]})
    whole = gateway_over(tmp_path, folder)

    assert names(gateway) == names(bare)
    assert [tool.spec.name for tool in whole.catalog.of(Rights(profiles=("small",))).tools()] == names(bare)
    assert [problem["reason_code"] for problem in gateway.problems()] == ["broken_manifest"]


async def test_a_toolset_that_nobody_declared_stops_the_start(tmp_path: Path) -> None:
    document(tmp_path / "tools", "Toolset", "ops", tools=["Read"])

    with pytest.raises(BrokenSettings, match=r"catalog.toolsets: 'opps' is no toolset; did you mean ops\?"):
        gateway_over(tmp_path, tmp_path / "tools", catalog={"toolsets": ["opps"]})


async def test_a_declared_profile_narrows_as_one_of_the_settings_does(tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    python(folder, "probe", ONE, "say")
    document(folder, "Profile", "small", tools={"allow": ["Read", "probe__say"]})

    gateway = gateway_over(tmp_path, folder)

    view = gateway.catalog.of(Rights(profiles=("small",)))
    assert [tool.spec.name for tool in view.tools()] == ["Read", "probe__say"]


KNOWN_OF_PROFILES = "upstreams, toolsets, tools, read_only, name_cap, schema_dialect, token_budget, token_file"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"toolz": ["Read"]}, "6: spec.toolz is unknown; did you mean tools?"),
        ({"colour": 1}, f"6: spec.colour is unknown; known are {KNOWN_OF_PROFILES}"),
        ({"read_only": True, "tools": {"alow": ["Read"]}}, "8: spec.tools.alow is unknown; did you mean allow?"),
        ({"read_only": True, "tools": {"x": []}}, "8: spec.tools.x is unknown; known are allow, deny"),
        (
            {"read_only": True, "name_cap": 5},
            "6: spec.name_cap: wants at least 32; fix the value",
        ),
    ],
)
async def test_a_broken_profile_is_a_problem_with_its_line_and_what_may_stand_there(
    tmp_path: Path, spec: Mapping[str, object], said: str
) -> None:
    document(tmp_path / "tools", "Profile", "small", **spec)

    problems = gateway_over(tmp_path, tmp_path / "tools").problems()

    assert problems[0]["detail"] == f"{tmp_path}/tools/profile-small.yaml:{said}"


async def test_settings_for_a_resource_that_nobody_declares_are_a_problem_and_no_stop(tmp_path: Path) -> None:
    python(tmp_path / "tools", "probe", ONE, "say")
    settings = {"prob": {"unit": "C"}, "probe": {"unit": "C"}, "slack": {}, "nosuch": {"key": "canary-4711"}}

    with_tools = gateway_over(tmp_path, tmp_path / "tools", tools=settings).problems()
    without = gateway_over(tmp_path, tools={"slakc": {}}).problems()

    near = "tools.prob has no effect: no resource has this name; did you mean probe?"
    assert with_tools[0] == {"name": "tools.prob", "reason_code": "unknown_tool_settings", "detail": near}
    assert [problem["name"] for problem in with_tools] == ["tools.prob", "tools.nosuch"]
    assert with_tools[1]["detail"].startswith(
        "tools.nosuch has no effect: no resource has this name; known are agents, bash,"
    )
    assert [problem["detail"] for problem in without] == [
        "tools.slakc has no effect: no resource has this name; did you mean slack?"
    ]


async def test_a_users_resource_replaces_one_that_comes_with_us_and_says_so(tmp_path: Path) -> None:
    place = python(tmp_path / "tools", "json-query", ONE, "say")

    gateway = gateway_over(tmp_path, tmp_path / "tools", catalog={"toolsets": ["base"]})

    (problem,) = gateway.declared.manifest_problems()
    assert str(problem) == (
        f"{place}/tool.yaml:4: this json-query replaces the one that {shipped_folder()}/json-query/tool.yaml declares; "
        "rename it to have both"
    )
    assert not problem.is_fatal
    assert [one["detail"] for one in gateway.problems()] == [str(problem)]
    assert gateway.registry.get("json-query__say") is not None
    assert gateway.registry.get("json-query__query") is None


async def test_a_directory_that_is_not_there_is_a_problem_without_a_line(tmp_path: Path) -> None:
    (problem,) = gateway_over(tmp_path, tmp_path / "nowhere").problems()

    assert problem["detail"] == (
        f"{tmp_path}/nowhere: cannot be read: No such file or directory; name a directory of manifests"
    )


@pytest.mark.parametrize("name", ["tool.yaml", "handlers.py", "."])
async def test_what_others_could_have_written_is_not_used(tmp_path: Path, name: str) -> None:
    """R-CONF-2."""
    place = python(tmp_path / "tools", "probe", ONE, "say")
    (place / name).chmod(0o777)

    gateway = gateway_over(tmp_path, tmp_path / "tools")

    assert "probe__say" not in names(gateway)
    assert "can be written by others (mode 0777)" in gateway.problems()[0]["detail"]


async def test_nothing_is_wrong_with_what_ships_with_us(tmp_path: Path) -> None:
    gateway = gateway_over(tmp_path, catalog={"toolsets": ["goa", "base"]})

    assert gateway.problems() == []
    assert {"http-fetch__get", "memento__note"} <= set(names(gateway))


async def test_what_ships_with_us_and_is_off_says_how_to_turn_it_on(tmp_path: Path) -> None:
    gateway = gateway_over(tmp_path)

    async with gateway.running():
        error = error_of(await call(gateway, "http-fetch__get", url="https://example.org"))

    assert error["code"] == "E_TOOL_NOT_IN_CATALOG"
    assert error["suggestion"] == "The operator can turn them on with --toolset goa or --toolset base."


async def test_a_projects_manifests_are_inert_until_it_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-CONF-1: a project's file adds nothing but denials until its content, and that of what it names, is trusted."""
    from goat_mcp.settings.loading import load_settings
    from goat_mcp.settings.settings import path_keys
    from goat_mcp.state.directory import StateDirectory
    from goat_mcp.state.trust.project import whole_project
    from goat_mcp.state.trust.settings_file import find_project_file
    from goat_mcp.state.trust.store import TrustStore

    project = tmp_path / "project"
    place = python(project / "tools", "probe", ONE, "say")
    (project / "goat-mcp.yaml").write_text("manifests: [tools]\n")
    state = StateDirectory(tmp_path / "state")
    monkeypatch.chdir(project)

    def gateway() -> Gateway:
        return Gateway(load_settings({}, state=state), approval=Approval.HOST, state=state)

    untrusted = names(gateway())
    found = find_project_file(project)
    assert found is not None
    TrustStore(state).trust(found.path, whole_project(found, path_keys()).sha256)
    trusted = names(gateway())
    (place / "handlers.py").write_text("handlers = {'say': lambda ctx, input: 2}")
    changed = names(gateway())

    assert [("probe__say" in seen) for seen in (untrusted, trusted, changed)] == [False, True, False]


async def test_an_audit_line_and_a_hook_see_it_under_its_own_name(tmp_path: Path) -> None:
    python(tmp_path / "tools", "probe", ONE, "say")
    gateway = gateway_over(tmp_path, tmp_path / "tools")

    async with gateway.running():
        await gateway.call("probe__say", {}, ToolContext(call_id="call-7"))

    lines = [json.loads(line) for line in (tmp_path / "state" / "audit.jsonl").read_text().splitlines()]
    assert {line["tool"] for line in lines if line.get("call_id") == "call-7"} == {"probe__say"}


async def test_a_resource_is_allowed_and_denied_by_its_own_name(tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    for name in ("weather", "tide"):
        python(folder, name, ONE, "say", "more")

    allowed = gateway_over(tmp_path, folder, catalog={"allow": ["weather", "Read"]})
    denied = gateway_over(tmp_path, folder, catalog={"deny": ["tide"]})
    profile = gateway_over(
        tmp_path, folder, profiles={"small": {"tools": {"allow": ["tide"]}}}, catalog={"allow": ["weather", "tide"]}
    )

    assert names(allowed) == ["Read", "weather__say", "weather__more"]
    assert [name for name in names(denied) if "__" in name] == ["weather__say", "weather__more"]
    shown = [tool.spec.name for tool in profile.catalog.of(Rights(profiles=("small",))).tools()]
    assert shown == ["tide__say", "tide__more"]
    with pytest.raises(BrokenSettings, match="'wether' names no tool; did you mean weather"):
        gateway_over(tmp_path, folder, catalog={"allow": ["wether"]})
