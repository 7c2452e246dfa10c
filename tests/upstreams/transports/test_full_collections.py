"""Full collections of garbage are put off while a large answer is there, and come again. ISO-1."""

from __future__ import annotations

import gc
from collections.abc import Generator

import anyio
import pytest

from goat_mcp.upstreams.transports.full_collections import FullCollections

pytestmark = pytest.mark.anyio

MAX_WAIT_S = 30.0


@pytest.fixture
def usual() -> Generator[tuple[int, int, int]]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield 700, 10, 10
    gc.set_threshold(*before)


async def had_again(usual: tuple[int, int, int]) -> None:
    with anyio.fail_after(MAX_WAIT_S):
        while gc.get_threshold() != usual:  # noqa: ASYNC110  # the collector tells nobody
            await anyio.sleep(0.005)


async def test_there_is_none_for_a_while_and_smaller_ones_go_on(usual: tuple[int, int, int]) -> None:
    collections = FullCollections(put_off_s=0.05)

    collections.put_off()
    meanwhile = gc.get_threshold()
    collections.put_off()
    await had_again(usual)

    assert meanwhile[:2] == usual[:2]
    assert meanwhile[2] > 1_000_000


async def test_they_are_not_put_off_for_ever_though_large_answers_do_not_end(usual: tuple[int, int, int]) -> None:
    collections = FullCollections(put_off_s=1e6, at_most_s=0.02)

    collections.put_off()
    await had_again(usual)
    collections.put_off()

    assert gc.get_threshold() == usual
