"""The registry under threads: changes take turns, and a reader always sees one whole state without waiting."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from goat_mcp.calls.extensions.installed import ExtensionTools
from goat_mcp.catalog.catalog import Catalog
from goat_mcp.catalog.registry import NameTaken, Registry, Snapshot
from tests.tool_doubles import FakeTool, fake

THREADS = 8
EACH = 40
BOUND_S = 60


class _Yielding(FakeTool):
    """Lets another thread run whenever the registry looks at it, also in the middle of a change."""

    def __getattribute__(self, name: str) -> Any:
        if name == "spec":
            time.sleep(0)
        return super().__getattribute__(name)

    def __eq__(self, other: object) -> bool:
        time.sleep(0)
        return self is other


@pytest.fixture(autouse=True)
def tiny_switch_interval() -> Generator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work: Callable[[int], Any]) -> list[Any]:
    """What `work(number)` returns in each of the threads, which begin at the same moment."""
    together = threading.Barrier(THREADS)

    def begin(number: int) -> Any:
        together.wait(BOUND_S)
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS), timeout=BOUND_S))


def yielding(name: str) -> _Yielding:
    return _Yielding(fake(name).spec)


def test_tools_of_all_threads_are_there_and_each_change_is_a_generation_of_its_own() -> None:
    registry = Registry()
    generations: list[int] = []
    registry.on_change(lambda snapshot: generations.append(snapshot.generation))

    def register(number: int) -> None:
        for at in range(EACH):
            registry.register(yielding(f"t{number}_{at}"))

    in_threads(register)

    assert sorted(registry.names()) == sorted(f"t{number}_{at}" for number in range(THREADS) for at in range(EACH))
    assert generations == list(range(1, THREADS * EACH + 1))


def test_of_all_threads_that_want_a_name_one_gets_it() -> None:
    registry = Registry()
    next_name = threading.Barrier(THREADS)

    def register(number: int) -> list[int]:
        won: list[int] = []
        for at in range(EACH):
            next_name.wait(BOUND_S)
            try:
                registry.register(yielding(f"wanted_{at}"), source=f"source_{number}")
            except NameTaken:
                continue
            except RuntimeError:
                next_name.abort()
                raise
            won.append(at)
        return won

    won = [at for each in in_threads(register) for at in each]

    assert sorted(won) == list(range(EACH))
    assert registry.snapshot.collisions == ()


def test_a_reader_sees_whole_states_in_order_while_threads_register_and_take_away() -> None:
    registry = Registry()
    done = threading.Event()

    def change(number: int) -> None:
        for at in range(EACH):
            registry.register(yielding(f"mcp__s{number}__{at}"))
            registry.replace_source(f"pair_{number}", [yielding(f"p{number}_{at}_{half}") for half in "ab"])
            if at % 10 == 9:
                assert registry.unregister_prefix(f"mcp__s{number}__") == 10

    def read() -> list[Snapshot]:
        seen: list[Snapshot] = []
        while not done.is_set():
            seen.append(registry.snapshot)
        return seen

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(read)
        try:
            in_threads(change)
        finally:
            done.set()
        seen = reader.result(BOUND_S)

    numbers = [snapshot.generation for snapshot in seen]
    assert numbers == sorted(numbers)
    for snapshot in {snapshot.generation: snapshot for snapshot in seen}.values():
        assert list(snapshot.tools) == list(snapshot.source_of)
        assert all(f"{name[:-1]}b" in snapshot.tools for name in snapshot.tools if name.endswith("_a"))
    assert sorted(registry.names()) == sorted(
        f"p{number}_{EACH - 1}_{half}" for number in range(THREADS) for half in "ab"
    )


def test_an_extension_adds_and_removes_tools_on_any_thread() -> None:
    registry = Registry()
    tools = ExtensionTools("late", registry, lambda: None)

    def add(number: int) -> list[bool]:
        removed: list[bool] = []
        for at in range(EACH):
            tools.register(yielding(f"e{number}_{at}"))
            if at % 2:
                removed.append(tools.remove(f"e{number}_{at}"))
        return removed

    removed = in_threads(add)

    assert removed == [[True] * (EACH // 2)] * THREADS
    assert len(registry.names()) == THREADS * EACH // 2


def test_a_reader_does_not_wait_for_a_change_that_is_under_way() -> None:
    registry = Registry()
    registry.register(fake("Read"))
    under_way, read = threading.Event(), threading.Event()

    def listener(snapshot: Snapshot) -> None:
        under_way.set()
        assert read.wait(BOUND_S)

    registry.on_change(listener)
    with ThreadPoolExecutor(1) as pool:
        changing = pool.submit(registry.register, fake("Bash"))
        assert under_way.wait(BOUND_S)
        seen = (list(registry.names()), registry.get("Read") is not None, registry.snapshot.generation)
        read.set()
        changing.result(BOUND_S)

    assert seen == (["Read", "Bash"], True, 2)


def test_a_catalog_takes_up_what_another_thread_registers_while_it_looks() -> None:
    class Overtaken(Registry):
        """Another thread registers `Late` just after the first look at the registry."""

        armed = False

        @property
        def snapshot(self) -> Snapshot:
            found = super().snapshot
            if self.armed:
                self.armed = False
                self.register(fake("Late"))
            return found

    registry = Overtaken()
    registry.register(fake("Read"))
    catalog = Catalog(registry)
    registry.armed = True

    def listed() -> list[str]:
        return [tool.spec.name for tool in catalog.tools()]

    assert (listed(), listed()) == (["Read"], ["Read", "Late"])
