"""Tools of its own, registered while the server runs; and steps that leave out what the task does not need."""

from collections.abc import Mapping
from typing import Any

from goat_mcp import ExtensionTools, SideEffect, StepView, ToolContext

CHANGES_FILES = ("Write", "Edit", "NotebookEdit", "Bash")


class Focus:
    """`focus__set` says what is worked on: while it is `reading`, nothing that changes files is there."""

    def __init__(self) -> None:
        self.on: dict[str, str] = {}

    def register(self, tools: ExtensionTools) -> None:
        self.tools = tools
        tools.add(
            "focus__set",
            "Say what you are at: reading, or writing.",
            self.set,
            parameters={
                "type": "object",
                "properties": {"on": {"enum": ["reading", "writing"]}},
                "required": ["on"],
                "additionalProperties": False,
            },
            side_effect=SideEffect.NONE,
        )

    async def set(self, ctx: ToolContext, arguments: Mapping[str, Any]) -> Any:
        self.on[ctx.session_key] = arguments["on"]
        self.tools.step_changed()
        return {"on": arguments["on"]}

    def step(self, view: StepView) -> None:
        if self.on.get(view.session_key) == "reading":
            view.hide(*CHANGES_FILES)
