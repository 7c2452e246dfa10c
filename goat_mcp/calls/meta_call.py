"""A call of `call_tool` is a call of the tool it names, and one of goa's `search` a call of Grep. This is resolved
before all other stages (DEF-3).

So rules, hooks, the record and all that follows see the target, with its own name and arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from goat_mcp.calls.permissions.decide import Decision
from goat_mcp.calls.permissions.mode import Effect
from goat_mcp.catalog.app_tools import is_for_apps_only
from goat_mcp.catalog.builtin_contracts import LazyTool, StandIn
from goat_mcp.catalog.catalog import Resolver
from goat_mcp.catalog.registry import AnyTool
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.names import CALL_TOOL, CALL_TOOL_READONLY
from goat_mcp.core.side_effect import Risk
from goat_mcp.core.spec import ToolSpec
from goat_mcp.core.tool import Access, HasDefinition


class ResolvedCall(NamedTuple):
    """What a call is about. `through` is the meta-tool it came by, None for one that names its tool itself."""

    tool: AnyTool
    arguments: Mapping[str, Any]
    through: ToolSpec | None = None


def resolve_call(catalog: Resolver, name: str, arguments: Mapping[str, Any]) -> ResolvedCall:
    """Raises `ToolError` as `Catalog.resolve` does, and INPUT for arguments that name no tool to call."""
    tool = catalog.resolve(name)
    if not _calls_through(tool.spec):
        return ResolvedCall(*_meant(tool, arguments))
    wanted = tool.validate(arguments)
    target = catalog.resolve(wanted.name)
    if _calls_through(target.spec):
        raise ToolError(
            ErrorCode.INPUT, f"{tool.spec.name} does not call {target.spec.name}", "Name the tool you want."
        )
    if is_for_apps_only(target.spec.meta):
        raise ToolError(
            ErrorCode.TOOL_NOT_IN_CATALOG,
            f"{target.spec.name} is for the document of its MCP App alone, and not for models",
            "Use another tool of that server.",
        )
    return ResolvedCall(*_meant(target, wanted.arguments), tool.spec)


def target_name(catalog: Resolver, name: str, arguments: Mapping[str, Any]) -> str:
    """The name of the tool that is meant, known or not."""
    if name not in (CALL_TOOL, CALL_TOOL_READONLY):
        return name
    try:
        tool = catalog.resolve(name)
        return tool.validate(arguments).name if _calls_through(tool.spec) else name
    except ToolError:
        return name


def definition_of(catalog: Resolver, name: str, arguments: Mapping[str, Any]) -> str:
    """Stands for what a call would run, as that is now; the same wherever it is the same. Empty for no tool."""
    try:
        target = resolve_call(catalog, name, arguments)
        access = target.tool.access(target.tool.validate(target.arguments))
    except ToolError:
        return ""
    return what_would_run(target.tool, access)


def only_reads(catalog: Resolver, name: str, arguments: Mapping[str, Any]) -> bool:
    """Whether a call is known to change nothing. An upstream's own word has its risk above low (RSK-3)."""
    try:
        spec = resolve_call(catalog, name, arguments).tool.spec
    except ToolError:
        return False
    return spec.hints.read_only and spec.risk <= Risk.LOW


def what_would_run(tool: AnyTool, access: Access) -> str:
    """The definition of a tool, with the files that are part of it."""
    definition = tool.definition() if isinstance(tool, HasDefinition) else repr(tool.spec)
    return f"{access.script_sha256}\0{definition}"


def check_only_reads(through: ToolSpec, spec: ToolSpec, decision: Decision) -> None:
    """Hosts let `call_tool_readonly` pass unseen, since it says that it only reads: so it must be true (DEF-2).

    An upstream's own word for that is not enough; the operator vouches for it by `trust_annotations` or an allow rule
    (RSK-3). Raises `ToolError(PERMISSION)`.
    """
    if through.name != CALL_TOOL_READONLY or decision.effect is Effect.DENY:
        return
    is_vouched_for = spec.risk <= Risk.LOW or (decision.effect is Effect.ALLOW and decision.rule is not None)
    if spec.hints.read_only and is_vouched_for:
        return
    why = "nobody but its server says that it only reads" if spec.hints.read_only else "it may change something"
    raise ToolError(
        ErrorCode.PERMISSION,
        f"{CALL_TOOL_READONLY} does not call {spec.name}: {why}",
        f"Use {CALL_TOOL}, with the same name and arguments.",
        facts={"tool": spec.rule_name},
    )


def _meant(tool: AnyTool, arguments: Mapping[str, Any]) -> tuple[AnyTool, Mapping[str, Any]]:
    """The tool itself, and its own arguments."""
    if isinstance(tool, StandIn):
        arguments = tool.translated(arguments)
    return (tool.loaded() if isinstance(tool, LazyTool) else tool), arguments


def _calls_through(spec: ToolSpec) -> bool:
    return spec.toolset == "meta" and spec.name in (CALL_TOOL, CALL_TOOL_READONLY)
