"""Tools that an extension brings: it may add and take away its own, and never touches another's (Goondan, "What
Extensions cannot do")."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from goat_mcp.catalog.registry import AnyTool, NameTaken, Registry
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.names import UPSTREAM_PREFIX
from goat_mcp.core.result import ToolResult, text_block
from goat_mcp.core.side_effect import HINTS_OF, RISK_OF, SideEffect
from goat_mcp.core.spec import ToolSpec
from goat_mcp.core.tool import Access

Function = Callable[[ToolContext, Mapping[str, Any]], Awaitable[Any]]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")


class ExtensionTools:
    """The tools of one extension; it is given to its `register` and may be kept. Use it on the event loop.

    Each change is told to the clients (`notifications/tools/list_changed`).
    """

    def __init__(self, extension: str, registry: Registry, changed: Callable[[], None]) -> None:
        self._source = f"extension:{extension}"
        self._registry = registry
        self._changed = changed
        self._own: dict[str, AnyTool] = {}

    def add(
        self,
        name: str,
        description: str,
        function: Function,
        *,
        parameters: Mapping[str, Any] | None = None,
        side_effect: SideEffect = SideEffect.NETWORK,
    ) -> None:
        """Add `async function(ctx, arguments)` as a tool; it gives back JSON, a text or a `ToolResult`.

        `parameters` is a JSON Schema. Without `side_effect` people are asked as before a request to the network.
        Raises as `register`.
        """
        schema = dict(parameters or {"type": "object", "properties": {}, "additionalProperties": False})
        self.register(
            FunctionTool(
                ToolSpec(
                    name=name,
                    title=name,
                    description=description,
                    input_schema=schema,
                    side_effect=side_effect,
                    risk=RISK_OF[side_effect],
                    hints=HINTS_OF[side_effect],
                    toolset="manifests",
                ),
                function,
            )
        )

    def register(self, tool: AnyTool) -> None:
        """Add any `core.tool.Tool`. Raises `ValueError` for a bad name, `NameTaken` where there is a tool of it."""
        name = tool.spec.name
        if not _NAME.match(name) or name.startswith(UPSTREAM_PREFIX):
            raise ValueError(f"{name[:80]!r} cannot be a tool's name: letters, digits, - and _, at most 64, no mcp__")
        if (owner := self._registry.snapshot.source_of.get(name)) is not None:
            raise NameTaken(f"{name} is already registered by {owner}, and an extension replaces nothing")
        self._own[name] = tool
        self._registry.replace_source(self._source, self._own.values())

    def remove(self, name: str) -> bool:
        """Take one of its own away. Returns whether there was one."""
        if self._own.pop(name, None) is None:
            return False
        self._registry.replace_source(self._source, self._own.values())
        return True

    def step_changed(self) -> None:
        """What `step` would leave out is something else now: clients are told to list again."""
        self._changed()


@dataclass(frozen=True)
class FunctionTool:
    """A function of an extension as a `Tool`."""

    spec: ToolSpec
    function: Function

    def validate(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        errors: list[Any] = sorted(self._validator.iter_errors(dict(arguments)), key=str)
        if errors:
            lines = [f"{'.'.join(map(str, error.absolute_path)) or 'arguments'}: {error.message}" for error in errors]
            raise ToolError(ErrorCode.INPUT, "\n".join(lines), "Correct the arguments and call again.")
        return arguments

    @cached_property
    def _validator(self) -> Any:
        from jsonschema import Draft202012Validator

        return Draft202012Validator(dict(self.spec.input_schema))

    def access(self, input: Mapping[str, Any]) -> Access:
        return Access()

    async def execute(self, input: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        value = await self.function(ctx, input)
        if isinstance(value, ToolResult):
            return value
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return ToolResult(content=(text_block(text),))
