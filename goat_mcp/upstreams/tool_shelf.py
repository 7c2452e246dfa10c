"""What one upstream offers: listed, checked, stored for the next start, and swapped in the registry in one step.

Contract: CHG-1, LIF-2, ISO-4. When to list is the supervisor's business.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import anyio

from goat_mcp.core.errors import UpstreamError
from goat_mcp.registry import Registry
from goat_mcp.telemetry import Telemetry
from goat_mcp.upstreams.entry import UpstreamConfig
from goat_mcp.upstreams.faults import LinkFault
from goat_mcp.upstreams.live_connection import LiveConnection
from goat_mcp.upstreams.mentions import mentions_of_others
from goat_mcp.upstreams.proxy_tool import CallRelay, upstream_tool
from goat_mcp.upstreams.reason_code import ReasonCode
from goat_mcp.upstreams.warm_catalog import StoredCatalog, WarmCatalog
from goat_mcp.upstreams.withheld import Withheld


class ToolShelf:
    """Keeps an upstream's last list on show, whatever becomes of its connection."""

    def __init__(
        self,
        config: UpstreamConfig,
        *,
        registry: Registry,
        warm: WarmCatalog,
        telemetry: Telemetry,
        relay: CallRelay,
    ) -> None:
        self._config = config
        self._registry = registry
        self._warm = warm
        self._telemetry = telemetry
        self._relay = relay
        self._entries: tuple[Mapping[str, Any], ...] | None = None
        self._stored_version = ""
        self.withheld: tuple[Withheld, ...] = ()
        self.unwanted: tuple[Withheld, ...] = ()
        self.shortened = 0
        self.escaped = 0
        self.mentions: tuple[str, ...] = ()
        self.unchecked_outputs: tuple[str, ...] = ()
        self.truncated = ""
        self._listed_at_s: float | None = None

    @property
    def is_known(self) -> bool:
        return self._entries is not None

    @property
    def count(self) -> int:
        return len(self._entries or ())

    def load_warm(self) -> str | None:
        """Show the tools of the last run. Returns the protocol revision proved then; None if nothing is stored."""
        stored = self._warm.load(self._config.server, self._config.fingerprint)
        if stored is None:
            return None
        self._stored_version = stored.version
        self._publish(stored.entries)
        return stored.version

    async def refresh(self, connection: LiveConnection, version: str, timeout_s: float) -> str:
        """List again and show what came. Returns what went wrong, in words; empty if nothing did."""
        from goat_mcp.upstreams.listed_entries import usable_entries

        try:
            with anyio.fail_after(timeout_s):
                listing = await connection.list_tools()
        except TimeoutError:
            return f"it did not list its tools within {timeout_s:g} s"
        except (UpstreamError, LinkFault) as error:
            return f"it did not list its tools: {error}"
        # Checking thousands of schemas takes a while; calls go on meanwhile.
        usable = await anyio.to_thread.run_sync(usable_entries, listing.entries)
        self.withheld, self.shortened, self.truncated = usable.withheld, usable.shortened, listing.truncated
        self.escaped, self.unchecked_outputs = usable.escaped, usable.without_output
        self._listed_at_s = time.time()
        self._store(usable.entries, version)
        self._publish(usable.entries)
        return ""

    def listed_at_s(self) -> float | None:
        """When the list on show was read from the upstream, by this run or an earlier one; None if it never was."""
        if self._listed_at_s is None and self._entries is not None:
            self._listed_at_s = self._warm.stored_at_s(self._config.server, self._config.fingerprint)
        return self._listed_at_s

    def collisions(self) -> tuple[str, ...]:
        """Names of ours that another source keeps, each with the remedy."""
        return tuple(
            str(collision)
            for collision in self._registry.snapshot.collisions
            if collision.source == self._config.source
        )

    def _publish(self, entries: Sequence[Mapping[str, Any]]) -> None:
        self._entries = tuple(entries)
        self.mentions = mentions_of_others(self._config.server, self._entries)
        unwanted = [entry["name"] for entry in self._entries if not self._config.shows(entry["name"])]
        self.unwanted = tuple(
            Withheld(name[:200], "its entry does not want it", ReasonCode.TOOL_DISABLED) for name in unwanted
        )
        wanted = [entry for entry in self._entries if self._config.shows(entry["name"])]
        tools = [upstream_tool(self._config, entry, self._relay) for entry in wanted]
        self._registry.replace_source(self._config.source, tools)

    def _store(self, entries: tuple[Mapping[str, Any], ...], version: str) -> None:
        if entries == self._entries and version == self._stored_version:
            return
        try:
            self._warm.store(self._config.server, self._config.fingerprint, StoredCatalog(version, entries))
            self._stored_version = version
        except OSError as problem:
            self._telemetry.warning("catalog not stored", upstream=self._config.name, problem=str(problem))
