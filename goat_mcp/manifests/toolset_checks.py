"""Names in the toolsets and agents of manifests that select nothing. What a name selects is the catalog's business."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import get_args

from goat_mcp.catalog.builtin_contracts import names_of_ours
from goat_mcp.core.names import (
    RESOURCE_PREFIX,
    SEPARATOR,
    SHIPPED_PREFIX,
    TOOL_ALIASES,
    TOOLSET_PREFIX,
    UPSTREAM_PREFIX,
)
from goat_mcp.core.spec import SHIPPED_TOOLSETS, Toolset
from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.manifests.agent_document import AgentDocument
from goat_mcp.manifests.folder import ManifestSet
from goat_mcp.manifests.kinds import ToolsetDocument
from goat_mcp.manifests.yaml_document import ManifestProblem

_MAX_SHOWN = 60


@dataclass(frozen=True)
class UpstreamNames:
    """Which upstreams are configured, as their tools' names have them; with `are_flat` some tools have plain names."""

    servers: Collection[str]
    are_flat: bool = False


def unknown_members(
    declared: ManifestSet, upstreams: UpstreamNames | None, shipped: Callable[[], ManifestSet]
) -> Iterator[ManifestProblem]:
    """What toolsets and agents of `declared` name that is nowhere. `upstreams` None: nobody knows them, and nothing is
    said of theirs. `shipped` is only asked for where a name is not found elsewhere."""
    known: set[str] = {*names_of_ours(), *TOOL_ALIASES, *_names(declared)}
    is_whole = False
    for toolset in (*declared.toolsets, *declared.agents):
        for index, name in enumerate(toolset.tools or ()):
            if name.startswith(UPSTREAM_PREFIX):
                yield from _upstream_member(toolset, index, name, upstreams)
            elif name.startswith(TOOLSET_PREFIX):
                yield from _toolset_member(toolset, index, name, {one.name for one in declared.toolsets})
            elif name.startswith(SHIPPED_PREFIX):
                yield from _shipped_member(toolset, index, name.removeprefix(SHIPPED_PREFIX), declared, shipped)
            elif name.removeprefix(RESOURCE_PREFIX) not in known and not (upstreams is not None and upstreams.are_flat):
                if not is_whole:
                    known, is_whole = {*known, *_names(shipped())}, True
                if (plain := name.removeprefix(RESOURCE_PREFIX)) not in known:
                    near = _suggestion(plain, known, "the tools are those that `goat-mcp list` shows")
                    yield _problem(toolset, index, f"{plain!r:.{_MAX_SHOWN}} names no tool", near)


def waits_for_upstream(problem: ManifestProblem) -> bool:
    """Whether it is about an upstream that may be configured yet."""
    return problem.what.endswith(_NOT_CONFIGURED)


_NOT_CONFIGURED = "is of an upstream that is not configured"


def _names(declared: ManifestSet) -> Iterator[str]:
    for tool in declared.tools:
        yield tool.name
        yield from (export.spec.name for export in tool.exports)


def _upstream_member(
    toolset: ToolsetDocument | AgentDocument, index: int, name: str, upstreams: UpstreamNames | None
) -> Iterator[ManifestProblem]:
    server, _, tool = name.removeprefix(UPSTREAM_PREFIX).partition(SEPARATOR)
    if "*" in name:
        all_of_it = f"write {UPSTREAM_PREFIX}{server} for all of its tools" if tool == "*" else "write whole names"
        yield _problem(toolset, index, f"{name!r:.{_MAX_SHOWN}} names no tool", all_of_it)
    elif upstreams is not None and server not in upstreams.servers:
        remedy = _suggestion(server, upstreams.servers, "add it to mcpServers, or fix the name")
        yield _problem(toolset, index, f"{name!r:.{_MAX_SHOWN}} {_NOT_CONFIGURED}", remedy)


def _toolset_member(
    toolset: ToolsetDocument | AgentDocument, index: int, name: str, declared: Collection[str]
) -> Iterator[ManifestProblem]:
    other = name.removeprefix(TOOLSET_PREFIX)
    if other in get_args(Toolset):
        return
    if other in declared and isinstance(toolset, AgentDocument):
        return
    if other in declared:
        remedy = "write the tools that it holds"
        yield _problem(toolset, index, f"{name!r:.{_MAX_SHOWN}}: a toolset holds none that is declared", remedy)
        return
    remedy = _suggestion(other, get_args(Toolset), f"there are {', '.join(get_args(Toolset))}")
    yield _problem(toolset, index, f"{name!r:.{_MAX_SHOWN}} names no toolset", remedy)


def _shipped_member(
    toolset: ToolsetDocument | AgentDocument,
    index: int,
    name: str,
    declared: ManifestSet,
    shipped: Callable[[], ManifestSet],
) -> Iterator[ManifestProblem]:
    known = set(_names(shipped()))
    if name not in known:
        near = _suggestion(name, known, f"it has {', '.join(sorted(tool.name for tool in shipped().tools))}")
        yield _problem(toolset, index, f"{name!r:.{_MAX_SHOWN}} names no tool", near)
        return
    for tool in declared.tools:
        if tool.name == name.partition(SEPARATOR)[0] and tool.exports[0].spec.toolset not in SHIPPED_TOOLSETS:
            place = f"{tool.document.file}:{tool.document.line_of(())}"
            what = f"{name!r:.{_MAX_SHOWN}} of the package is not there: {place} declares a tool of that name"
            yield _problem(toolset, index, what, "rename that tool, or leave the package out to mean it")


def _suggestion(name: str, known: Collection[str], otherwise: str) -> str:
    return did_you_mean(name, sorted(known)) or otherwise


def _problem(toolset: ToolsetDocument | AgentDocument, index: int, what: str, remedy: str) -> ManifestProblem:
    what = f"the {toolset.document.tree['kind'].lower()} {toolset.name}: {what}"
    return toolset.document.problem(("spec", "tools", index), what, remedy, level="warning")
