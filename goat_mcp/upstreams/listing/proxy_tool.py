"""A tool of an upstream as a `Tool` of ours: its entry passes to clients as it came, its calls go to the upstream.

Arguments are not checked against the upstream's schema here: the upstream is the authority on it, and what it
accepts beyond its schema must get through (REL-1). Only names that clients were shown instead of the upstream's own
are put back (SCH-2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from goat_mcp.catalog.schemas.parameter_names import may_hold_renamed, original_arguments, renamed
from goat_mcp.core.context import ToolContext
from goat_mcp.core.names import SEPARATOR, UPSTREAM_PREFIX, exposed_name
from goat_mcp.core.result import ToolResult
from goat_mcp.core.side_effect import Risk
from goat_mcp.core.spec import ToolSpec
from goat_mcp.core.tool import Access, OwnTool
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.listing.risk import assess

TOOLSET = "upstream"


@dataclass(frozen=True, kw_only=True)
class UpstreamSpec(ToolSpec):
    """`entry` is what clients see: the upstream's own, under the exposed name and with the published hints."""

    native_name: str
    prefix: str
    entry: Mapping[str, Any]
    claimed_risk: Risk
    effective_risk: Risk
    pin: str = ""
    """Hash of the definition that `entry` was made of, as `goat.lock` has it."""

    @property
    def warnings(self) -> tuple[str, ...]:
        from goat_mcp.upstreams.listing.suspicious_texts import why_suspicious  # for who is asked, not for a start

        server = self.canonical_name.removeprefix(UPSTREAM_PREFIX).partition(SEPARATOR)[0]
        return why_suspicious(self.entry, server)

    def under_cap(self, name_cap: int) -> UpstreamSpec:
        server = self.canonical_name.removeprefix(UPSTREAM_PREFIX).partition(SEPARATOR)[0]
        name = exposed_name(self.prefix, self.native_name, server=server, cap=name_cap)
        return self if name == self.name else replace(self, name=name, entry={**self.entry, "name": name})

    def wire(self) -> dict[str, Any]:
        return dict(self.entry)


class CallRelay(Protocol):
    """Where calls of an upstream's tools go."""

    def admit(self, spec: UpstreamSpec) -> None:
        """Raises `ToolError(QUARANTINED)` for a tool that may not be called as it is now. Asks nobody."""
        ...

    async def call(self, spec: UpstreamSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> ToolResult: ...


@dataclass(frozen=True)
class UpstreamTool(OwnTool):
    """One proxied tool."""

    spec: UpstreamSpec
    relay: CallRelay

    def validate(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        self.relay.admit(self.spec)
        if not may_hold_renamed(arguments):
            return arguments
        return original_arguments(arguments, self._new_names) if self._new_names else arguments

    @cached_property
    def _new_names(self) -> Mapping[str, str]:
        return renamed(self.spec.input_schema)

    def access(self, input: Mapping[str, Any]) -> Access:
        """Nothing: an upstream's tools never wait for ours, its own cap bounds them."""
        return Access()

    async def execute(self, input: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        return await self.relay.call(self.spec, input, ctx)


def upstream_tool(
    config: UpstreamConfig, entry: Mapping[str, Any], relay: CallRelay, pin: str = "", *, is_plain: bool = False
) -> UpstreamTool:
    """Build the tool from a usable entry. Cheap: 50 upstreams of twenty tools are built at every start.

    `is_plain`: it is known that every host takes the entry's schemas as they are.
    """
    native: str = entry["name"]
    name = exposed_name(config.prefix, native, server=config.server, cap=config.name_cap)
    annotations: Mapping[str, Any] | None = entry.get("annotations")
    schema = entry["inputSchema"]
    risk = assess(native, schema, annotations, trusted=config.trust_annotations)
    published = {**entry, "name": name}
    if risk.annotations is not annotations:
        published["annotations"] = risk.annotations
    return UpstreamTool(
        UpstreamSpec(
            name=name,
            title=entry.get("title")
            or (annotations or {}).get("title")
            or (native if native.isprintable() and make_visible(native) is native else name),
            description=entry.get("description") or "",
            input_schema=schema,
            output_schema=entry.get("outputSchema"),
            side_effect=risk.side_effect,
            toolset=TOOLSET,
            risk=risk.decision_risk,
            hints=risk.hints,
            meta=entry.get("_meta") or {},
            canonical_name=f"{UPSTREAM_PREFIX}{config.server}{SEPARATOR}{native}",
            native_name=native,
            prefix=config.prefix,
            entry=published,
            claimed_risk=risk.claimed,
            effective_risk=risk.effective,
            pin=pin,
            is_plain=is_plain,
        ),
        relay,
    )
