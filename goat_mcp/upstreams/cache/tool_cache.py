"""What one upstream offers: listed, checked, stored for the next start, and swapped in the registry in one step.

Contract: CHG-1, LIF-2, ISO-4. When to list is the supervisor's business.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio

from goat_mcp.catalog.registry import AnyTool, Registry
from goat_mcp.core.errors import ToolError, UpstreamError
from goat_mcp.core.names import exposed_name
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.cache.warm_catalog import StoredCatalog, WarmCatalog
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.faults import TransportFault
from goat_mcp.upstreams.listing.proxy_tool import CallRelay, UpstreamSpec, assess, upstream_tool
from goat_mcp.upstreams.pinning.launch_fingerprint import launch_fingerprint
from goat_mcp.upstreams.pinning.pin_gate import PinGate
from goat_mcp.upstreams.pinning.pin_lock import definition_hash
from goat_mcp.upstreams.pinning.pins import ReceivedDefinition, View
from goat_mcp.upstreams.status import ReasonCode, RejectedEntry

if TYPE_CHECKING:  # loaded at the first list
    from goat_mcp.upstreams.listing.entry_validation import ValidEntries
    from goat_mcp.upstreams.listing.paging import Listed
    from goat_mcp.upstreams.transports.connection import Connection


class ToolCache:
    """Keeps an upstream's last list on show, whatever becomes of its connection."""

    def __init__(
        self,
        config: UpstreamConfig,
        *,
        registry: Registry,
        warm: WarmCatalog,
        telemetry: Telemetry,
        relay: CallRelay,
        gate: PinGate,
    ) -> None:
        self._config = config
        self._registry = registry
        self._warm = warm
        self._telemetry = telemetry
        self._relay = relay
        self._gate = gate
        self._pins = gate.pins
        self._seen: tuple[ReceivedDefinition, ...] | None = None
        self.shown: tuple[AnyTool, ...] = ()
        """What all clients see of it, but those to whom a process of their own lists something else."""
        self._entries: tuple[Mapping[str, Any], ...] = ()
        self._has_unapproved = False
        self._unusable: tuple[RejectedEntry, ...] = ()
        self._stored: StoredCatalog | None = None
        self.rejected: tuple[RejectedEntry, ...] = ()
        self.unwanted: tuple[RejectedEntry, ...] = ()
        self.quarantined: tuple[str, ...] = ()
        self.shortened = 0
        self.escaped = 0
        self._mentions: tuple[str, ...] | None = None
        self.unchecked_outputs: tuple[str, ...] = ()
        self.truncated = ""
        self.ttl_ms = 0
        """How long its list stays fresh, as it said; 0 where it did not, or in an earlier run (CHG-5)."""
        self._listed_at_s: float | None = None
        self.cyclic = ""
        """What of its list had come from us, in words; empty if nothing had."""
        self._paths: Mapping[str, tuple[str, ...]] = {}
        self._is_closed = False

    @property
    def is_known(self) -> bool:
        """Whether nothing need be started for a list. What no pin speaks of must be listed to be approved."""
        return self._seen is not None and not self._has_unapproved

    @property
    def mentions(self) -> tuple[str, ...]:
        """What its texts say of other servers' tools. Looked for when somebody wants to know: only `status` does."""
        if self._mentions is None:
            from goat_mcp.upstreams.listing.suspicious_texts import cross_server_references

            self._mentions = cross_server_references(self._config.server, self._entries)
        return self._mentions

    def unusable_schemas(self) -> list[str]:
        """The tools on show whose `inputSchema` nothing can be checked against, each with the reason."""
        from goat_mcp.upstreams.listing.input_check import why_unusable

        shown = [entry for entry in self._entries if self._config.shows(entry["name"])]
        return [f"{entry['name'][:200]}: {why}" for entry in shown if (why := why_unusable(entry["inputSchema"]))]

    @property
    def seen(self) -> Sequence[ReceivedDefinition]:
        """What it listed last, as it came; nothing if it never did."""
        return self._seen or ()

    @property
    def count(self) -> int:
        return len(self._entries)

    def load_warm(self) -> str | None:
        """Show the tools of the last run. Returns the protocol revision proved then; None if nothing is stored."""
        stored = self._warm.load(self._config.server, self._config.fingerprint)
        if stored is None:
            return None
        self._stored, self._unusable = stored, stored.rejected
        hashes = stored.hashes or ("",) * len(stored.entries)
        plain = stored.plain or _plain(stored.entries)
        self._publish(
            tuple(
                ReceivedDefinition(entry["name"], sha256, entry, is_plain=is_plain)
                for entry, sha256, is_plain in zip(stored.entries, hashes, plain, strict=True)
            )
        )
        self._has_unapproved = len(self.rejected) > len(self._unusable)
        return stored.version

    async def refresh(self, connection: Connection, version: str, timeout_s: float) -> str:
        """List again, pin what is new and show what came. Returns what went wrong; empty if nothing."""
        if self._is_closed:
            return ""
        with self._gate.listing(connection):
            listing = await self._listing(connection, timeout_s)
            return listing if isinstance(listing, str) else await self._show(listing, version)

    async def of_client(self, connection: Connection, timeout_s: float) -> Sequence[ReceivedDefinition] | str:
        """What a connection lists that serves single clients, pinned where it is new; or what went wrong."""
        if self._is_closed:
            return ()
        with self._gate.listing(connection):
            listing = await self._listing(connection, timeout_s)
            if isinstance(listing, str):
                return listing
            seen = (await anyio.to_thread.run_sync(self._taken, listing, "", False))[2]
            self._gate.note_own(connection, {one.name: one.sha256 for one in seen})
            return seen

    async def _listing(self, connection: Connection, timeout_s: float) -> Listed | str:
        try:
            with anyio.fail_after(timeout_s):
                return await connection.list_tools()
        except TimeoutError:
            return f"it did not list its tools within {timeout_s:g} s"
        except (UpstreamError, TransportFault) as error:
            return f"it did not list its tools: {error}"

    async def _show(self, listing: Listed, version: str) -> str:
        # Checking and storing thousands of tools takes a while; calls go on meanwhile.
        usable, rejected, seen = await anyio.to_thread.run_sync(self._taken, listing, version, True)
        self._unusable, self.shortened, self.truncated = rejected, usable.shortened, listing.truncated
        self.escaped, self.unchecked_outputs = usable.escaped, usable.without_output
        self.cyclic = (
            f"{len(listing.cyclic)} of its tools have come from here and are rejected" if listing.cyclic else ""
        )
        self._paths = listing.paths
        self._listed_at_s = time.time()
        self.ttl_ms = listing.ttl_ms or 0
        if self._is_closed:
            return ""
        self._has_unapproved = False
        self._publish(seen)
        return ""

    def _taken(
        self, listing: Listed, version: str, shows: bool
    ) -> tuple[ValidEntries, tuple[RejectedEntry, ...], tuple[ReceivedDefinition, ...]]:
        """What came, checked, pinned and, if it will be shown, stored: what can be used, what cannot, and what is seen.

        For a worker thread.
        """
        from goat_mcp.upstreams.listing.entry_validation import valid_entries

        usable = valid_entries(listing.entries)
        cyclic = (RejectedEntry(name, why, ReasonCode.GATEWAY_CYCLE) for name, why in listing.cyclic)
        rejected = (*usable.rejected, *cyclic)
        if self._is_closed:
            return usable, rejected, ()
        seen = self._settled(usable)
        if shows:
            self._store(seen, version, rejected)
        return usable, rejected, seen

    def why_missing(self, exposed: str) -> ToolError | None:
        """The error for the tool that clients would call `exposed`, if it waits until somebody approves it."""
        config = self._config
        for one in self._seen or ():
            if exposed_name(config.prefix, one.name, server=config.server) == exposed:
                return self._pins.why_rejected("tool", one.name)
        return None

    def repin(self) -> None:
        """Show what the pins allow now: somebody has changed them."""
        if self._seen is not None and self._pins.is_outdated("tool"):
            self._publish(self._seen)

    def close(self) -> None:
        """What it lists from now on is of no interest: its entry has gone, or another one has its place."""
        self._is_closed = True

    def _settled(self, usable: ValidEntries) -> tuple[ReceivedDefinition, ...]:
        """What was listed, pinned where it is new."""
        seen = tuple(
            ReceivedDefinition(entry["name"], definition_hash(original), entry, original, self._risk(entry), is_plain)
            for entry, original, is_plain in zip(usable.entries, usable.originals, _plain(usable.entries), strict=True)
        )
        self._pins.settle("tool", seen, launch_fingerprint(self._config.target))
        return seen

    def path_of(self, name: str) -> tuple[str, ...]:
        """The gateways that the tool of this exposed name came through at the last list; empty where none is known."""
        tool = self._registry.get(name)
        spec = tool.spec if tool is not None else None
        return self._paths.get(spec.native_name, ()) if isinstance(spec, UpstreamSpec) else ()

    def listed_at_s(self) -> float | None:
        """When the list on show was read from the upstream, by this run or an earlier one; None if it never was."""
        if self._listed_at_s is None and self._seen is not None:
            self._listed_at_s = self._warm.stored_at_s(self._config.server, self._config.fingerprint)
        return self._listed_at_s

    def collisions(self) -> tuple[str, ...]:
        """Names of ours that another source keeps, each with the remedy."""
        return tuple(
            str(collision)
            for collision in self._registry.snapshot.collisions
            if collision.source == self._config.source
        )

    def _publish(self, seen: tuple[ReceivedDefinition, ...]) -> None:
        self._seen = seen
        view = self._pins.view("tool", seen, _usable)
        self._entries = tuple(shown.entry for shown in view.shown)
        self.rejected, self.quarantined = (*self._unusable, *view.rejected), view.quarantined
        self._mentions = None
        unwanted = [entry["name"] for entry in self._entries if not self._config.shows(entry["name"])]
        self.unwanted = tuple(
            RejectedEntry(name[:200], "its entry does not want it", ReasonCode.TOOL_DISABLED) for name in unwanted
        )
        if not self._is_closed:
            self.shown = self._tools_of(view)
            self._registry.replace_source(self._config.source, self.shown)

    def tools_of(self, seen: Sequence[ReceivedDefinition]) -> tuple[AnyTool, ...]:
        """What clients may see of a list that is not the one on show."""
        return self._tools_of(self._pins.look("tool", seen, _usable))

    def _tools_of(self, view: View) -> tuple[AnyTool, ...]:
        return tuple(
            upstream_tool(self._config, shown.entry, self._relay, shown.pin, is_plain=shown.is_plain)
            for shown in view.shown
            if self._config.shows(shown.entry["name"])
        )

    def _store(self, seen: tuple[ReceivedDefinition, ...], version: str, rejected: tuple[RejectedEntry, ...]) -> None:
        """What was listed, not what is shown: what is approved before the next start is shown there at once."""
        entries, hashes = tuple(one.entry for one in seen), tuple(one.sha256 for one in seen)
        catalog = StoredCatalog(version, entries, hashes, rejected, tuple(one.is_plain for one in seen))
        if catalog == self._stored or self._pins.lock.only_compares:
            # What was only compared waits nowhere: the next start must see it as new.
            return
        try:
            self._warm.store(self._config.server, self._config.fingerprint, catalog)
            self._stored = catalog
        except OSError as problem:
            self._telemetry.warning("catalog not stored", upstream=self._config.name, problem=str(problem))

    def _risk(self, entry: Mapping[str, Any]) -> str:
        trusted = self._config.trust_annotations
        return assess(
            entry["name"], entry["inputSchema"], entry.get("annotations"), trusted=trusted
        ).effective.name.lower()


def _plain(entries: Iterable[Mapping[str, Any]]) -> tuple[bool, ...]:
    """Of each, whether every host takes it as it is."""
    from goat_mcp.catalog.schemas.portable import needs_nothing  # what is stored makes it needless

    return tuple(map(needs_nothing, entries))


def _usable(definition: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What clients see of a definition that was listed once."""
    from goat_mcp.upstreams.listing.entry_validation import valid_entries

    return next(iter(valid_entries([definition]).entries), None)
