"""TodoWrite: the list of tasks, shown to the user. `goat_mcp.state.todos` stores lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, Field

from goat_mcp.core.arguments import InputPart, ToolInput
from goat_mcp.core.coercion import Problem
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import Hints, SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import Access, BuiltinTool
from goat_mcp.state.todos import Todos

MAX_TODOS = 100
MAX_TEXT_CHARS = 2_000


def _checked(text: str) -> str:
    # Not in the schema: a model sends neither, and every word there costs.
    if not text.strip():
        raise ValueError("is empty")
    if len(text) > MAX_TEXT_CHARS:
        raise ValueError(f"has {len(text)} characters, {MAX_TEXT_CHARS} at most")
    return text


_Text = Annotated[str, AfterValidator(_checked)]


class TodoItem(InputPart):
    content: _Text
    status: Literal["pending", "in_progress", "completed"]
    active_form: _Text = Field(alias="activeForm", description="e.g. Running the tests")


class TodoWriteInput(ToolInput):
    todos: list[TodoItem] = Field(max_length=MAX_TODOS)

    @classmethod
    def rewrite(cls, arguments: dict[str, Any]) -> Iterable[Problem]:
        items: Any = arguments.get("todos")
        if isinstance(items, list):
            arguments["todos"] = [_canonical(item) for item in cast("list[Any]", items)]
        return ()


def _canonical(item: Any) -> Any:
    if isinstance(item, dict) and "active_form" in item and "activeForm" not in item:
        fields = dict(cast("dict[str, Any]", item))
        fields["activeForm"] = fields.pop("active_form")
        return fields
    return cast("Any", item)


@dataclass(frozen=True)
class TodoWrite(
    BuiltinTool[TodoWriteInput],
    side_effect=SideEffect.NONE,
    toolset="state",
    title="Update todos",
    hints=Hints(read_only=False, destructive=False, idempotent=True, open_world=False),
):
    """Replace your todo list, which the user watches: send all items every time, [] clears it.

    For work of three steps or more. Keep one item in_progress; complete it as soon as it is done.
    """

    examples = (
        ToolExample(
            "A plan of two steps",
            {
                "todos": [
                    {"content": "Write the test", "status": "in_progress", "activeForm": "Writing the test"},
                    {"content": "Fix the bug", "status": "pending", "activeForm": "Fixing the bug"},
                ]
            },
        ),
        ToolExample("Nothing left to do", {"todos": []}),
    )

    todos: Todos

    def access(self, input: TodoWriteInput) -> Access:
        return Access(category="todos")  # the list that was sent last must be the one that stays

    async def execute(self, input: TodoWriteInput, ctx: ToolContext) -> ToolResult:
        new = [item.model_dump(by_alias=True) for item in input.todos]
        old = await self.todos.replace(ctx, new)
        current = [item.active_form for item in input.todos if item.status == "in_progress"]
        notices = [f"{len(current)} items are in progress; keep one"] if len(current) > 1 else []
        facts = {"oldTodos": [dict(todo) for todo in old], "newTodos": new}
        return text_result(_summary(input.todos, current), facts=facts, notices=notices, replace_text=True)


def _summary(todos: Sequence[TodoItem], current: Sequence[str]) -> str:
    if not todos:
        return "The todo list is empty."
    done = sum(item.status == "completed" for item in todos)
    pending = len(todos) - done - len(current)
    in_all = f"{len(todos)} todo{'' if len(todos) == 1 else 's'}"
    counts = f"{in_all}: {done} completed, {len(current)} in progress, {pending} pending."
    return "\n".join([counts, *(f"Now: {active_form}" for active_form in current)])
