"""The skills of one upstream (SEP-2640): its entries as clients may see them, and reads that are held against them.

Only lists are asked for ahead of a client's read, and no file is. Entries are kept as the upstream sent them, under its
own URIs; clients know them under qualified ones (`core.skill_uris`), whose names, digests and sizes are the upstream's.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import anyio
import anyio.to_thread

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.names import SEPARATOR
from goat_mcp.core.skill_directories import children_of
from goat_mcp.core.skill_uris import (
    SKILL_FILE,
    SKILLS_EXTENSION,
    is_below,
    native,
    qualified,
    root_of,
    why_unusable,
)
from goat_mcp.files.documents.visible_text import make_json_visible
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.calls.skill_content import entries_about, why_mismatch
from goat_mcp.upstreams.envelope import passing_meta
from goat_mcp.upstreams.eras import Era
from goat_mcp.upstreams.listing.paging import Listed, drain, take_chained
from goat_mcp.upstreams.listing.skill_validation import DYNAMIC, valid_skills, why_invalid
from goat_mcp.upstreams.pinning.launch_fingerprint import launch_fingerprint
from goat_mcp.upstreams.pinning.pin_lock import definition_hash
from goat_mcp.upstreams.pinning.pins import ReceivedDefinition
from goat_mcp.upstreams.status import RejectedEntry
from goat_mcp.upstreams.upstream import Upstream

if TYPE_CHECKING:  # loaded with the first connection
    from goat_mcp.upstreams.transports.connection import Connection

MAX_FRESH_S = 300.0
"""So long a list counts at most: nothing in the extension tells of a change."""
MIN_FRESH_S = 1.0
AGAIN_AFTER_S = 5.0
"""How long nobody asks again for a list that got no answer."""
MAX_UNLISTED = 200
"""Skills that are on no list, and that clients asked for by their URI; the oldest are forgotten first."""
MAX_LEVELS = 8
"""Of folders above a file in which an unlisted skill is looked for."""
_METHOD_NOT_FOUND = -32601
_GONE = (_METHOD_NOT_FOUND, -32602, -32002)
"""Answers of a server that has no such skill, or no skills."""
Entry = Mapping[str, Any]
T = TypeVar("T")
_NOTHING: Entry = {}


class SkillList(NamedTuple):
    """Entries as clients see them. `ttl_s` is how long they stay fresh; `problem` why they may not be the last ones."""

    entries: Sequence[Entry]
    ttl_s: float
    problem: str = ""


@dataclass(frozen=True)
class _Ask:
    """What a connection answered; None if the upstream has no skills, or not this one."""

    answer: Any
    reads_directories: bool = False


class UpstreamSkills:
    """Of one upstream. `prefix` is what its qualified URIs begin with; empty for native ones (`naming: flat`)."""

    def __init__(self, upstream: Upstream, telemetry: Telemetry) -> None:
        self.config = upstream.config
        self.prefix = upstream.config.prefix.removesuffix(SEPARATOR)
        self._requests = upstream.requests
        self._eras = upstream.eras
        self._pins = upstream.pins
        self._telemetry = telemetry
        self._listed: dict[str, Entry] = {}
        self._unlisted: dict[str, Entry] = {}
        self._paths: Mapping[str, tuple[str, ...]] = {}
        self._fresh_until_s = self._failed_until_s = 0.0
        self._failure = ""
        self._listing = anyio.Lock()
        self.rejected: tuple[RejectedEntry, ...] = ()

    # What clients see

    async def list(self, max_wait_s: float, ctx: ToolContext) -> SkillList:
        """Its entries, asked for again if they are no longer fresh. One that is down keeps its last ones (ISO-4)."""
        problem = ""
        try:
            await self._refresh(max_wait_s, ctx)
        except (ToolError, UpstreamError) as failure:
            problem = failure.message
        view = self._shown(self._listed.values())
        ttl_s = 0.0 if problem else max(0.0, self._fresh_until_s - time.monotonic())
        return SkillList([self.shown_entry(entry) for entry in view], ttl_s, problem)

    async def get(self, uri: str, ctx: ToolContext) -> Entry | None:
        """One entry as it is now, by its native URI; None if the upstream serves no such skill. Raises `ToolError`."""
        if await self._ask_for(uri, ctx) is None:
            return None
        view = self._shown([self._held[uri]])
        if not view:
            self._pins.admit("skill", uri)
            raise ToolError(ErrorCode.QUARANTINED, f"the skill {uri[:200]} waits for approval")
        return self.shown_entry(view[0])

    async def read(self, uri: str, ctx: ToolContext) -> Mapping[str, Any]:
        """A file of a skill, by its native URI, as the upstream sent it but for the qualified URI of its content.

        Raises `ToolError`: TOOL_NOT_FOUND for what belongs to no skill, QUARANTINED for a skill that has changed since
        it was pinned, UPSTREAM for content that is not what its entry promised; and `UpstreamError`.
        """
        await self._find(uri, ctx)
        self._admit(uri)

        async def check(raw: Mapping[str, Any]) -> None:
            if not await self._why_mismatch(uri, raw):
                return
            # The skill may have been updated since: what counts is its entry of now, once its pin allows that.
            with suppress(ToolError, UpstreamError):
                for entry in entries_about(uri, self._held.values()):
                    await self._ask_for(entry["uri"], ctx)
            self._admit(uri)
            if why := await self._why_mismatch(uri, raw):
                raise ToolError(
                    ErrorCode.UPSTREAM,
                    f"upstream {self.config.name} sent {uri[:200]}, a file of a skill, and {why}: it is not passed on",
                    "Do not use this skill. The user should ask who runs that server.",
                    facts={"upstream": self.config.name, "uri": uri[:200]},
                )

        answer = await self._requests.read(uri, ctx, check)
        contents = cast("Sequence[Mapping[str, Any]]", answer["contents"])
        return {**answer, "contents": [{**one, "uri": qualified(self.prefix, uri)} for one in contents]}

    async def directory(self, uri: str, cursor: str | None, ctx: ToolContext) -> Mapping[str, Any]:
        """The children of a directory of a skill, by its native URI: from the upstream if it reads directories, else
        from the skill's entry. Raises `ToolError`: INPUT for what is no directory; and `UpstreamError`."""
        await self._find(f"{uri}/{SKILL_FILE}", ctx)
        about = [one for one in self._held.values() if uri == root_of(one["uri"]) or is_below(uri, _root(one))]
        if not about:
            raise _no_directory(qualified(self.prefix, uri))
        self._admit(about[0]["uri"])

        async def ask(connection: Connection) -> _Ask:
            if (_settings(connection) or _NOTHING).get("directoryRead") is not True:
                return _Ask(None)
            given = {} if cursor is None else {"cursor": cursor}
            params = {"uri": uri, **given, "_meta": ctx.meta}
            return _Ask(await connection.ask("resources/directory/read", params), reads_directories=True)

        asked = await self._requests.run(ask, ctx.wait_left_s(), "list this directory", ctx)
        if asked.reads_directories:
            return self._shown_directory(uri, asked.answer)
        files = [file["uri"] for one in about if one["resources"] != DYNAMIC for file in one["resources"]]
        children = children_of(uri, _root(about[0]), files)
        if children is None:
            raise _no_directory(qualified(self.prefix, uri))
        return {"resources": [{**child, "uri": qualified(self.prefix, child["uri"])} for child in children]}

    def shown_entry(self, entry: Entry) -> dict[str, Any]:
        """An entry under qualified URIs. Digests and sizes are those of the upstream's bytes, which pass unchanged.

        `sanitize` changes texts on their way: what then arrives has no digest that anybody could know beforehand, and
        the extension's word for that is "dynamic".
        """
        prefix = self.prefix
        shown = {key: value for key, value in entry.items() if key not in ("_meta", "resources")}
        if meta := passing_meta(entry.get("_meta")):
            shown["_meta"] = meta
        if self.config.sanitize or entry["resources"] == DYNAMIC:
            shown = {**make_json_visible(shown), "resources": DYNAMIC}
        else:
            files = [{**one, "uri": qualified(prefix, one["uri"])} for one in entry["resources"]]
            shown["resources"] = files
        return {**shown, "uri": qualified(prefix, entry["uri"])}

    # What is known

    def knows(self, uri: str) -> bool:
        """Whether this native URI belongs to a skill that the upstream has listed."""
        return any(uri == _root(one) or is_below(uri, _root(one)) for one in self._held.values())

    def path_of(self, uri: str) -> tuple[str, ...]:
        """The gateways behind us that a skill comes through, by its native URI; empty if there are none."""
        return self._paths.get(uri, ())

    def native(self, uri: str) -> str | None:
        """The native URI of one that clients know; None if it cannot be of this upstream."""
        found = native(self.prefix, uri)
        return None if found is None or why_unusable(found) else found

    @property
    def _held(self) -> Mapping[str, Entry]:
        return {**self._unlisted, **self._listed}

    async def _find(self, uri: str, ctx: ToolContext) -> None:
        """Know the skill that a file belongs to. Raises `ToolError(TOOL_NOT_FOUND)` if there is none."""
        if self.knows(uri):
            return
        await self._refresh(ctx.wait_left_s(), ctx)
        folder = uri
        for _ in range(MAX_LEVELS):
            if self.knows(uri):
                return
            folder, _, name = folder.rpartition("/")
            if not name or folder.endswith(("/", ":")):
                break
            await self._ask_for(f"{folder}/{SKILL_FILE}", ctx)
        if not self.knows(uri):
            raise ToolError(ErrorCode.TOOL_NOT_FOUND, f"resource not found: {qualified(self.prefix, uri)[:200]}")

    async def _refresh(self, max_wait_s: float, ctx: ToolContext) -> None:
        """Read the whole list, unless it is fresh. Raises `ToolError`, `UpstreamError`."""
        with anyio.move_on_after(max_wait_s) as waited:
            await self._listing.acquire()
        if waited.cancelled_caught:
            raise ToolError(ErrorCode.UPSTREAM, f"upstream {self.config.name} has not listed its skills in time")
        try:
            if time.monotonic() < self._fresh_until_s:
                return
            if time.monotonic() < self._failed_until_s:
                raise ToolError(ErrorCode.UPSTREAM, self._failure)

            async def ask(connection: Connection) -> Listed:
                return await _list(connection, ctx.meta)

            listed = await self._run(ask, max_wait_s, "list its skills", ctx)
            if listed is None:
                return
            found = await anyio.to_thread.run_sync(valid_skills, listed.entries)
            self._paths = listed.paths
            self._note(found.rejected, listed.truncated)
            await self._hold({entry["uri"]: entry for entry in found.entries}, self._unlisted)
            ttl_s = (listed.ttl_ms or 0) / 1_000
            self._fresh_until_s = time.monotonic() + min(max(ttl_s, MIN_FRESH_S), MAX_FRESH_S)
        except ToolError as failure:
            # An error that the upstream answered with is quick, and may be about this request alone (CHN-2).
            if time.monotonic() >= self._failed_until_s:
                self._failure, self._failed_until_s = failure.message, time.monotonic() + AGAIN_AFTER_S
            raise
        finally:
            self._listing.release()

    async def _ask_for(self, uri: str, ctx: ToolContext) -> Entry | None:
        """The entry of now, which is held from then on; None if there is no such skill. Raises `ToolError`."""

        async def ask(connection: Connection) -> _Ask:
            if _settings(connection) is None:
                return _Ask(None)
            try:
                answer = await connection.ask("skills/get", {"uri": uri, "_meta": ctx.meta})
            except UpstreamError as refused:
                if refused.code in _GONE:
                    return _Ask(None)
                raise
            return _Ask(answer.get("skill"))

        said = await self._run(ask, ctx.wait_left_s(), "describe this skill", ctx)
        if said is None:
            return self._held.get(uri)
        asked = said.answer
        if asked is None:
            await self._hold(_without(self._listed, uri), _without(self._unlisted, uri))
            return None
        entry: Entry = cast("Entry", asked) if isinstance(asked, Mapping) else _NOTHING
        why = why_invalid(entry) or ("it is another skill's" if entry["uri"] != uri else "")
        if why:
            raise ToolError(
                ErrorCode.UPSTREAM,
                f"upstream {self.config.name} answered with an entry of a skill that no host may load: {why}",
                facts={"upstream": self.config.name},
            )
        if uri in self._listed:
            await self._hold({**self._listed, uri: entry}, self._unlisted)
        else:
            unlisted = {**_without(self._unlisted, uri), uri: entry}
            await self._hold(self._listed, dict(list(unlisted.items())[-MAX_UNLISTED:]))
        return entry

    async def _run(
        self, ask: Callable[[Connection], Awaitable[T]], max_wait_s: float, what: str, ctx: ToolContext
    ) -> T | None:
        """Ask over the connection that lists; over the client's if only that is of the era that knows extensions.

        None if neither is: a server of both eras that declares none in a handshake may have skills all the same. What
        is held of them stays, and no second process is started for a client of the older era.
        """

        async def of_this_era(connection: Connection) -> tuple[T] | None:
            has_word = connection.stateless or _settings(connection) is not None
            return (await ask(connection),) if has_word or not self._may_be_newer() else None

        asked = await self._requests.run(of_this_era, max_wait_s, what)
        if asked is None and ctx.client is not None and ctx.client.is_stateless:
            asked = await self._requests.run(of_this_era, max_wait_s, what, ctx)
        return None if asked is None else asked[0]

    def _may_be_newer(self) -> bool:
        return self._eras.used_for(Era.STATELESS) is Era.STATELESS

    # Pins

    async def _hold(self, listed: dict[str, Entry], unlisted: dict[str, Entry]) -> None:
        """From now on these are its skills; what is new is pinned, and what has changed waits."""
        if listed == self._listed and unlisted == self._unlisted:
            return
        self._listed, self._unlisted = listed, {key: one for key, one in unlisted.items() if key not in listed}
        seen = self._definitions(self._held.values())
        self._pins.hold("skill", seen)
        await anyio.to_thread.run_sync(self._pins.settle, "skill", seen, launch_fingerprint(self.config.target))
        await self._pins.scan_first_sights()

    def _shown(self, entries: Iterable[Entry]) -> Sequence[Entry]:
        """Entries as the pins allow them: a changed one as it was pinned."""
        view = self._pins.look("skill", self._definitions(entries), lambda one: None if why_invalid(one) else one)
        return [one.entry for one in view.shown]

    def _admit(self, uri: str) -> None:
        """Raises `ToolError(QUARANTINED)` if a skill that the file belongs to may not be used as it is now."""
        for entry in entries_about(uri, self._held.values()):
            self._pins.admit("skill", entry["uri"])

    @staticmethod
    def _definitions(entries: Iterable[Entry]) -> list[ReceivedDefinition]:
        return [ReceivedDefinition(one["uri"], definition_hash(one), one, one) for one in entries]

    async def _why_mismatch(self, uri: str, raw: Mapping[str, Any]) -> str:
        return await anyio.to_thread.run_sync(why_mismatch, uri, raw, list(self._held.values()))

    def _shown_directory(self, uri: str, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the upstream lists, but for what is no direct child: a client would take it for one."""
        listed: Any = answer.get("resources")
        if not isinstance(listed, list):
            raise ToolError(ErrorCode.UPSTREAM, f"upstream {self.config.name} answered without a list of resources")
        children: list[Mapping[str, Any]] = []
        for raw in cast("list[Any]", listed):
            child: Entry = cast("Entry", raw) if isinstance(raw, Mapping) else _NOTHING
            own = child.get("uri")
            if not why_unusable(own) and is_below(str(own), uri) and "/" not in str(own).removeprefix(f"{uri}/"):
                children.append({**child, "uri": qualified(self.prefix, str(own))})
        cursor = answer.get("nextCursor")
        more = {"nextCursor": cursor} if isinstance(cursor, str) and cursor else {}
        return {"resources": make_json_visible(children) if self.config.sanitize else children, **more}

    def _note(self, rejected: tuple[RejectedEntry, ...], truncated: str) -> None:
        if rejected != self.rejected or truncated:
            for one in rejected:
                self._telemetry.warning(
                    "upstream's skill is of no use", upstream=self.config.name, skill=one.name, problem=one.reason
                )
            if truncated:
                self._telemetry.warning(
                    "upstream's list is not whole", upstream=self.config.name, kind="skills", problem=truncated
                )
        self.rejected = rejected


def _settings(connection: Connection) -> Mapping[str, Any] | None:
    """What the upstream declared of the extension; None if it did not declare it."""
    extensions: Any = connection.capabilities.get("extensions")
    found: Any = (
        cast("Mapping[str, Any]", extensions).get(SKILLS_EXTENSION) if isinstance(extensions, Mapping) else None
    )
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else None


async def _list(connection: Connection, meta: Mapping[str, Any]) -> Listed:
    """All pages. `meta` is that of the request behind it: it names the gateways on the way, so that a circle ends."""
    listed = Listed()
    if _settings(connection) is None:
        listed.ttl_ms = int(MAX_FRESH_S * 1_000)
        return listed
    try:
        await drain(lambda page: connection.ask("skills/list", {**page, "_meta": meta}), "skills", listed)
    except UpstreamError as refused:
        if refused.code != _METHOD_NOT_FOUND:
            raise
    if connection.peer_instance:
        take_chained(listed, "skills", instance=connection.instance, peer=connection.peer_instance)
    return listed


def _root(entry: Entry) -> str:
    return str(root_of(entry["uri"]))


def _without(entries: Mapping[str, Entry], uri: str) -> dict[str, Entry]:
    return {key: one for key, one in entries.items() if key != uri}


def _no_directory(uri: str) -> ToolError:
    return ToolError(
        ErrorCode.INPUT, f"{uri[:200]} is not a directory of a skill", "skills/list has the files of each skill."
    )
