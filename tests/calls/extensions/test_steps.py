"""Tools that extensions bring at run time, and what they hide for one step: a client's list, an agent's turn."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from goat_mcp.calls.extensions.installed import ExtensionTools
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import Adapter
from goat_mcp.settings.settings import BrokenSettings, Settings
from goat_mcp.state.directory import StateDirectory
from tests.agents.scripted import ScriptedModel, ground, results_in, says, use
from tests.calls.extensions.installed_package import install

pytestmark = pytest.mark.anyio

SOURCE = """
from goat_mcp.core.side_effect import SideEffect

class Late:
    def register(self, tools):
        self.tools = tools
        tools.add("late__begin", "Adds another tool.", self.begin, side_effect=SideEffect.NONE)
    async def begin(self, ctx, arguments):
        self.tools.add("late__added", "Came later.", self.added, side_effect=SideEffect.NONE)
        return "begun"
    async def added(self, ctx, arguments):
        return {"added": True}

class Taker:
    def register(self, tools):
        tools.add("Read", "Not the real one.", None)

class OnlyFirstTurnReads:
    turns = 0
    def step(self, view):
        if view.is_agent:
            self.turns += 1
            if self.turns > 1:
                view.hide("Read")

class Broken:
    def step(self, view):
        view.hide("Glob")
        raise RuntimeError("a bug")

class HidesAndShows:
    def step(self, view):
        view.hide("Glob", "Grep", "no such tool")
        view.show("Grep", "TodoWrite", "TeamCreate")

class HidesGoasSearch:
    def step(self, view):
        view.hide("search")

class Nothing:
    pass

class Late2:
    async def step(self, view):
        pass
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("Late", "Taker", "OnlyFirstTurnReads", "Broken", "HidesAndShows", "HidesGoasSearch", "Nothing", "Late2")
    install(tmp_path, monkeypatch, {name: f"steps_x:{name}" for name in names}, {"steps_x": SOURCE})


def gateway(folder: Path, *extensions: str, **settings: Any) -> Gateway:
    (folder / "ws").mkdir(exist_ok=True)
    tree = {"workspace": [str(folder / "ws")], "extensions": list(extensions), **settings}
    return Gateway(Settings.model_validate(tree), approval=Approval.HOST, state=StateDirectory(folder / "state"))


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


async def test_a_tool_added_later_is_told_to_clients_and_can_be_called(tmp_path: Path) -> None:
    served, changed = gateway(tmp_path, "Late"), anyio.Event()
    before: list[str] = []
    after: list[str] = []
    result: Any = None

    async def heard(message: Any) -> None:
        if "list_changed" in str(getattr(message, "method", "")):
            changed.set()

    adapter = Adapter(served, "stdio")
    async with served.running(), anyio.create_task_group() as group:
        await group.start(adapter.run)
        async with Client(adapter.server, mode="legacy", message_handler=heard) as client:
            before = await names(client)
            await client.call_tool("late__begin", {})
            with anyio.fail_after(60):
                await changed.wait()
            after = await names(client)
            result = await client.call_tool("late__added", {})
        group.cancel_scope.cancel()

    assert set(after) - set(before) == {"late__added"}
    assert result.content[0].text == '{"added": true}'


def test_an_extension_replaces_no_tool(tmp_path: Path) -> None:
    with pytest.raises(BrokenSettings) as broken:
        gateway(tmp_path, "Taker")

    assert broken.value.message == (
        "extensions: 'Taker' cannot register its tools: NameTaken: "
        "Read is already registered by builtin, and an extension replaces nothing"
    )


@pytest.mark.parametrize(
    ("name", "what"),
    [("Nothing", "is a type, not a function"), ("Late2", "`register` and `step` cannot be async")],
)
def test_what_is_no_extension_stops_the_start_and_says_why(tmp_path: Path, name: str, what: str) -> None:
    with pytest.raises(BrokenSettings) as broken:
        gateway(tmp_path, name)

    assert what in broken.value.message


async def test_a_step_hides_from_a_clients_list_and_shows_no_more_than_the_settings_leave(tmp_path: Path) -> None:
    served = gateway(tmp_path, "HidesAndShows", catalog={"deny": ["TodoWrite"]})
    plain = gateway(tmp_path, catalog={"deny": ["TodoWrite"]})
    async with served.running(), plain.running():
        async with Client(Adapter(plain, "stdio").server, mode="legacy") as client:
            all_there_are = await names(client)
        async with Client(Adapter(served, "stdio").server, mode="legacy") as client:
            before_a_list: Any = await client.call_tool("Glob", {"pattern": "*"})
            seen = await names(client)
            hidden: Any = await client.call_tool("Glob", {"pattern": "*"})
            shown: Any = await client.call_tool("Grep", {"pattern": "x"})

    assert set(all_there_are) - set(seen) == {"Glob"}
    assert set(seen) <= set(all_there_are)
    assert not shown.is_error
    # Whoever has not listed yet has what a list would show.
    assert "[E_TOOL_NOT_IN_CATALOG]" in before_a_list.content[0].text
    assert "[E_TOOL_NOT_IN_CATALOG]" in hidden.content[0].text


async def test_a_step_hides_goas_name_of_a_tool_and_leaves_the_tool(tmp_path: Path) -> None:
    served = gateway(tmp_path, "HidesGoasSearch", catalog={"toolsets": ["goa"]})
    async with served.running(), Client(Adapter(served, "stdio").server, mode="legacy") as client:
        seen = await names(client)
        hidden: Any = await client.call_tool("search", {"pattern": "x"})
        shown: Any = await client.call_tool("Grep", {"pattern": "x"})

    assert "search" not in seen and "Grep" in seen
    assert "[E_TOOL_NOT_IN_CATALOG]" in hidden.content[0].text
    assert not shown.is_error


async def test_a_step_is_one_turn_of_an_agent(tmp_path: Path) -> None:
    read = use("Read", {"file_path": "@a.txt"})
    model = ScriptedModel([says("", read), says("", read), says("Done.")])
    async with ground(tmp_path, model, extensions=["OnlyFirstTurnReads"]) as on:
        (on.workspace / "a.txt").write_text("alpha\n")
        await on.agent()
        by_the_client = await on.call("Read", {"file_path": "@a.txt"})

    offered = ["Read" in [tool.name for tool in request.tools] for request in model.requests]
    assert offered == [True, False, False]
    assert "alpha" in results_in(model.requests[1].messages[-1])[0]
    assert "Read is hidden in this step" in results_in(model.requests[2].messages[-1])[0]
    assert "alpha" in by_the_client.text


async def test_a_step_that_raises_hides_nothing_and_spoils_no_other(tmp_path: Path) -> None:
    served = gateway(tmp_path, "Broken", "HidesAndShows")
    alone = gateway(tmp_path, "Broken")
    async with served.running(), alone.running():
        async with Client(Adapter(served, "stdio").server, mode="legacy") as client:
            of_both = await names(client)
        async with Client(Adapter(alone, "stdio").server, mode="legacy") as client:
            of_broken = await names(client)

    assert "Glob" not in of_both
    assert "Glob" in of_broken


def test_without_a_step_there_is_nothing_in_the_way_of_calls(tmp_path: Path) -> None:
    assert gateway(tmp_path, "Late").pipeline.steps is None


async def test_arguments_of_a_python_function_are_checked_like_those_of_any_tool(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n", "word"]}
    got: list[Any] = []

    async def function(ctx: ToolContext, arguments: Mapping[str, Any]) -> str:
        got.append(arguments)
        return "done"

    served = gateway(tmp_path)
    tools = ExtensionTools("mine", served.registry, lambda: None)
    tools.add("count", "Counts.", function, parameters=schema, side_effect=SideEffect.NONE)

    wrong = await served.pipeline.call("count", {"n": 0}, ToolContext(call_id="c"))
    right = await served.pipeline.call("count", {"n": "3", "word": "x", "more": 1}, ToolContext(call_id="c"))

    assert wrong.text.splitlines()[:2] == ["n: wants at least 1; got int 0", "word: is required"]
    assert (right.text, got) == ("done", [{"n": 3, "word": "x", "more": 1}])
