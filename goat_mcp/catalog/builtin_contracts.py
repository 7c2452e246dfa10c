"""The contracts of the built-in tools, read from a file that `make generated` makes from their classes.

A client gets its list, and rules know the names, before the code of any tool is loaded; see design/0010.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from goat_mcp.catalog.registry import AnyTool
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.core.side_effect import Hints, Risk, SideEffect
from goat_mcp.core.spec import ToolExample, ToolSpec
from goat_mcp.core.tool import Access

FILE = "builtin_contracts.json"
META_FILE = "meta_contracts.json"
APP_FILE = "app_contracts.json"


@cache
def builtin_contracts() -> tuple[ToolSpec, ...]:
    """One spec for each tool, in the order of the list."""
    return _specs(FILE)


@cache
def meta_contracts() -> tuple[ToolSpec, ...]:
    """Those of the meta-tools, by which the tools of a large catalog are found and called (DEF-2)."""
    return _specs(META_FILE)


@cache
def app_contracts() -> tuple[ToolSpec, ...]:
    """Those of the tools that have an MCP App; the server adds them (`goat_mcp.server.apps`)."""
    return _specs(APP_FILE)


@cache
def builtin_names() -> tuple[str, ...]:
    """The names of the built-in tools, in the order of the list."""
    return tuple(spec.name for spec in builtin_contracts())


@cache
def names_of_ours() -> frozenset[str]:
    """The names of all tools of this package, meta-tools too. No tool of an upstream gets one."""
    return frozenset((*builtin_names(), *(spec.name for spec in (*meta_contracts(), *app_contracts()))))


def _specs(file: str) -> tuple[ToolSpec, ...]:
    text = Path(__file__).with_name(file).read_text(encoding="utf-8")
    return tuple(_spec(entry) for entry in json.loads(text))


def contract_document(spec: ToolSpec) -> dict[str, Any]:
    """What the file holds of one tool."""
    return {
        "name": spec.name,
        "title": spec.title,
        "description": spec.description,
        "input_schema": spec.input_schema,
        "side_effect": spec.side_effect.value,
        "toolset": spec.toolset,
        "risk": int(spec.risk),
        "hints": [spec.hints.read_only, spec.hints.destructive, spec.hints.idempotent, spec.hints.open_world],
        "meta": dict(spec.meta),
        "max_result_chars": spec.max_result_chars,
        "examples": [[example.description, dict(example.input), example.output] for example in spec.examples],
    }


def _spec(entry: Mapping[str, Any]) -> ToolSpec:
    fields = dict(entry)
    fields["side_effect"] = SideEffect(fields["side_effect"])
    fields["risk"] = Risk(fields["risk"])
    fields["hints"] = Hints(*fields["hints"])
    fields["examples"] = tuple(ToolExample(*example) for example in fields["examples"])
    return ToolSpec(**fields, is_plain=True)


class LazyTool:
    """Stands in the registry for the tool that its rules name, which `load` returns. A call goes on with that one."""

    def __init__(self, spec: ToolSpec, load: Callable[[str], AnyTool]) -> None:
        self.spec = spec
        self._load = load

    def loaded(self) -> AnyTool:
        return self._load(self.spec.rule_name)

    def validate(self, arguments: Mapping[str, Any]) -> Any:
        return self.loaded().validate(arguments)

    def access(self, input: Any) -> Access:
        return self.loaded().access(input)

    async def execute(self, input: Any, ctx: ToolContext) -> ToolResult:
        return await self.loaded().execute(input, ctx)


class StandIn(LazyTool):
    """A built-in tool under another name, with fields and defaults that go with that name.

    `translated` makes the tool's own arguments of a call's, or raises `ToolError(INPUT)`. What has resolved a name goes
    on with both, so that a call is one of the tool itself.
    """

    def __init__(
        self,
        spec: ToolSpec,
        translated: Callable[[Mapping[str, Any]], Mapping[str, Any]],
        load: Callable[[str], AnyTool],
    ) -> None:
        super().__init__(spec, load)
        self.translated = translated

    def validate(self, arguments: Mapping[str, Any]) -> Any:
        return super().validate(self.translated(arguments))
