"""Skills as one client sees them: our own and those of upstreams, in one list under one scheme of URIs (SEP-2640).

Own ones come first, then upstreams in config order. A skill whose folder overlaps one of another source is left out
(COL-1); qualified URIs overlap nobody's. Files are read through the one pipeline (AGG-1): rules, hooks, limits, audit.
Loaded by the first request for a skill.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import anyio
import anyio.to_thread

from goat_mcp.calls.pipeline import Pipeline
from goat_mcp.catalog.resource_catalog import LIST_TTL_MS, ResourceCatalog, WhyHidden
from goat_mcp.catalog.resource_tools import ResourceTool, reading_result, reading_spec
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import nobody_to_ask
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult
from goat_mcp.core.rights import Rights
from goat_mcp.core.skill_uris import SCHEME, is_below, is_reserved, root_of
from goat_mcp.core.tool import Access
from goat_mcp.gateway.resource_calls import OneTool
from goat_mcp.manifests.served_skills import NotServed, ServedSkill
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.skills import UpstreamSkills
from goat_mcp.upstreams.upstream import Upstream
from goat_mcp.upstreams.upstreams import Upstreams

LIST_WAIT_S = 10.0
"""So long a list waits for upstreams; what comes later is in the next one, and "partial" is no error there."""
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class ListedSkills:
    """`entries` in order; `ttl_ms` is how long the whole list stays fresh."""

    entries: Sequence[Entry]
    ttl_ms: int


@dataclass(frozen=True)
class _FileTool(ResourceTool):
    """A file of a skill of ours: rules about its path hold for it, as for the skill's tool."""

    path: str

    def access(self, input: Mapping[str, Any]) -> Access:
        return Access((self.path,), (self.path,))


@dataclass(eq=False)
class SkillCalls:
    """Failures of reads are results with `is_error`, as a tool's; `UpstreamError` is raised as it came."""

    pipeline: Pipeline
    why_hidden: Callable[[Rights], WhyHidden]
    own: Sequence[ServedSkill]
    upstreams: Upstreams
    resources_of: Callable[[Rights], ResourceCatalog]
    telemetry: Telemetry
    _skills: WeakKeyDictionary[Upstream, UpstreamSkills] = field(
        default_factory=WeakKeyDictionary[Upstream, UpstreamSkills]
    )
    _noted: dict[str, str] = field(default_factory=dict[str, str])
    """By URI, what was last reported of a skill that is left out."""

    def listed_resources(self, rights: Rights) -> Sequence[Entry]:
        """Our own skills in a list of resources: the `SKILL.md` of each."""
        return [skill.listed for skill in self._own(rights)]

    async def list(self, ctx: ToolContext) -> ListedSkills:
        """All that this client may see, whatever of it there is within `LIST_WAIT_S`."""
        sources = self._sources(ctx.rights)
        brought: dict[str, Sequence[Entry]] = {}
        ttls_s: list[float] = [LIST_TTL_MS / 1_000]

        async def ask(source: UpstreamSkills) -> None:
            found = await source.list(min(LIST_WAIT_S, ctx.wait_left_s()), ctx)
            brought[source.config.source] = found.entries
            ttls_s.append(found.ttl_s)

        async with anyio.create_task_group() as group:
            for source in sources:
                group.start_soon(ask, source)
        kept: dict[str, tuple[str, Entry]] = {}
        for skill in self._own(ctx.rights):
            try:
                entry = await anyio.to_thread.run_sync(skill.entry)
            except NotServed as why:
                self._note(skill.root, str(why))
            else:
                kept[skill.root] = ("", entry)
        for source in sources:
            for entry in brought[source.config.source]:
                root = str(root_of(entry["uri"]))
                if why := self._why_taken(root, source, kept, ctx.rights):
                    self._note(entry["uri"], why)
                else:
                    kept[root] = (source.config.source, entry)
        return ListedSkills([entry for _, entry in kept.values()], int(min(ttls_s) * 1_000))

    async def get(self, uri: str, ctx: ToolContext) -> Entry | None:
        """One skill's entry as it is now, by the URI of its `SKILL.md`. Raises `ToolError`, `UpstreamError`."""
        root = root_of(uri)
        if root is None:
            return None
        for skill in self._own(ctx.rights):
            if skill.root == root:
                try:
                    return await anyio.to_thread.run_sync(skill.entry)
                except NotServed as why:
                    self._note(root, str(why))
                    return None
        for source, native in self._owners(uri, ctx.rights):
            if (entry := await source.get(native, ctx)) is not None:
                return entry
        return None

    def may_have(self, uri: str, rights: Rights) -> bool:
        """Whether a read of this URI is one of a skill's file."""
        if not uri.startswith(SCHEME):
            # Native URIs of another scheme, of what is listed under its own names.
            return any(one.knows(uri) for one in self._sources(rights) if not one.prefix)
        is_own = any(is_below(uri, skill.root) for skill in self._own(rights))
        return is_own or any(one.prefix or one.knows(native) for one, native in self._owners(uri, rights))

    async def read(self, uri: str, ctx: ToolContext) -> ToolResult:
        """A file of a skill, as a result of `resources/read`."""
        own = next((skill for skill in self._own(ctx.rights) if is_below(uri, skill.root)), None)
        return await self._call("resources/read", uri, ctx, await self._reading(uri, ctx, own))

    async def _reading(self, uri: str, ctx: ToolContext, own: ServedSkill | None) -> ResourceTool:
        def check(arguments: Mapping[str, Any]) -> None:
            if arguments.get("uri") != uri:
                raise ToolError(ErrorCode.INPUT, "uri: it is not the one that was decided about")

        if own is not None:
            skill = own

            async def run_own(arguments: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
                return reading_result({"contents": [await anyio.to_thread.run_sync(_content, skill, uri)]})

            try:
                path = await anyio.to_thread.run_sync(skill.path_of, uri)
            except NotServed as why:
                raise ToolError(ErrorCode.TOOL_NOT_FOUND, f"resource not found: {uri[:200]}: {why}") from None
            return _FileTool(skill.spec, check, run_own, path)
        owners = self._owners(uri, ctx.rights)
        if not owners:
            raise ToolError(ErrorCode.TOOL_NOT_FOUND, f"resource not found: {uri[:200]}")
        source, native = owners[0]

        async def run(arguments: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
            return reading_result(await source.read(native, ctx))

        return ResourceTool(reading_spec(source.config.server), check, run)

    async def directory(self, uri: str, cursor: str | None, ctx: ToolContext) -> ToolResult:
        """The direct children of a directory of a skill, in `structured`."""
        ctx = replace(ctx, ask=nobody_to_ask)
        for skill in self._own(ctx.rights):
            if uri == skill.root or is_below(uri, skill.root):
                return await self._call(_DIRECTORY, uri, ctx, _own_directory(skill, uri))
        for source, native in self._owners(uri, ctx.rights):
            if source.prefix or source.knows(native):
                return await self._call(_DIRECTORY, uri, ctx, _directory(source, native, cursor))
        raise ToolError(ErrorCode.INPUT, f"{uri[:200]} is not a directory of a skill")

    async def _call(self, method: str, uri: str, ctx: ToolContext, tool: ResourceTool) -> ToolResult:
        return await replace(self.pipeline, catalog=OneTool(lambda: tool)).call(method, {"uri": uri}, ctx)

    # Who has what

    def _own(self, rights: Rights) -> Sequence[ServedSkill]:
        """Those whose tools are there for this client, and not denied by a rule."""
        why_hidden = self.why_hidden(rights)
        return [skill for skill in self.own if not why_hidden(skill.spec)]

    def _sources(self, rights: Rights) -> Sequence[UpstreamSkills]:
        """Of the upstreams whose resources this client may read, in config order."""
        return [self._of(self.upstreams.upstream(source)) for source in self.resources_of(rights).items().sources]

    def _of(self, upstream: Upstream) -> UpstreamSkills:
        if (known := self._skills.get(upstream)) is None:
            known = self._skills[upstream] = UpstreamSkills(upstream, self.telemetry)
        return known

    def _owners(self, uri: str, rights: Rights) -> Sequence[tuple[UpstreamSkills, str]]:
        """Whom a URI may belong to, each with its native URI: those that are known to have it, then qualified names
        (NAM-2), then the others in config order."""
        found: list[tuple[int, UpstreamSkills, str]] = []
        for source in self._sources(rights):
            native = source.native(uri)
            if native is None or (not source.prefix and is_reserved(uri)):
                continue
            rank = 1 if source.prefix else 0 if source.knows(native) else 2
            found.append((rank, source, native))
        return [(source, native) for _, source, native in sorted(found, key=lambda one: one[0])]

    def _why_taken(
        self, root: str, source: UpstreamSkills, kept: Mapping[str, tuple[str, Entry]], rights: Rights
    ) -> str:
        """Who keeps the place that a skill would have, with the remedy; empty if nobody does."""
        if not source.prefix and is_reserved(root):
            return "its URI stands for skills of another server (name_collision); do not use naming: flat for its own"
        taken = {skill.root: "" for skill in self._own(rights)} | {other: owner for other, (owner, _) in kept.items()}
        for other, owner in taken.items():
            if owner != source.config.source and (root == other or is_below(root, other) or is_below(other, root)):
                of = owner.removeprefix("upstream:") or "the user's own skills"
                return f"{of} has a skill at {other[:200]} (name_collision); give one of them a name, not naming: flat"
        return ""

    def _note(self, uri: str, why: str) -> None:
        if self._noted.get(uri) != why:
            self._noted[uri] = why
            self.telemetry.warning("skill left out", skill=uri[:200], problem=why)


_DIRECTORY = "resources/directory/read"


def _own_directory(skill: ServedSkill, uri: str) -> ResourceTool:
    async def run(arguments: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        try:
            children = await anyio.to_thread.run_sync(skill.children, uri)
        except NotServed:
            children = None
        if children is None:
            raise ToolError(ErrorCode.INPUT, f"{uri[:200]} is not a directory of a skill")
        return ToolResult(structured={"resources": children})

    return ResourceTool(skill.spec, _any_arguments, run)


def _directory(source: UpstreamSkills, native: str, cursor: str | None) -> ResourceTool:
    async def run(arguments: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        return ToolResult(structured=dict(await source.directory(native, cursor, ctx)))

    return ResourceTool(reading_spec(source.config.server), _any_arguments, run)


def _any_arguments(arguments: Mapping[str, Any]) -> None:
    """What it lists is decided before."""


def _content(skill: ServedSkill, uri: str) -> dict[str, Any]:
    """Blocking. Raises `ToolError`."""
    try:
        file = skill.read(uri)
    except NotServed as why:
        raise ToolError(ErrorCode.TOOL_NOT_FOUND, f"resource not found: {uri[:200]}: {why}") from None
    if file is None:
        raise ToolError(ErrorCode.TOOL_NOT_FOUND, f"resource not found: {uri[:200]}")
    try:
        held = {"text": file.data.decode("utf-8")} if b"\0" not in file.data else None
    except UnicodeDecodeError:
        held = None
    held = held or {"blob": base64.b64encode(file.data).decode("ascii")}
    return {"uri": uri, "mimeType": file.mime_type, **held}
