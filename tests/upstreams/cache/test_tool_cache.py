"""What a start makes of the catalog of an earlier run: what that has found out is believed as far as it still holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.catalog.catalog import Catalog
from goat_mcp.catalog.registry import Registry, Snapshot
from goat_mcp.catalog.schemas import dialects, portable
from goat_mcp.catalog.schemas.dialects import DialectName
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.cache import warm_catalog
from goat_mcp.upstreams.cache.tool_cache import ToolCache
from goat_mcp.upstreams.cache.warm_catalog import StoredCatalog, WarmCatalog
from goat_mcp.upstreams.config.entry import StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.listing.paging import Listed
from goat_mcp.upstreams.pinning.pin_gate import PinGate
from goat_mcp.upstreams.pinning.pin_lock import PinLock, PinnedDefinitions
from goat_mcp.upstreams.pinning.pins import UpstreamPins
from goat_mcp.upstreams.upstreams import Upstreams

pytestmark = pytest.mark.anyio

CONFIG = UpstreamConfig(name="s", server="s", target=StdioLaunch("s"))
TYPED: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
CHOICE: dict[str, Any] = {
    "type": "object",
    "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    "properties": {"a": {}, "b": {}},
}
MENDED: dict[str, Any] = {"type": "object", "properties": {"a": {}, "b": {}}}
"""`CHOICE` as model APIs take it."""
OPEN: dict[str, Any] = {"type": "object"}


def tool(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "description": "Does it.", "inputSchema": schema}


class _Lists:
    """A connection that lists these."""

    def __init__(self, *entries: dict[str, Any]) -> None:
        self.tools_changed = anyio.Event()
        self._entries = entries

    async def list_tools(self) -> Listed:
        return Listed(list(self._entries))


class _NoRelay:
    def admit(self, spec: Any) -> None:
        """Every call is let through."""

    async def call(self, spec: Any, arguments: Any, ctx: Any) -> Any:
        raise AssertionError("nothing is called here")


class Run:
    """One process over a state directory."""

    def __init__(self, folder: Path, config: UpstreamConfig = CONFIG) -> None:
        state = StateDirectory(folder)
        self.config = config
        self.registry = Registry()
        self.warm = WarmCatalog(state)
        pins = UpstreamPins(config, PinLock(state), PinnedDefinitions(state), Telemetry("error"))
        self.shelf = ToolCache(
            config,
            registry=self.registry,
            warm=self.warm,
            telemetry=Telemetry("error"),
            relay=_NoRelay(),
            gate=PinGate(pins),
        )

    async def lists(self, *entries: dict[str, Any]) -> None:
        connection: Any = _Lists(*entries)
        assert await self.shelf.refresh(connection, "2025-11-25", 10) == ""

    def stored(self) -> StoredCatalog:
        found = self.warm.load(self.config.server, self.config.fingerprint)
        assert found is not None
        return found

    def schemas(self, dialect: DialectName = "plain") -> dict[str, Any]:
        """What clients see, by the upstream's own names."""
        listing = Catalog(self.registry, dialect=dialect).listing()
        return {entry["name"].removeprefix("mcp__s__"): entry["inputSchema"] for entry in listing}


def as_next_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_catalog, "RULES_VERSION", dialects.RULES_VERSION + 1)


async def test_a_warm_start_looks_into_no_schema_that_needs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Run(tmp_path).lists(tool("typed", TYPED), tool("choice", CHOICE))
    looked_into: list[str] = []
    real = portable.portable

    def noting(entry: Any, dialect: Any) -> Any:
        looked_into.append(entry["name"])
        return real(entry, dialect)

    monkeypatch.setattr(portable, "portable", noting)
    again = Run(tmp_path)
    again.shelf.load_warm()

    assert again.schemas() == {"typed": TYPED, "choice": MENDED}
    assert looked_into == ["mcp__s__choice"]


async def test_what_a_start_lists_from_disk_is_what_the_run_before_listed(tmp_path: Path) -> None:
    before = Run(tmp_path)
    await before.lists(tool("typed", TYPED), tool("choice", CHOICE), tool("open", OPEN))
    again = Run(tmp_path)

    again.shelf.load_warm()

    assert list(again.registry.snapshot.tools) == list(before.registry.snapshot.tools)
    assert Catalog(again.registry).listing() == Catalog(before.registry).listing()
    # So that clients are not told of a change where there is none.
    assert all(
        again.registry.snapshot.tools[name].spec == one.spec for name, one in before.registry.snapshot.tools.items()
    )


async def test_what_other_rules_have_found_out_counts_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path)
    # By the rules of that version every host takes a choice at the root.
    with monkeypatch.context() as other_version:
        as_next_version(other_version)
        run.warm.store(
            CONFIG.server,
            CONFIG.fingerprint,
            StoredCatalog("2025-11-25", (tool("choice", CHOICE),), plain=(True,)),
        )

    run.shelf.load_warm()

    assert run.schemas() == {"choice": MENDED}


async def test_a_catalog_stored_before_this_was_noted_lists_the_same_and_is_amended_with_the_next_list(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    entries = (tool("typed", TYPED), tool("choice", CHOICE))
    await run.lists(*entries)
    whole = run.stored()
    old = StoredCatalog(whole.version, whole.entries, whole.hashes, whole.rejected)
    run.warm.store(CONFIG.server, CONFIG.fingerprint, old)
    again = Run(tmp_path)

    again.shelf.load_warm()

    assert again.schemas() == {"typed": TYPED, "choice": MENDED}
    await again.lists(*entries)
    assert again.stored().plain == (True, False)


async def test_a_definition_that_changes_takes_what_was_known_of_it_along(tmp_path: Path) -> None:
    off = UpstreamConfig(name="s", server="s", target=StdioLaunch("s"), pin="off")
    await Run(tmp_path, off).lists(tool("t", TYPED))
    changed = Run(tmp_path, off)
    changed.shelf.load_warm()

    await changed.lists(tool("t", CHOICE))

    assert changed.schemas() == {"t": MENDED}
    assert changed.stored().plain == (False,)
    last = Run(tmp_path, off)
    last.shelf.load_warm()
    assert last.schemas() == {"t": MENDED}


async def test_a_pinned_definition_is_not_judged_by_the_one_that_took_its_place(tmp_path: Path) -> None:
    # PIN-1: what is listed is the pinned one, which has to be repaired; the new one would not have to be.
    await Run(tmp_path).lists(tool("t", CHOICE))
    await Run(tmp_path).lists(tool("t", TYPED))
    again = Run(tmp_path)

    again.shelf.load_warm()

    assert again.stored().plain == (True,)
    assert again.shelf.quarantined == ("t",)
    assert again.schemas() == {"t": MENDED}


@pytest.mark.parametrize(
    ("dialect", "listed"),
    [("mcp", OPEN), ("openai", {**OPEN, "properties": {}}), ("gemini", OPEN)],
)
async def test_another_dialect_is_served_by_its_own_rules(
    tmp_path: Path, dialect: DialectName, listed: dict[str, Any]
) -> None:
    await Run(tmp_path).lists(tool("open", OPEN))
    again = Run(tmp_path)

    again.shelf.load_warm()

    assert again.stored().plain == (True,)
    assert again.schemas(dialect) == {"open": listed}


async def test_of_two_processes_that_store_another_list_each_one_is_there_whole(tmp_path: Path) -> None:
    first, second = Run(tmp_path), Run(tmp_path)

    await first.lists(tool("typed", TYPED), tool("choice", CHOICE))
    await second.lists(tool("choice", CHOICE), tool("typed", TYPED))

    assert second.stored().plain == (False, True)
    await first.lists(tool("typed", TYPED))
    assert [entry["name"] for entry in first.stored().entries] == ["typed"]
    assert first.stored().plain == (True,)


async def test_all_stored_catalogs_become_visible_in_one_step(tmp_path: Path) -> None:
    configs = [UpstreamConfig(name=f"s{n}", server=f"s{n}", target=StdioLaunch(f"s{n}")) for n in range(5)]
    for config in configs:
        await Run(tmp_path, config).lists(tool("t", TYPED))
    registry = Registry()
    seen: list[Snapshot] = []
    registry.on_change(seen.append)
    upstreams = Upstreams(configs, registry=registry, state=StateDirectory(tmp_path), telemetry=Telemetry("error"))

    upstreams.load_warm_catalogs()

    assert [list(snapshot.tools) for snapshot in seen] == [[f"mcp__s{n}__t" for n in range(5)]]
