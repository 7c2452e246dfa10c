"""What one upstream offers beside tools: listed once somebody asks, then after each notice; stored, and kept on show.

Contract: CHG-1, LIF-2, ISO-4, AGG-4, PIN-1. A dead upstream keeps its last offer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio

from goat_mcp.catalog.offerings import Kind, OfferedPrompt, Offering, Offerings
from goat_mcp.core.errors import UpstreamError
from goat_mcp.core.names import SEPARATOR, UPSTREAM_PREFIX, exposed_name
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.cache.warm_catalog import StoredItems, WarmCatalog
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.faults import TransportFault
from goat_mcp.upstreams.pinning.pin_gate import PinGate
from goat_mcp.upstreams.pinning.pinned_resources import KINDS, PinnedResources
from goat_mcp.upstreams.retry_policy import SupervisorLimits
from goat_mcp.upstreams.status import ReasonCode, RejectedEntry

if TYPE_CHECKING:  # loaded with the first connection
    from goat_mcp.upstreams.transports.connection import Connection


_KINDS_OF: Mapping[str, tuple[Kind, ...]] = {"resources": ("resources", "templates"), "prompts": ("prompts",)}
"""By what a notice speaks of: the lists to read again."""
_METHOD_NOT_FOUND = -32601
_NOTHING = StoredItems()


class OfferingCache:
    """Of one upstream. `keep` runs beside each of its connections; the rest may be called from anywhere."""

    def __init__(
        self,
        config: UpstreamConfig,
        *,
        offers: Offerings,
        warm: WarmCatalog,
        telemetry: Telemetry,
        limits: SupervisorLimits,
        gate: PinGate,
        on_listed: Callable[[], None] = lambda: None,
    ) -> None:
        self._config = config
        self._offers = offers
        self._warm = warm
        self._telemetry = telemetry
        self._limits = limits
        self._gate = gate
        self._pinned = PinnedResources(config, gate.pins)
        self._on_listed = on_listed
        self._wanted = anyio.Event()
        self._items: StoredItems | None = None
        self._shown = StoredItems()
        self._has_loaded = False
        self._connection: Connection | None = None
        self.first_outcome = anyio.Event()
        self._problems: dict[Kind, str] = {}
        self._truncated: dict[Kind, str] = {}
        self._rejected: dict[Kind, tuple[RejectedEntry, ...]] = {}
        self._paths: dict[Kind, Mapping[str, tuple[str, ...]]] = {}
        self._is_closed = False

    @property
    def is_known(self) -> bool:
        return self._items is not None

    @property
    def items(self) -> StoredItems:
        """What clients may see of what it listed."""
        return self._shown

    @property
    def problem(self) -> str:
        """Why the lists are not the upstream's last ones, in words; empty if they are."""
        return "; ".join(filter(None, self._problems.values()))

    @property
    def truncated(self) -> str:
        """Which lists are not whole, in words; empty if all are."""
        return "; ".join(f"{kind}: {why}" for kind, why in self._truncated.items() if why)

    @property
    def rejected(self) -> tuple[RejectedEntry, ...]:
        return (*(each for rejected in self._rejected.values() for each in rejected), *self._pinned.rejected)

    @property
    def quarantined(self) -> tuple[str, ...]:
        """Those that are shown as they were pinned, each after its kind."""
        return self._pinned.quarantined

    def path_of(self, kind: Kind, key: str) -> tuple[str, ...]:
        """The gateways that this one came through at the last list; empty where none is known."""
        return self._paths.get(kind, {}).get(key, ())

    def collisions(self) -> tuple[str, ...]:
        """What another source keeps, each with the remedy."""
        own = self._config.source
        return tuple(str(collision) for collision in self._offers.snapshot.collisions if collision.source == own)

    @property
    def subscribes(self) -> bool:
        """Whether the upstream tells of changes of its resources."""
        return self.items.subscribes

    def want(self) -> None:
        """Somebody asks: show what the last run stored, and list at the next opportunity."""
        self._wanted.set()
        self.load_warm()

    def load_warm(self) -> None:
        """Show what the last run stored, once. Nothing is listed for it."""
        if not self._has_loaded:
            self._has_loaded = True
            stored = self._warm.load_items(self._config.server, self._config.fingerprint)
            if stored is not None and self._items is None:
                self._show(stored)
                self.first_outcome.set()

    async def keep(self, connection: Connection) -> None:
        """Until cancelled: list when somebody wants it and after each notice of change, at most once per interval."""
        await self._wanted.wait()
        self._connection = connection
        kinds: Set[Kind] = {kind for listed in _KINDS_OF.values() for kind in listed}
        while True:
            connection.notices.changed()
            listed_s = time.monotonic()
            with self._gate.listing(connection):
                failed = await self._refresh(connection, kinds)
            self.first_outcome.set()
            self._on_listed()
            await self._gate.pins.scan_first_sights()
            kinds = set(failed)
            if failed:
                with anyio.move_on_after(self._limits.relist_after_failure_s):
                    await connection.notices.wait()
            else:
                await connection.notices.wait()
            await anyio.sleep(max(0.0, listed_s + self._limits.relist_interval_s - time.monotonic()))
            kinds |= {kind for changed in connection.notices.changed() for kind in _KINDS_OF[changed]}

    @property
    def listed(self) -> StoredItems:
        """What it listed last, as it came; nothing if it never did."""
        return self._items or _NOTHING

    @property
    def shown(self) -> Offering:
        """What all clients see of it, but those to whom a process of their own lists something else."""
        return self._offers.of(self._config.source)

    async def wanted(self) -> None:
        """Until somebody has asked for a list."""
        await self._wanted.wait()

    async def of_client(self, connection: Connection) -> StoredItems | None:
        """What a connection lists that serves single clients, pinned where it is new; None if it lists nothing now."""
        from goat_mcp.upstreams.listing.entry_validation import METHODS, valid_resources
        from goat_mcp.upstreams.listing.paging import Listed

        items = StoredItems(subscribes=connection.subscribes)
        for kind in METHODS:
            listed = Listed()
            if connection.offers("prompts" if kind == "prompts" else "resources"):
                try:
                    with anyio.fail_after(self._limits.list_timeout_s):
                        await connection.list_all(*METHODS[kind], listed)
                except (TimeoutError, TransportFault):
                    return None
                except UpstreamError as refused:
                    if refused.code != _METHOD_NOT_FOUND:
                        return None
            usable = await anyio.to_thread.run_sync(valid_resources, kind, listed.entries)
            ttls = dict(items.ttl_ms) if listed.ttl_ms is None else {**items.ttl_ms, kind: listed.ttl_ms}
            hashes = items.hashes
            if kind != "resources":
                hashes = {**hashes, kind: await anyio.to_thread.run_sync(self._pinned.settle, kind, usable)}
            items = replace(items, ttl_ms=ttls, hashes=hashes, **{kind: usable.entries})
        return items

    def offering_of(self, items: StoredItems) -> Offering:
        """What clients may see of a list that is not the one on show."""
        shown = {kind: self._pinned.shown_to_client(kind, getattr(items, kind), items.hashes) for kind in KINDS}
        prompts = tuple(map(self._prompt, shown["prompts"]))
        return Offering(items.resources, shown["templates"], prompts, dict(items.ttl_ms))

    def compare(self, resources: Sequence[Mapping[str, Any]], templates: Sequence[Mapping[str, Any]]) -> None:
        """Another way of listing brought these, as they came; where they are others than ours, list again."""
        if self._connection is None or self._items is None:
            return
        uris = {entry["uri"] for entry in resources}
        ours = self._items
        if uris != {entry["uri"] for entry in ours.resources} or self._pinned.changes(
            "templates", templates, ours.hashes
        ):
            self._connection.notices.mark("resources")

    def shown_of(self, templates: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
        """What clients may see of templates that another way of listing brought."""
        return self._pinned.shown_of("templates", templates)

    async def settled(self, connection: Connection, max_wait_s: float) -> None:
        """Return once what this connection offers is known, changes that it has announced included; as `PinGate`."""
        self.want()
        await self._gate.settled(connection, max_wait_s)

    async def admit(
        self, method: str, params: Mapping[str, Any], connection: Connection, max_wait_s: float, *, is_listed: bool
    ) -> None:
        """Wait for the list that a request needs, and hold the request against it: `prompts/get`, a read of what a
        template stands for, a completion. Raises `ToolError(QUARANTINED)` for what may not be used as it is now.

        `is_listed`: whether the connection is one whose lists are read.
        """
        ref = params.get("ref") or params
        name, uri = ref.get("name"), ref.get("uri")
        is_prompt = method == "prompts/get" or ref.get("type") == "ref/prompt"
        self.load_warm()
        must_be_listed = self._config.pin == "strict" and not self.is_known
        # A read of a plain resource waits for no list.
        if not is_prompt and not self._templates_of(str(uri)) and not must_be_listed:
            return
        if is_listed:
            await self.settled(connection, max_wait_s)
        if is_prompt:
            self._pinned.admit("prompts", str(name))
            return
        for template in self._templates_of(str(uri)):
            self._pinned.admit("templates", template)

    def _templates_of(self, uri: str) -> tuple[str, ...]:
        """The templates it lists, shown or not, that a request about this URI, or template, is about.

        None where it lists the URI as a resource.
        """
        from goat_mcp.core.uri_template import matches

        items = self._items or StoredItems()
        if any(entry["uri"] == uri for entry in items.resources):
            return ()
        templates = (str(entry["uriTemplate"]) for entry in items.templates)
        return tuple(template for template in templates if template == uri or matches(template, uri))

    def repin(self) -> None:
        """Show what the pins allow now: somebody has changed them."""
        if self._items is not None and self._pinned.is_outdated:
            self._show(self._items)

    async def _refresh(self, connection: Connection, kinds: Set[Kind]) -> list[Kind]:
        """List these kinds and show what came. Returns those that could not be listed."""
        from goat_mcp.upstreams.listing.entry_validation import METHODS, SINGULAR, valid_resources
        from goat_mcp.upstreams.listing.paging import Listed

        failed: list[Kind] = []
        items = replace(self._items or StoredItems(), subscribes=connection.subscribes)
        for kind in METHODS:
            if kind not in kinds:
                continue
            listed = Listed()
            if connection.offers("prompts" if kind == "prompts" else "resources"):
                try:
                    with anyio.fail_after(self._limits.list_timeout_s):
                        await connection.list_all(*METHODS[kind], listed)
                except TimeoutError:
                    self._note(kind, f"it did not list its {kind} within {self._limits.list_timeout_s:g} s")
                    failed.append(kind)
                    continue
                except (UpstreamError, TransportFault) as error:
                    # Servers with nothing of the kind answer so.
                    if not isinstance(error, UpstreamError) or error.code != _METHOD_NOT_FOUND:
                        self._note(kind, f"it did not list its {kind}: {error}")
                        failed.append(kind)
                        continue
            usable = await anyio.to_thread.run_sync(valid_resources, kind, listed.entries)
            self._note(kind, "")
            if listed.truncated and listed.truncated != self._truncated.get(kind):
                self._telemetry.warning(
                    "upstream's list is not whole", upstream=self._config.name, kind=kind, problem=listed.truncated
                )
            self._truncated[kind] = listed.truncated
            cyclic = (
                RejectedEntry(key, why, ReasonCode.GATEWAY_CYCLE, kind=SINGULAR[kind]) for key, why in listed.cyclic
            )
            self._rejected[kind] = (*usable.rejected, *cyclic)
            self._paths[kind] = listed.paths
            ttls = {other: ttl for other, ttl in items.ttl_ms.items() if other != kind}
            if listed.ttl_ms is not None:
                ttls[kind] = listed.ttl_ms
            hashes = items.hashes
            if kind != "resources":
                hashes = {**hashes, kind: await anyio.to_thread.run_sync(self._pinned.settle, kind, usable)}
            items = replace(items, ttl_ms=ttls, hashes=hashes, **{kind: usable.entries})
        if self._items is not None or len(failed) < len(kinds):
            self._keep(items)
        return failed

    def _note(self, kind: Kind, problem: str) -> None:
        if problem and self._problems.get(kind) != problem:
            self._telemetry.warning("upstream's list failed", upstream=self._config.name, problem=problem)
        self._problems[kind] = problem

    def _keep(self, items: StoredItems) -> None:
        if self._is_closed:
            return
        is_same = items == self._items
        self._show(items)
        if is_same:
            return
        try:
            self._warm.store_items(self._config.server, self._config.fingerprint, items)
        except OSError as problem:
            self._telemetry.warning("catalog not stored", upstream=self._config.name, problem=str(problem))

    def close(self) -> None:
        """What it lists from now on is of no interest: its entry has gone, or another one has its place."""
        self._is_closed = True
        self.first_outcome.set()

    def _show(self, items: StoredItems) -> None:
        self._items = items
        if self._is_closed:
            return
        shown = self._shown = replace(
            items, **{kind: self._pinned.shown(kind, getattr(items, kind), items.hashes) for kind in KINDS}
        )
        prompts = tuple(self._prompt(entry) for entry in shown.prompts)
        self._offers.replace(
            self._config.source, Offering(items.resources, shown.templates, prompts, dict(items.ttl_ms))
        )

    def _prompt(self, entry: Mapping[str, Any]) -> OfferedPrompt:
        config, native = self._config, str(entry["name"])
        name = exposed_name(config.prefix, native, server=config.server, cap=config.name_cap)
        rule_name = f"{UPSTREAM_PREFIX}{config.server}{SEPARATOR}{native}"
        return OfferedPrompt(name, native, rule_name, {**entry, "name": name})
