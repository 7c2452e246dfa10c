"""Side by side: the candidates take turns, so that a noisy moment hits all of them, and medians are compared."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from statistics import median

Samples = dict[str, list[float]]


def interleaved(candidates: Mapping[str, Callable[[], float]], rounds: int, on_round: Callable[[int], None]) -> Samples:
    """Call every candidate once per round, in alternating order. Each gives its own figure."""
    samples: Samples = {name: [] for name in candidates}
    for number in range(rounds):
        on_round(number)
        for name in _order(list(candidates), number):
            samples[name].append(candidates[name]())
    return samples


async def interleaved_bursts_ms(
    calls: Mapping[str, Callable[[], Awaitable[object]]], *, bursts: int, size: int, on_burst: Callable[[int], None]
) -> Samples:
    """Time single calls in ms, `size` in a row per candidate and burst. The first calls are warm-up and not counted.

    Small bursts: a noisy second should hit all candidates alike.
    """
    samples: Samples = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(5):
            await call()
    for number in range(bursts):
        on_burst(number)
        for name in _order(list(calls), number):
            call = calls[name]
            for _ in range(size):
                started = time.perf_counter()
                await call()
                samples[name].append((time.perf_counter() - started) * 1000)
    return samples


def timed_ms(action: Callable[[], object]) -> Callable[[], float]:
    """The same action, giving the milliseconds it took."""

    def run() -> float:
        started = time.perf_counter()
        action()
        return (time.perf_counter() - started) * 1000

    return run


def medians(samples: Samples) -> dict[str, float]:
    return {name: median(figures) for name, figures in samples.items()}


def _order(names: list[str], number: int) -> list[str]:
    return names if number % 2 == 0 else names[::-1]
