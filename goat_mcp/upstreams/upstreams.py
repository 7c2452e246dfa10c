"""All upstreams of the process, as the gateway uses them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import anyio
import anyio.abc

from goat_mcp.catalog.offerings import Kind, Offerings
from goat_mcp.catalog.own_lists import OwnLists
from goat_mcp.catalog.registry import Registry
from goat_mcp.catalog.resource_catalog import UriOwnership
from goat_mcp.core.calling_client import RootsOf, no_roots
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.resources import McpResources, UpstreamUpdate
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.cache.warm_catalog import WarmCatalog
from goat_mcp.upstreams.config.entry import Confine, UpstreamConfig
from goat_mcp.upstreams.config.upstream_files import UpstreamFiles, UpstreamProblem
from goat_mcp.upstreams.oauth.logins import Logins
from goat_mcp.upstreams.patience import Patience, answers
from goat_mcp.upstreams.pinning.pin_lock import LockContent, PinLock, PinnedDefinitions
from goat_mcp.upstreams.pinning.pins import Pinning
from goat_mcp.upstreams.retry_policy import SupervisorLimits
from goat_mcp.upstreams.sharing.shared_connect import SHARE_NAMED, Sharing, lazy_connect
from goat_mcp.upstreams.status import ReasonCode, UpstreamState, UpstreamStatus
from goat_mcp.upstreams.upstream import Upstream
from goat_mcp.upstreams.upstream_services import UpstreamServices

FIRST_LIST_WAIT_S = 3.0
PIN_LOOK_S = 1.0
DRAIN_S = 60.0
"""How long calls may go on of an upstream whose entry has changed or gone."""

if TYPE_CHECKING:  # loaded by `lock --check`
    from goat_mcp.upstreams.pinning.pin_review import Comparison

Shows = Callable[[str], bool]
"""Whether a client may know of a server, by the part that names of its tools have of it."""


def shows_all(server: str) -> bool:
    return True


class Upstreams:
    """Builds one `Upstream` per entry, in config order, and runs them side by side."""

    def __init__(
        self,
        configs: Sequence[UpstreamConfig],
        *,
        registry: Registry,
        state: StateDirectory,
        telemetry: Telemetry,
        guard: ProcessGuard | None = None,
        confine: Confine | None = None,
        logins: Logins | None = None,
        problems: Sequence[UpstreamProblem] = (),
        limits: SupervisorLimits | None = None,
        why_denied: Callable[[str], str] = lambda server: "",
        on_change: Callable[[], None] = lambda: None,
        instance: str = "",
        roots: RootsOf = no_roots,
        on_updated: Callable[[UpstreamUpdate], None] = lambda update: None,
        drain_s: float = DRAIN_S,
        sharing: Sharing = SHARE_NAMED,
        own_lists: OwnLists | None = None,
    ) -> None:
        """`why_denied`: what keeps all of a server's resources from clients, in words; empty if nothing does.

        `on_change` hears that something in `status` changed, `on_updated` the watched resources that were
        updated; neither may block. `instance` is our id among gateways (`core.gateway_chain`).
        """
        self.offers = Offerings()
        self.own_lists = own_lists or OwnLists()
        self.given = UriOwnership()
        self.given_by_reads = UriOwnership()
        """Those that only the contents of another resource held."""
        self._pinning = Pinning(PinLock(state, telemetry.warning), PinnedDefinitions(state, telemetry.warning))
        self._shown_lock = self._pinning.lock.content()
        self.configs = tuple(configs)
        self.problems = tuple(problems)
        self._why_denied = why_denied
        self._registry = registry
        self._telemetry = telemetry
        self._on_change = on_change
        self._drain_s = drain_s
        self._group: anyio.abc.TaskGroup | None = None
        self._running: dict[Upstream, anyio.CancelScope] = {}

        services = UpstreamServices(
            registry=registry,
            offers=self.offers,
            uris=self.given,
            warm=WarmCatalog(state, telemetry.warning),
            pins=self._pinning,
            telemetry=telemetry,
            limits=limits or SupervisorLimits(),
            connect=partial(lazy_connect, instance=instance, guard=guard, confine=confine),
            sharing=sharing,
            roots=roots,
            own_lists=self.own_lists,
            on_change=on_change,
            on_updated=on_updated,
        )

        def make(config: UpstreamConfig, leaves: tuple[int, ...]) -> Upstream:
            ours = replace(services, sharing=replace(sharing, leaves=leaves)) if leaves else services
            return Upstream(config, ours, logins.of(config) if logins is not None else None)

        self._make: Callable[[UpstreamConfig, tuple[int, ...]], Upstream] = make
        self._upstreams: list[Upstream] = [make(config, ()) for config in configs]
        self._first_list_until_s: dict[Upstream, float] = {}
        self.anyone_listed = False
        self._first_offers_until_s: float | None = None
        self._resources: dict[frozenset[str], McpResources] = {}
        registry.declare(*(config.source for config in configs))
        self.offers.declare(*(config.source for config in configs))

    def session_ended(self, session_key: str) -> None:
        """A client is gone: what was kept for it alone is ended."""
        for upstream in self._upstreams:
            upstream.session_ended(session_key)

    def roots_changed(self, session_key: str) -> None:
        """A client has other roots now: those that know the old ones hear of it with its next request (ERA-6)."""
        for upstream in self._upstreams:
            upstream.roots_changed(session_key)

    def workspace_changed(self) -> None:
        """The workspace is known now, or is another: those that work in it are started again, without back-off (WSP-2).

        Clients hear of what they list there as of any change. Who lists meanwhile waits for it as for a first list.
        """
        for upstream in self._upstreams:
            if upstream.workspace_changed():
                self._first_list_until_s.pop(upstream, None)
                self._first_offers_until_s = None

    def tools_ttl_ms(self, own_ms: int) -> int:
        """How long a list of all tools stays fresh: as long as its shortest part (CHG-5)."""
        return min((ttl for one in self._upstreams if (ttl := one.tools_ttl_ms) is not None), default=own_ms)

    def load_warm_catalogs(self) -> None:
        """Show what earlier runs have listed. Reads one small file per upstream and starts nothing."""
        # In one step: as each would be a snapshot of the whole registry, 50 of them would take 25 times as long.
        with self._registry.rearranged((), [upstream.config.source for upstream in self._upstreams]):
            for upstream in self._upstreams:
                upstream.load_warm()

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Supervise until cancelled; then every child process is ended before this returns."""
        async with anyio.create_task_group() as self._group:
            for upstream in self._upstreams:
                self._group.start_soon(self._run, upstream)
            self._group.start_soon(self._keep_pinned)
            task_status.started()

    def only_compare(self) -> LockContent:
        """Write nothing into the lock from now on. Returns what it holds."""
        self._shown_lock = self._pinning.lock.content()
        self._pinning.lock.only_compares = True
        return self._shown_lock

    def suspicious(self, names: Collection[str]) -> list[tuple[str, str]]:
        """Of these upstreams: the name, and which definition a person should read and why. Blocks: for a thread."""
        from goat_mcp.upstreams.pinning.pin_review import suspicious_in

        named = {one.config.server: one.config.name for one in self._upstreams if one.config.name in names}
        found = suspicious_in(self._pinning.lock.content(), self._pinning.definitions, named)
        return [(named[one.about.server], str(one)) for one in found]

    def unusable_schemas(self, names: Collection[str]) -> list[tuple[str, str]]:
        """Of these upstreams: the name, and which tool's calls pass unchecked and why. Blocks: for a thread."""
        return [
            (one.config.name, why)
            for one in self._upstreams
            if one.config.name in names
            for why in one.unusable_schemas()
        ]

    async def compare(self, before: LockContent) -> list[Comparison]:
        """Ask every upstream what it offers, and hold that against the lock as it was."""
        from goat_mcp.upstreams.pinning.pin_review import Comparison

        found: dict[str, Comparison] = {}

        async def one(upstream: Upstream) -> None:
            found[upstream.config.name] = await upstream.compare(before)

        async with anyio.create_task_group() as group:
            for upstream in self._upstreams:
                group.start_soon(one, upstream)
        left_out = [
            Comparison(one.name, problem=one.message)
            for one in self.problems
            if one.is_fatal and one.reason_code != ReasonCode.DISABLED
        ]
        return [found[upstream.config.name] for upstream in self._upstreams] + left_out

    async def _run(self, upstream: Upstream) -> None:
        with anyio.CancelScope() as self._running[upstream]:
            await upstream.run()

    def apply(self, files: UpstreamFiles) -> None:
        """Do as the files say now (CFG-4). An upstream whose entry is as it was goes on: process, connection, calls.

        One whose entry has gone or changed takes no new calls and is ended when those under way are done, at the
        latest after a while.
        """
        before = {upstream.config.server: upstream for upstream in self._upstreams}
        now: list[Upstream] = []
        for config in files.configs:
            known = before.get(config.server)
            now.append(known if known is not None and known.config == config else self._make(config, ()))
        self.configs, self.problems = tuple(files.configs), tuple(files.problems)
        self._use(now)

    async def restarted(self, name: str, max_wait_s: float | None) -> UpstreamStatus | None:
        """Start the upstream of this name again, as if its entry had changed, and wait for its first list or failure;
        without a time to wait, its next use starts it. None if there is none of this name."""
        old = next((one for one in self._upstreams if name in (one.config.name, one.config.server)), None)
        if old is None:
            return None
        new = self._make(old.config, old.shared_processes())
        self._use([new if one is old else one for one in self._upstreams])
        if max_wait_s is not None:
            with anyio.move_on_after(max_wait_s):
                await new.relist()
        return new.status()

    def _use(self, now: list[Upstream]) -> None:
        """Have these, in this order; the others are ended."""
        gone = [upstream for upstream in self._upstreams if upstream not in now]
        new = [upstream for upstream in now if upstream not in self._upstreams]
        self._upstreams = now
        self._resources = {}
        for upstream in gone:
            upstream.retire()
            self._first_list_until_s.pop(upstream, None)
            for given in (self.given, self.given_by_reads):
                given.forget(upstream.config.source)
        gone_sources, order = [one.config.source for one in gone], [one.config.source for one in now]
        self.offers.rearrange(gone_sources, order)
        with self._registry.rearranged(gone_sources, order):
            for upstream in new:
                upstream.load_warm()
        if self._group is not None:
            for upstream in gone:
                self._group.start_soon(self._drain, upstream)
            for upstream in new:
                self._group.start_soon(self._run, upstream)
                if self.anyone_listed and not upstream.is_known:
                    # Clients that have a list already hear of what it offers.
                    self._group.start_soon(upstream.first_outcome)
                if self._first_offers_until_s is not None:
                    self._group.start_soon(upstream.first_offer)
        self._on_change()

    def keep(self, problem: UpstreamProblem) -> None:
        """A file is broken: what it said before stays, and `status` says so."""
        self.problems = (*(one for one in self.problems if not one.is_about_file), problem)
        self._on_change()

    async def _drain(self, upstream: Upstream) -> None:
        await upstream.drained(self._drain_s)
        if upstream in self._running:
            self._running.pop(upstream).cancel()

    async def _keep_pinned(self) -> None:
        """See within a second or two what somebody has approved."""
        while True:
            await anyio.sleep(PIN_LOOK_S)
            self._show_pinned()

    def _show_pinned(self) -> None:
        content = self._pinning.lock.content()
        if content is not self._shown_lock:
            self._shown_lock = content
            for upstream in self._upstreams:
                upstream.repin()
            self._on_change()

    async def first_list(
        self, max_wait_s: float = FIRST_LIST_WAIT_S, *, ctx: ToolContext | None = None, shows: Shows = shows_all
    ) -> None:
        """Start upstreams whose tools nobody has seen yet and wait for them, once, until each has listed or failed.

        `ctx` is who wants to see the list, and `shows` of which servers. Later calls, and calls after the wait is
        over, return at once: changes reach clients as `list_changed`.
        """
        self._show_pinned()
        self.anyone_listed = True
        unseen = [one for one in self._upstreams if not one.is_known and shows(one.config.server)]
        now_s = time.monotonic()
        until_s = [self._first_list_until_s.setdefault(upstream, now_s + max_wait_s) for upstream in unseen]
        if max(until_s, default=now_s) <= now_s:
            return
        with anyio.move_on_after(max(until_s) - now_s):
            async with anyio.create_task_group() as group:
                for upstream in unseen:
                    group.start_soon(upstream.first_outcome, ctx)

    async def first_offers(self, max_wait_s: float = FIRST_LIST_WAIT_S, shows: Shows = shows_all) -> None:
        """As `first_list`, for what they offer beside tools. What earlier runs have stored is there at once."""
        if self._first_offers_until_s is None:
            self._first_offers_until_s = time.monotonic() + max_wait_s
        await self.all_offers(self._first_offers_until_s - time.monotonic(), shows)

    async def all_offers(self, max_wait_s: float, shows: Shows = shows_all) -> None:
        """Know what each offers beside tools, or that it cannot be known now: start what was never seen, and wait."""
        for upstream in self._upstreams:
            upstream.offerings.want()
        unknown = [one for one in self._upstreams if not one.offerings.is_known and shows(one.config.server)]
        if not unknown or max_wait_s <= 0:
            return
        with anyio.move_on_after(max_wait_s):
            async with anyio.create_task_group() as group:
                for upstream in unknown:
                    group.start_soon(upstream.first_offer)

    def upstream(self, source: str) -> Upstream:
        """The one behind a source of the registry or of the offers."""
        return next(upstream for upstream in self._upstreams if upstream.config.source == source)

    async def first_outcome(self, name: str, max_wait_s: float, shows: Shows = shows_all) -> None:
        """Start what was never seen and may have the tool `name`; wait until each has listed or failed."""
        unseen = [
            one
            for one in self._upstreams
            if not one.is_known and name.startswith(one.config.prefix) and shows(one.config.server)
        ]
        with anyio.move_on_after(max_wait_s):
            async with anyio.create_task_group() as group:
                for upstream in unseen:
                    group.start_soon(upstream.first_outcome)

    async def each_listed(
        self,
        heard: Callable[[UpstreamStatus, float], None],
        patience: Patience,
        *,
        names: Collection[str] | None = None,
        again: bool = False,
    ) -> None:
        """Start those of these `names` whose tools are not known, with `again` also those that are known from before.

        `heard` gets each at the moment in which it has listed or failed, and the seconds that took.
        """
        asked = self.names_to_list(names, again=again)
        await answers([one for one in self._upstreams if one.config.name in asked], heard, patience, again=again)

    def names_to_list(self, names: Collection[str] | None, *, again: bool) -> list[str]:
        """Whom `each_listed` starts."""
        chosen = [one for one in self._upstreams if names is None or one.config.name in names]
        return [one.config.name for one in chosen if again or not one.is_known]

    async def until_started(self, name: str) -> None:
        """Start what has the tool `name` or may have it; wait until each can be called or has failed."""
        source = self._registry.snapshot.source_of.get(name)
        async with anyio.create_task_group() as group:
            for one in self._upstreams:
                may_have_it = source is None and not one.is_known and name.startswith(one.config.prefix)
                if one.config.source == source or may_have_it:
                    group.start_soon(one.until_started)

    async def elicit_first_login(self, name: str, ctx: ToolContext, shows: Shows = shows_all) -> None:
        """Where the tool `name` would be one of an upstream that was never seen for want of a login: offer that."""
        for upstream in self._upstreams:
            config = upstream.config
            if not upstream.is_known and config.prefix and name.startswith(config.prefix) and shows(config.server):
                await upstream.elicit_first_login(ctx)

    async def relist(self, name: str, max_wait_s: float) -> None:
        """Connect to this one and wait until it has listed or failed, whatever is known of it from before."""
        with anyio.move_on_after(max_wait_s):
            for upstream in self._upstreams:
                if upstream.config.name == name:
                    await upstream.relist()

    def path_of(self, member: str, key: str) -> tuple[str, ...]:
        """The gateways behind us that an entry comes through; empty where there are none.

        `member` is that of the answer which lists it, `key` the name or URI by which clients know it.
        """
        if member == "tools":
            source = self._registry.snapshot.source_of.get(key)
            upstream = next((one for one in self._upstreams if one.config.source == source), None)
            return () if upstream is None else upstream.path_of(key)
        offered = self.offers.snapshot
        if member == "prompts":
            prompt = offered.prompts.get(key)
            if prompt is None:
                return ()
            return self.upstream(prompt[0]).offerings.path_of("prompts", prompt[1].native_name)
        kind: Kind = "templates" if member == "resourceTemplates" else "resources"
        owned = offered.templates.get(key) if kind == "templates" else offered.resources.get(key)
        return () if owned is None else self.upstream(owned[0]).offerings.path_of(kind, key)

    def resources(self, shows: Shows = shows_all) -> McpResources:
        """What those offer to be read that the client may know of."""
        shown = [upstream for upstream in self._upstreams if shows(upstream.config.server)]
        names = frozenset(upstream.config.name for upstream in shown)
        if (known := self._resources.get(names)) is None:
            # Loaded by the first list or read of a resource, not at start.
            from goat_mcp.upstreams.resources import UpstreamResources

            problems = self.problems if len(shown) == len(self._upstreams) else ()
            known = self._resources[names] = UpstreamResources(shown, problems, self._why_denied)
        return known

    def status(self) -> list[UpstreamStatus]:
        """Every entry a user wrote, in order of use first and those left out after them."""
        return list(self.each_status())

    def each_status(self) -> Iterator[UpstreamStatus]:
        """The same one by one, each as of its own moment."""
        for upstream in self._upstreams:
            yield upstream.status()
        for problem in self.problems:
            if problem.is_fatal:
                yield UpstreamStatus(
                    name=problem.name,
                    server="",
                    state=UpstreamState.REFUSED,
                    reason_code=problem.reason_code,
                    detail=problem.message,
                    file=problem.file,
                )

    def why_missing(self, name: str) -> ToolError | None:
        """Where a name belongs to an upstream that does not run or is not in use, or to a tool we withhold: why."""
        for upstream in self._upstreams:
            if (withheld := upstream.why_missing(name)) is not None:
                return withheld
        from goat_mcp.upstreams.diagnosis import why_missing

        owners = [each for each in self._upstreams if each.config.prefix and name.startswith(each.config.prefix)]
        # Of the owners alone: it is asked for with each call that fails, and a status takes a look at files.
        statuses = [owner.status() for owner in owners]
        for owner, status in zip(owners, statuses, strict=True):
            if status.reason_code == ReasonCode.AUTH_REQUIRED:
                reason = f"upstream {status.name} wants a login: {status.detail}"
                return ToolError(ErrorCode.AUTH, f"{name[:200]} cannot be called: {reason}", owner.config.login_step)
        prefixes = {owner.config.name: owner.config.prefix for owner in owners}
        return why_missing(name, statuses, prefixes, self.problems)
