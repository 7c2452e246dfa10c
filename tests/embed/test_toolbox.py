"""A box of tools of your own: registered, called, offered to a model, and served over MCP, all by one pipeline."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import dataclass
from datetime import date
from functools import wraps
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import Client

import goat_mcp
from goat_mcp import (
    BrokenSettings,
    Hooks,
    NameTaken,
    SideEffect,
    ToolBox,
    ToolContext,
    ToolResult,
    ToolSpec,
    open_tools,
    text_result,
)
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.gateway.build.program_tools import ProgramTools
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import Adapter
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from tests.tool_doubles import fake

pytestmark = pytest.mark.anyio
BOUND_S = 60


def greet(name: str, times: int = 1) -> str:
    """Greet somebody by name."""
    return " ".join([f"Hello, {name}!"] * times)


async def find(city: str) -> dict[str, Any]:
    """Find a city."""
    if city == "Atlantis":
        raise ValueError("no such city")
    return {"city": city}


@dataclass
class Stay:
    nights: int


def book(stay: Stay, arrival: date, ctx: ToolContext, schema: str = "plain") -> Any:
    """Book a stay."""
    return {"nights": stay.nights, "year": arrival.year, "schema": schema, "has_id": bool(ctx.call_id)}


@pytest.fixture
def box(tmp_path: Path) -> ToolBox:
    return ToolBox(greet, find, state_directory=tmp_path / "state")


async def test_a_plain_function_is_a_tool_with_the_schema_of_its_annotations(box: ToolBox) -> None:
    tool = box.get("greet")

    assert tool is not None
    assert (tool.spec.description, tool.spec.input_schema) == (
        "Greet somebody by name.",
        {
            "type": "object",
            "properties": {"name": {"type": "string"}, "times": {"type": "integer", "default": 1}},
            "required": ["name"],
            "additionalProperties": False,
        },
    )
    assert (await box.call("greet", {"name": "World"})).text == "Hello, World!"
    assert (await box.call("greet", {"name": "W", "times": "2"})).text == "Hello, W! Hello, W!"


async def test_arguments_become_what_the_annotations_want(tmp_path: Path) -> None:
    box = ToolBox(book, state_directory=tmp_path / "state")

    result = await box.call("book", {"stay": {"nights": 3}, "arrival": "2026-05-01", "schema": "own"})

    assert result.structured == {"nights": 3, "year": 2026, "schema": "own", "has_id": True}
    assert "ctx" not in box.tools()[0].spec.input_schema["properties"]


async def test_a_call_never_raises_and_says_what_is_wrong(box: ToolBox) -> None:
    unknown = await box.call("gret", {})
    wrong = await box.call("greet", {"nme": "x"})
    failed = await box.call("find", {"city": "Atlantis"})

    assert (unknown.error_code, unknown.text.splitlines()[0]) == ("E_TOOL_NOT_FOUND", "tool not found: gret")
    assert (wrong.error_code, wrong.text.splitlines()[:2]) == (
        "E_INPUT",
        ["nme: unknown field; did you mean name?", "name: is required"],
    )
    assert (failed.error_code, failed.wire()["structuredContent"]["error"]["name"]) == ("E_TOOL", "ValueError")
    assert failed.text.splitlines()[0] == "no such city"


async def test_a_function_that_ends_the_program_ends_its_call_only(tmp_path: Path) -> None:
    def leave() -> None:
        """Leave."""
        sys.exit(3)

    result = await ToolBox(leave, state_directory=tmp_path / "state").call("leave")

    assert (result.error_code, result.text.splitlines()[0]) == ("E_TOOL", "the function ended with exit status 3")


async def test_an_async_function_in_a_decorator_is_awaited_and_its_context_may_be_optional(
    tmp_path: Path,
) -> None:
    async def first(town: str, ctx: ToolContext | None = None) -> str:
        """Say what comes."""
        return f"{town} {ctx is not None}"

    @wraps(first)
    def decorated(*given: Any, **named: Any) -> Any:
        return first(*given, **named)

    box = ToolBox(decorated, state_directory=tmp_path / "state")

    assert (await box.call("first", {"town": "Oslo"})).text == "Oslo True"


async def test_a_function_that_waits_does_not_hold_up_others(tmp_path: Path) -> None:
    go = threading.Event()

    def wait() -> str:
        """Wait."""
        return str(go.wait(BOUND_S))

    async def open_it() -> str:
        """Let the other go."""
        go.set()
        return "open"

    box, results = ToolBox(wait, open_it, state_directory=tmp_path / "state"), list[str]()

    async def call(name: str) -> None:
        results.append((await box.call(name)).text)

    with anyio.fail_after(BOUND_S):
        async with anyio.create_task_group() as group:
            group.start_soon(call, "wait")
            group.start_soon(call, "open_it")

    assert sorted(results) == ["True", "open"]


def _no_docstring(a: int) -> None: ...


def _no_annotation(a) -> None:  # type: ignore[no-untyped-def]
    """Text."""


def _any_number(*numbers: int) -> None:
    """Text."""


def _a_lock(town: str, lock: threading.Event) -> None:
    """Text."""


NO_TOOLS: dict[str, tuple[Any, str]] = {
    "no docstring": (_no_docstring, "_no_docstring has no docstring"),
    "no annotation": (_no_annotation, "_no_annotation: parameter a has no annotation"),
    "any number": (_any_number, "_any_number: parameter numbers cannot be given by name"),
    "no JSON": (_a_lock, r"_a_lock: parameter lock is a threading.Event, which JSON cannot hold"),
    "no name": (lambda: 1, "<lambda> is no named function"),
}


@pytest.mark.parametrize("case", NO_TOOLS)
def test_what_cannot_be_a_tool_is_refused_by_name(case: str) -> None:
    function, problem = NO_TOOLS[case]

    with pytest.raises(TypeError, match=problem):
        ToolBox(function)


def test_names_are_replaced_and_boxes_merged_only_when_asked_for_in_words(box: ToolBox) -> None:
    other = ToolBox(fake("greet"), fake("third"))

    with pytest.raises(NameTaken):
        box.register(fake("greet"))
    with pytest.raises(NameTaken):
        box.merge(other)
    box.merge(other, replace=True)

    assert [tool.spec.name for tool in box.tools()] == ["greet", "find", "third"]
    assert box.get("greet") is other.get("greet")
    assert box.unregister("th") == 1
    assert box.get("third") is None


async def test_a_disabled_tool_is_neither_listed_nor_called_and_an_allowed_one_is_not_asked_about(
    tmp_path: Path,
) -> None:
    box = ToolBox(greet, find, allowed=["greet"], disabled=["later"])
    (tmp_path / "ws").mkdir()

    async with open_tools(
        {"workspace": [str(tmp_path / "ws")]}, tools=box, state_directory=tmp_path / "state"
    ) as tools:
        box.register(fake("later"))
        names = [made["function"]["name"] for made in await tools.definitions()]
        allowed = await tools.call("greet", {"name": "World"})
        asked = await tools.call("find", {"city": "Oslo"})
        disabled = await tools.call("later", {})
        built_in = await tools.call("Glob", {"pattern": "*"})

    assert (box.is_allowed("greet"), box.is_disabled("later"), box.is_allowed("find")) == (True, True, False)
    assert {"greet", "find", "Bash"} <= set(names) and "later" not in names
    assert (allowed.text, asked.error_code, disabled.error_code) == (
        "Hello, World!",
        "E_PERMISSION",
        "E_TOOL_NOT_IN_CATALOG",
    )
    assert not built_in.is_error


@pytest.mark.parametrize(
    ("name", "problem"),
    [("Read", "Read is already registered by builtin;"), ("bash", "bash is already registered by builtin as Bash;")],
)
async def test_a_tool_with_the_name_of_a_built_in_one_is_refused(name: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(NameTaken, match=problem):
        async with open_tools({}, tools=ToolBox(fake(name)), state_directory=tmp_path / "state"):
            pass


@pytest.mark.parametrize(
    ("settings", "outcome"),
    [
        ({"permissions": {"allow": ["greet"]}}, None),
        ({"permissions": {"allow": ["greet"], "deny": ["greet"]}}, "E_PERMISSION"),
        ({"permissions": {"allow": ["greet"]}, "catalog": {"deny": ["greet"]}}, "E_TOOL_NOT_IN_CATALOG"),
        ({"profiles": {"few": {"tools": {"deny": ["greet"]}}}, "profile": "few"}, "E_TOOL_NOT_IN_CATALOG"),
    ],
)
async def test_settings_may_name_tools_of_a_box(settings: dict[str, Any], outcome: str | None, tmp_path: Path) -> None:
    async with open_tools(settings, tools=ToolBox(greet), state_directory=tmp_path / "state") as tools:
        assert (await tools.call("greet", {"name": "World"})).error_code == outcome


@pytest.mark.parametrize("settings", [{"permissions": {"deny": ["gret"]}}, {"catalog": {"deny": ["gret"]}}])
async def test_a_misspelt_tool_of_a_box_in_the_settings_is_an_error(settings: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(BrokenSettings, match="names no tool; did you mean greet"):
        async with open_tools(settings, tools=ToolBox(greet), state_directory=tmp_path / "state"):
            pass


async def test_calls_of_a_box_go_through_hooks_and_the_record(tmp_path: Path) -> None:
    seen: list[str] = []

    async def after(spec: ToolSpec, result: ToolResult, ctx: ToolContext) -> ToolResult:
        seen.append(spec.name)
        return text_result(result.text.upper())

    box = ToolBox(greet, allowed=["greet"])
    async with open_tools({}, tools=box, hooks=Hooks(after=(after,)), state_directory=tmp_path / "state") as tools:
        text = (await tools.call("greet", {"name": "World"})).text

    records = "".join(file.read_text() for file in (tmp_path / "state").rglob("*.jsonl"))
    assert (seen, text) == (["greet"], "HELLO, WORLD!")
    assert '"tool":"greet"' in records.replace('": "', '":"')


def served(box: ToolBox, tmp_path: Path) -> Gateway:
    own = ProgramTools(box.registry, box.allowed, box.disabled, alone=True, name="mine", instructions="Be kind.")
    return Gateway(Settings(), approval=Approval.HOST, state=StateDirectory(tmp_path / "state"), tools=own)


async def test_a_served_box_shows_its_tools_alone_and_announces_those_that_another_thread_adds(tmp_path: Path) -> None:
    changed = anyio.Event()

    async def heard(message: Any) -> None:
        if "list_changed" in str(getattr(message, "method", "")):
            changed.set()

    box = ToolBox(greet)
    gateway = served(box, tmp_path)
    adapter = Adapter(gateway, "stdio")
    before, after, result = list[str](), list[str](), None
    async with gateway.running(), anyio.create_task_group() as group:
        await group.start(adapter.run)
        async with Client(adapter.server, mode="legacy", message_handler=heard) as client:
            before = [tool.name for tool in (await client.list_tools()).tools]
            await anyio.to_thread.run_sync(box.register, find)
            with anyio.fail_after(BOUND_S):
                await changed.wait()
            after = [tool.name for tool in (await client.list_tools()).tools]
            result = await client.call_tool("find", {"city": "Oslo"})
        group.cancel_scope.cancel()

    assert (before, after) == (["greet"], ["greet", "find"])
    assert result is not None and result.structured_content == {"city": "Oslo"}


async def test_a_gateway_that_has_ended_leaves_the_box(tmp_path: Path) -> None:
    box = ToolBox(greet)
    async with open_tools({}, tools=box, state_directory=tmp_path / "state") as tools:
        ended = tools.gateway.registry

    box.register(find)

    assert ended.get("greet") is not None
    assert ended.get("find") is None


def test_the_side_effect_of_a_function_is_what_you_say() -> None:
    box = ToolBox(find)
    box.register(greet, side_effect=SideEffect.NONE)

    found = {tool.spec.name: tool.spec.side_effect for tool in box.tools()}
    assert found == {"find": SideEffect.NETWORK, "greet": SideEffect.NONE}


def test_every_public_name_is_there_and_importing_the_package_loads_nothing_else() -> None:
    program = (
        "import json, sys, goat_mcp\n"
        "loaded = sorted(name for name in sys.modules if name.split('.')[0] in ('goat_mcp', 'pydantic', 'mcp'))\n"
        "missing = [name for name in goat_mcp.__all__ if not hasattr(goat_mcp, name)]\n"
        "print(json.dumps([loaded, missing]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, timeout=BOUND_S)

    loaded, missing = json.loads(done.stdout)
    assert missing == []
    assert loaded == ["goat_mcp", "goat_mcp.core", "goat_mcp.core.version"]
    with pytest.raises(AttributeError):
        _ = goat_mcp.nothing
