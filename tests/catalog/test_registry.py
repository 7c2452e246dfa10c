"""The registry: names, order, collisions, and snapshots that readers can keep."""

from __future__ import annotations

import pytest

from goat_mcp.catalog.registry import Collision, NameTaken, Registry
from tests.tool_doubles import fake


def names(registry: Registry) -> list[str]:
    return list(registry.names())


def test_tools_are_listed_in_the_order_they_were_registered() -> None:
    registry = Registry()

    for name in ("Read", "Bash", "Edit"):
        registry.register(fake(name))

    assert names(registry) == ["Read", "Bash", "Edit"]


def test_a_name_is_replaced_only_when_asked_for_in_words() -> None:
    registry = Registry()
    first, second = fake("Read"), fake("Read")
    registry.register(first)

    with pytest.raises(NameTaken, match="Read is already registered by builtin"):
        registry.register(second)
    assert registry.get("Read") is first

    registry.register(second, replace=True)
    assert registry.get("Read") is second


def test_a_snapshot_does_not_change_when_the_registry_does() -> None:
    registry = Registry()
    registry.register(fake("Read"))
    before = registry.snapshot

    registry.register(fake("Bash"))

    assert list(before.tools) == ["Read"]
    assert registry.snapshot.generation == before.generation + 1


def test_a_sources_tools_are_swapped_in_one_step() -> None:
    registry = Registry()
    seen: list[list[str]] = []
    registry.replace_source("up", [fake("a"), fake("b")])
    registry.on_change(lambda snapshot: seen.append(list(snapshot.tools)))

    registry.replace_source("up", [fake("b"), fake("c")])

    assert seen == [["b", "c"]]


def test_the_same_tools_again_are_no_change() -> None:
    registry = Registry()
    tools = [fake("a"), fake("b")]
    registry.replace_source("up", tools)
    generation = registry.snapshot.generation

    assert registry.replace_source("up", tools) is False
    assert registry.snapshot.generation == generation


# AGG-5
def test_sources_keep_their_declared_order_whoever_comes_first() -> None:
    registry = Registry()
    registry.declare("builtin", "up:a", "up:b")

    registry.replace_source("up:b", [fake("b1")])
    registry.replace_source("up:a", [fake("a1")])
    registry.register(fake("Read"))

    assert names(registry) == ["Read", "a1", "b1"]


# COL-1
def test_on_a_clash_the_first_keeps_the_name_and_the_later_one_is_reported() -> None:
    registry = Registry()
    builtin = fake("Bash")
    registry.register(builtin)

    registry.replace_source("up", [fake("Bash"), fake("other")])

    assert registry.get("Bash") is builtin
    assert names(registry) == ["Bash", "other"]
    assert registry.snapshot.collisions == (Collision("Bash", "up", "builtin"),)


@pytest.mark.parametrize("name", ["bash", "BASH", "bAsh"])
def test_names_of_two_sources_that_differ_in_case_only_are_one_name(name: str) -> None:
    # R-UP-5
    registry = Registry()
    registry.register(fake("Bash"))

    registry.replace_source("up", [fake(name), fake("other")])

    assert names(registry) == ["Bash", "other"]
    assert registry.snapshot.collisions == (Collision(name, "up", "builtin", "Bash"),)
    assert str(registry.snapshot.collisions[0]).startswith("Bash is kept by builtin; give up another `naming`")


def test_a_name_is_free_for_another_spelling_of_it_after_its_source_has_gone() -> None:
    registry = Registry()
    registry.replace_source("up:a", [fake("Search")])
    registry.replace_source("up:b", [fake("search")])

    with registry.rearranged(["up:a"], ["up:b"]):
        pass

    assert names(registry) == ["search"]
    assert registry.snapshot.collisions == ()


def test_a_source_that_lists_a_name_twice_keeps_the_first() -> None:
    registry = Registry()
    first = fake("x")

    registry.replace_source("up", [first, fake("x")])

    assert registry.get("x") is first
    assert registry.snapshot.collisions == (Collision("x", "up", "up"),)


# COL-2
def test_a_live_name_never_moves_to_a_source_that_comes_later_in_time() -> None:
    registry = Registry()
    registry.declare("up:a", "up:b")
    owner = fake("search")
    registry.replace_source("up:b", [owner])

    registry.replace_source("up:a", [fake("search")])

    assert registry.get("search") is owner


def test_tools_go_by_prefix() -> None:
    registry = Registry()
    registry.register(fake("Read"))
    registry.replace_source("up", [fake("mcp__gh__a"), fake("mcp__gh__b"), fake("mcp__git__a")])

    assert registry.unregister_prefix("mcp__gh__") == 2
    assert names(registry) == ["Read", "mcp__git__a"]


def test_registries_merge_and_a_shared_name_needs_words() -> None:
    one, two = Registry(), Registry()
    one.register(fake("a"))
    two.register(fake("b"))
    one.merge(two)
    assert names(one) == ["a", "b"]

    with pytest.raises(NameTaken):
        one.merge(two)
    one.merge(two, replace=True)
