"""When an upstream is tried again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.upstreams.retry_policy import Refusal, RetryLimits, RetryPolicy


def longest(low: float, high: float) -> float:
    return high


# LIF-3
def test_waits_double_until_the_fifth_failure_stops_the_tries_for_thirty_seconds() -> None:
    policy = RetryPolicy(jitter=longest)
    waits: list[tuple[float, bool]] = []
    for _ in range(6):
        policy.failed(100.0)
        waits.append((policy.wait_s(100.0), policy.is_open(100.0)))

    assert waits == [(1.0, False), (2.0, False), (4.0, False), (8.0, False), (30.0, True), (30.0, True)]
    assert (policy.is_open(129.9), policy.is_open(130.0)) == (True, False)


# LIF-3
@given(st.integers(1, 30))
def test_every_wait_is_within_bounds(failures: int) -> None:
    policy = RetryPolicy(RetryLimits(open_after=1000))
    for _ in range(failures):
        policy.failed(0.0)

    assert 0.0 <= policy.wait_s(0.0) <= 60.0


def test_a_success_forgets_all_failures() -> None:
    policy = RetryPolicy()
    for _ in range(5):
        policy.failed(0.0)
    policy.worked()

    assert (policy.is_open(0.0), policy.wait_s(0.0), policy.failures) == (False, 0.0, 0)


# LIF-4
def test_refused_credentials_hold_tries_back_without_counting() -> None:
    policy = RetryPolicy()
    refusal = Refusal("it wants a login", (), "")
    policy.hold(0.0, refusal)
    held = (policy.is_open(0.0), policy.failures, policy.is_open(30.0), policy.refusal)
    policy.let_in()

    assert held == (True, 0, False, refusal)
    assert (policy.is_open(0.0), policy.refusal) == (False, None)
