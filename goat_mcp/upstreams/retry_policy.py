"""The limits of one upstream's life, and when to try again: exponential back-off with full jitter, and a breaker.

Pure: time comes in as seconds of a monotonic clock. Contract: LIF-3, LIF-4.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RetryLimits:
    """Bounds of one upstream's retries."""

    backoff_min_s: float = 0.5
    backoff_max_s: float = 60.0
    open_after: int = 5
    probe_after_s: float = 30.0


@dataclass(frozen=True)
class SupervisorLimits:
    """Times and counts of one upstream's life."""

    start_timeout_s: float = 30.0
    download_timeout_s: float = 300.0
    """The same for a server whose launcher may have to download it first."""
    connect_wait_s: float = 10.0
    """How long a call waits for a connection; the start itself may take longer."""
    ping_timeout_s: float = 10.0
    list_timeout_s: float = 15.0
    idle_reap_s: float = 600.0
    relist_interval_s: float = 1.0
    relist_after_failure_s: float = 30.0
    stable_after_s: float = 60.0
    retry: RetryLimits = field(default_factory=RetryLimits)


class Refusal:
    """Credentials that were refused: with the same ones there is no use in trying again soon.

    `stored` is what logins there were then. `wanted_scopes` are those of `faults.Fault`.
    """

    def __init__(self, why: str, stored: object, wanted_scopes: str | None) -> None:
        self.why = why
        self.stored = stored
        self.wanted_scopes = wanted_scopes


@dataclass
class RetryPolicy:
    """Counts start and transport failures in a row. Tool errors and refused credentials are none of these."""

    limits: RetryLimits = field(default_factory=RetryLimits)
    jitter: Callable[[float, float], float] = random.uniform
    failures: int = 0
    next_try_s: float = 0.0
    refusal: Refusal | None = None
    """Why it is held back, where it runs but refuses us. Of the whole upstream, whichever connection met it."""
    refused_request: Refusal | None = None
    """What the last request met, over a connection that stands. Nothing is held back for that."""

    def failed(self, now_s: float) -> None:
        """One more failure; sets `next_try_s`."""
        self.refusal = None
        self.failures += 1
        if self.failures >= self.limits.open_after:
            self.next_try_s = now_s + self.limits.probe_after_s
            return
        ceiling = min(self.limits.backoff_max_s, self.limits.backoff_min_s * 2**self.failures)
        self.next_try_s = now_s + self.jitter(0.0, ceiling)

    def hold(self, now_s: float, refusal: Refusal) -> None:
        """Do not try for a while, without counting a failure."""
        self.refusal = refusal
        self.next_try_s = now_s + self.limits.probe_after_s

    def let_in(self) -> None:
        """It takes our credentials."""
        self.refusal = self.refused_request = None

    def worked(self) -> None:
        self.refusal = None
        self.failures = 0
        self.next_try_s = 0.0

    def is_open(self, now_s: float) -> bool:
        """Whether calls fail at once: the breaker is open and it is not yet time for a probe."""
        return (self.refusal is not None or self.failures >= self.limits.open_after) and now_s < self.next_try_s

    def wait_s(self, now_s: float) -> float:
        return max(0.0, self.next_try_s - now_s)


def retry_policies(limits: RetryLimits, *, is_shared: bool) -> Callable[[], RetryPolicy]:
    """Gives the policy of each connection: one for all, or one for each, where a refusal says nothing of the others."""
    shared = RetryPolicy(limits)
    return lambda: shared if is_shared else RetryPolicy(limits)
