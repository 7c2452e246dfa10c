"""Who may hold how many sessions or connections, and which one is closed for another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.server.http.principal_limits import FairShares, Holding, NoRoom


def held(shares: FairShares, principal: str, count: int, *, in_use: bool = False) -> list[Holding]:
    holdings = [Holding(principal) for _ in range(count)]
    for number, holding in enumerate(holdings):
        assert shares.add(holding) is None
        holding.requests = int(in_use)
        holding.used_at_s = number
    return holdings


def test_one_principal_alone_may_hold_all() -> None:
    shares = FairShares(10)

    first = held(shares, "a", 10)[0]

    assert shares.add(Holding("a")) is first


def test_the_idlest_of_the_largest_holder_goes_first() -> None:
    shares = FairShares(10)
    large, small = held(shares, "large", 7), held(shares, "small", 3)
    large[0].begin()
    large[1].used_at_s = 99

    victims = [shares.add(Holding("new")) for _ in range(3)]

    assert victims == [large[2], large[3], large[4]]
    assert not set(victims) & set(small)


def test_what_is_in_use_goes_last_and_only_for_who_holds_fewer() -> None:
    shares = FairShares(4)
    large = held(shares, "large", 4, in_use=True)

    with pytest.raises(NoRoom):
        shares.add(Holding("large"))

    assert [shares.add(Holding("small")), shares.add(Holding("small"))] == large[:2]


def test_who_holds_as_many_as_the_largest_gives_up_an_own_one() -> None:
    shares = FairShares(4)
    held(shares, "a", 2)
    own = held(shares, "b", 2)

    assert shares.add(Holding("b")) is own[0]


def test_a_reserve_is_kept_for_others_so_that_nothing_of_anybody_is_closed() -> None:
    shares = FairShares(8, reserve=2)
    large = held(shares, "large", 6, in_use=True)

    with pytest.raises(NoRoom):
        shares.add(Holding("large"))
    large[3].end()

    assert shares.add(Holding("large")) is large[3]
    assert [shares.add(Holding("small")) for _ in range(2)] == [None, None]


@given(
    capacity=st.integers(1, 12),
    reserve=st.integers(0, 6),
    steps=st.lists(st.tuples(st.sampled_from("abcd"), st.booleans(), st.booleans()), max_size=60),
)
def test_nobody_is_shut_out(capacity: int, reserve: int, steps: list[tuple[str, bool, bool]]) -> None:
    """Whoever holds less than an equal share gets in, whatever the others do; there are never more than may be."""
    shares = FairShares(capacity, min(reserve, capacity - 1))
    mine: dict[str, list[Holding]] = {principal: [] for principal in "abcd"}
    for principal, in_use, leaves in steps:
        if leaves and mine[principal]:
            shares.remove(mine[principal].pop())
            continue
        new = Holding(principal, requests=int(in_use))
        before = {name: len(holdings) for name, holdings in mine.items()}
        try:
            victim = shares.add(new)
        except NoRoom:
            assert before[principal] == max(before.values())
            continue
        mine[principal].append(new)
        if victim is not None:
            mine[victim.principal].remove(victim)
            assert before[victim.principal] == max(before.values())
            assert victim.principal == principal or before[principal] < before[victim.principal]
        assert sum(len(holdings) for holdings in mine.values()) <= capacity
