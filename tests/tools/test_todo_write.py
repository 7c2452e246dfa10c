"""TodoWrite: the list that replaces another, whose it is, and who is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.resources import Announcements
from goat_mcp.core.result import ToolResult
from goat_mcp.core.rights import Rights
from goat_mcp.state.database import Database
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.todos import DatabaseTodoStore, MemoryTodoStore, Todos, TodoStore
from goat_mcp.tools.todo_write import TodoWrite

pytestmark = pytest.mark.anyio

CTX = ToolContext(call_id="c")


def todo(content: str, status: str = "pending") -> dict[str, str]:
    return {"content": content, "status": status, "activeForm": f"Doing {content}"}


class Told:
    def __init__(self) -> None:
        self.announcements = Announcements()
        self.events: list[tuple[str, str | None]] = []
        self.announcements.listen(lambda uri, principal: self.events.append((uri, principal)))


@pytest.fixture
def told() -> Told:
    return Told()


def store_in(folder: Path) -> DatabaseTodoStore:
    return DatabaseTodoStore(Database(StateDirectory(folder / "state"), lambda event, **fields: None))


@pytest.fixture(params=["memory", "database"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> TodoStore:
    return MemoryTodoStore() if request.param == "memory" else store_in(tmp_path)


def tool(store: TodoStore, told: Told | None = None, workspace: str = "/ws") -> TodoWrite:
    return TodoWrite(Todos(store, lambda: workspace, (told or Told()).announcements))


async def write(tool: TodoWrite, *todos: Any, ctx: ToolContext = CTX) -> ToolResult:
    return await tool.execute(tool.validate({"todos": list(todos)}), ctx)


async def test_a_list_replaces_the_one_before_and_both_come_back(store: TodoStore) -> None:
    one, two = todo("one", "in_progress"), todo("two")
    done = todo("one", "completed")
    tools = tool(store)

    first = await write(tools, one, two)
    second = await write(tools, done, todo("two", "in_progress"))

    assert first.text == "2 todos: 0 completed, 1 in progress, 1 pending.\nNow: Doing one"
    assert first.wire()["structuredContent"] == {"oldTodos": [], "newTodos": [one, two]}
    assert second.text == "2 todos: 1 completed, 1 in progress, 0 pending.\nNow: Doing two"
    assert second.facts == {"oldTodos": [one, two], "newTodos": [done, todo("two", "in_progress")]}


async def test_an_empty_list_clears(store: TodoStore) -> None:
    tools = tool(store)
    await write(tools, todo("one"))

    cleared = await write(tools)

    assert cleared.text == "The todo list is empty."
    assert cleared.facts == {"oldTodos": [todo("one")], "newTodos": []}


async def test_two_in_progress_is_a_notice(store: TodoStore) -> None:
    result = await write(tool(store), todo("one", "in_progress"), todo("two", "in_progress"))

    assert not result.is_error
    assert result.text.splitlines()[-1] == "[2 items are in progress; keep one]"


async def test_lists_are_kept_apart_by_workspace_principal_and_agent(store: TodoStore) -> None:
    agent = replace(CTX, session_key="agent:1", rights=Rights(depth=1))
    await write(tool(store), todo("mine"))

    olds = [
        (await write(tools, todo("other"), ctx=ctx)).facts
        for tools, ctx in [
            (tool(store, workspace="/other"), CTX),
            (tool(store), replace(CTX, principal="other")),
            (tool(store), agent),
            (tool(store), replace(agent, session_key="agent:2")),
        ]
    ]
    same = await write(tool(store), ctx=replace(CTX, session_key="another session"))

    assert [old["oldTodos"] for old in olds if old] == [[], [], [], []]
    assert same.facts == {"oldTodos": [todo("mine")], "newTodos": []}


async def test_a_list_outlives_a_restart(tmp_path: Path) -> None:
    await write(tool(store_in(tmp_path)), todo("one"))

    later = await write(tool(store_in(tmp_path)))

    assert later.facts == {"oldTodos": [todo("one")], "newTodos": []}


async def test_observers_are_told_of_the_principals_list_and_not_of_an_agents(store: TodoStore, told: Told) -> None:
    tools = tool(store, told)

    await write(tools, todo("one"), ctx=replace(CTX, principal="alice"))
    await write(tools, todo("step"), ctx=replace(CTX, principal="alice", rights=Rights(depth=1)))

    assert told.events == [("goat://todos", "alice")]


@pytest.mark.parametrize("text", ["NUL \0 inside", "ünïcödé 🐐", "'; DROP TABLE todos; --"])
async def test_any_text_comes_back_as_it_was(store: TodoStore, text: str) -> None:
    tools = tool(store)
    await write(tools, todo(text), ctx=replace(CTX, principal=text))

    later = await write(tools, ctx=replace(CTX, principal=text))

    assert later.facts == {"oldTodos": [todo(text)], "newTodos": []}


def problems(*todos: Any) -> str:
    with pytest.raises(ToolError) as refused:
        tool(MemoryTodoStore()).validate({"todos": list(todos)})
    assert refused.value.code is ErrorCode.INPUT
    return refused.value.message


def test_all_bad_items_are_in_one_error_by_index() -> None:
    assert problems(
        {"content": " ", "status": "pending", "activeForm": "x"},
        todo("fine"),
        {"content": "x", "status": "done", "activeForm": "x"},
        {"content": "x", "status": "pending"},
        "text",
        {**todo("x"), "actveForm": "x"},
    ).splitlines() == [
        "todos.0.content: is empty",
        "todos.2.status: wants 'pending', 'in_progress' or 'completed'; got str \"done\"",
        "todos.3.activeForm: is required",
        'todos.4: wants an object; got str "text"',
        "todos.5.actveForm: unknown field; did you mean activeForm?",
    ]


def test_more_than_a_hundred_items_or_endless_ones_are_refused() -> None:
    assert "at most 100 items" in problems(*[todo("x")] * 101)
    assert problems(todo("x" * 2001)).startswith("todos.0.content: has 2001 characters, 2000 at most")


def test_a_list_as_text_and_snake_case_are_understood() -> None:
    tools = tool(MemoryTodoStore())

    as_text = tools.validate({"todos": '[{"content": "a", "status": "pending", "activeForm": "A"}]'})
    snake = tools.validate({"todos": [{"content": "a", "status": "pending", "active_form": "A"}]})

    assert as_text == snake
