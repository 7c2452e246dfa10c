"""What sessions have changed: found again when it was dropped from memory, and never another process's."""

from __future__ import annotations

from typing import Any

import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.state import session_settings
from goat_mcp.state.session_settings import MemoryConfigStore, SessionSettings

pytestmark = pytest.mark.anyio


def ctx(session_key: str) -> ToolContext:
    return ToolContext(call_id="c", session_key=session_key)


def process(store: MemoryConfigStore) -> SessionSettings:
    return SessionSettings(store, lambda key, value: value, lambda event, **fields: None)


class CountingStore(MemoryConfigStore):
    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    async def read(self, session: str) -> dict[str, Any]:
        self.reads += 1
        return await super().read(session)


async def test_a_session_dropped_from_memory_is_found_again_and_another_process_finds_none_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_settings, "MAX_SESSIONS", 2)
    store = MemoryConfigStore()
    one, other = process(store), process(store)

    for settings in (one, other):
        await settings.of(ctx("stdio"))
    await one.put(ctx("stdio"), "log_level", "debug")
    for settings in (one, other):
        for number in range(3):
            await settings.of(ctx(f"session:{number}"))

    assert await one.of(ctx("stdio")) == {"log_level": "debug"}
    assert await other.of(ctx("stdio")) == {}


async def test_the_store_is_read_once_for_a_session_that_may_come_back_and_never_for_others() -> None:
    store = CountingStore()
    settings = process(store)

    for key in ("stdio", "session:1", "principal:a:client", "principal:a:client"):
        await settings.of(ctx(key))

    assert store.reads == 1


async def test_what_a_call_was_given_does_not_change_under_it() -> None:
    settings = process(MemoryConfigStore())
    await settings.put(ctx("stdio"), "log_level", "debug")

    given = await settings.of(ctx("stdio"))
    await settings.put(ctx("stdio"), "log_level", "info")
    await settings.reset(ctx("stdio"), "log_level")

    assert given == {"log_level": "debug"}
    assert await settings.of(ctx("stdio")) == {}
