"""A tool's public contract: what `tools/list` shows and what policy decides on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from goat_mcp.core.effects import effects_of
from goat_mcp.core.side_effect import HINTS_OF, RISK_OF, Hints, Risk, SideEffect

Schema = dict[str, Any]
Toolset = Literal[
    "core",
    "tasks",
    "state",
    "network",
    "agent",
    "mcp",
    "notebook",
    "teams",
    "code",
    "goa",
    "base",
    "manifests",
    "upstream",
    "meta",
    "apps",
]
"""Labels that select tools together (design, section 1). `manifests` are those a user has declared, `meta` those that
stand in for deferred ones, `apps` those whose result a host shows as an MCP App."""
LISTED_ELSEWHERE: tuple[Toolset, ...] = ("meta", "apps")
"""Those that nobody turns on: whether they are listed follows from the list, or from the client."""
DEFAULT_TOOLSETS: tuple[Toolset, ...] = (
    "core",
    "tasks",
    "state",
    "network",
    "agent",
    "mcp",
    "notebook",
    "manifests",
    "upstream",
)
"""Those that are on without being named (design D9)."""
SHIPPED_TOOLSETS: tuple[Toolset, ...] = ("goa", "base")
"""Those of the declared tools that ship with us."""
OPTIONAL_TOOLSETS: frozenset[str] = frozenset({"teams", "code", *SHIPPED_TOOLSETS})
"""Those of ours that somebody has to name."""
DECLARED_TOOLSETS: tuple[Toolset, ...] = (*SHIPPED_TOOLSETS, "manifests")
"""Those whose tools are exports of declared resources."""


@dataclass(frozen=True)
class ToolExample:
    """One call a reader can copy. Source: goa `ToolExample`."""

    description: str
    input: Mapping[str, Any]
    output: str = ""


@dataclass(frozen=True, kw_only=True)
class ToolSpec:
    """Everything about a tool that is fixed before it is called.

    `max_result_chars` is the most text one result may carry inline; None means the catalog's own
    bound. `canonical_name` is what rules, audit and approvals use when the exposed name is another
    (an upstream tool under an alias). `is_plain`: every host takes its schemas as they are.
    `long_doc` and `examples` are for people, who read them with `goat-mcp docs`: models see neither (source: goa,
    `Documentable`).
    """

    name: str
    title: str
    description: str
    input_schema: Schema
    side_effect: SideEffect
    toolset: Toolset
    risk: Risk
    hints: Hints
    output_schema: Schema | None = None
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    examples: tuple[ToolExample, ...] = ()
    long_doc: str = ""
    max_result_chars: int | None = None
    canonical_name: str = ""
    is_plain: bool = False
    is_known: bool = True
    """False for what stands in for the tool of a name that the caller's catalog does not have."""

    @cached_property
    def rule_name(self) -> str:
        """The name that permission rules, audit and approvals know this tool by."""
        return self.canonical_name or self.name

    @property
    def effects(self) -> tuple[str, ...]:
        """What a call can do, in words for people."""
        return effects_of(self.side_effect, self.risk, self.hints)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person who is asked about a call should know of the definition, a few words each. Ours have none."""
        return ()

    def under_cap(self, name_cap: int) -> ToolSpec:
        """The same with a name of at most so many characters. Ours have none that would have to be cut (NAM-4)."""
        return self

    def wire(self) -> dict[str, Any]:
        """The tool as a `tools/list` entry."""
        entry: dict[str, Any] = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
            "annotations": {"title": self.title, **self.hints.wire()},
        }
        if self.output_schema is not None:
            entry["outputSchema"] = self.output_schema
        if self.meta:
            entry["_meta"] = dict(self.meta)
        return entry


def unknown_tool(name: str) -> ToolSpec:
    """What code around a call sees in place of the spec if there is no tool of that name, or none for this caller."""
    side_effect = SideEffect.NONE
    return ToolSpec(
        name=name,
        title=name,
        description="",
        input_schema={"type": "object"},
        side_effect=side_effect,
        toolset="manifests",
        risk=RISK_OF[side_effect],
        hints=HINTS_OF[side_effect],
        is_known=False,
    )


def risk_and_hints(side_effect: SideEffect, risk: Risk | None = None, hints: Hints | None = None) -> tuple[Risk, Hints]:
    """Derive both from the side effect if a tool does not state its own (design D13)."""
    return (RISK_OF[side_effect] if risk is None else risk, hints or HINTS_OF[side_effect])
