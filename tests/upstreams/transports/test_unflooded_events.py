"""Of a stream of events only notices beyond the limits are dropped, however it is cut into chunks."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Sequence

import httpx2
import pytest

from goat_mcp.upstreams.transports.http_transport import UnfloodedEvents
from goat_mcp.upstreams.transports.notifications import LOGS, READ_AT_ONCE, NotificationLimits

pytestmark = pytest.mark.anyio

LOG = json.dumps({"jsonrpc": "2.0", "method": LOGS, "params": {"level": "info", "data": "x"}}).encode()
CHANGED = json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}).encode()
ANSWER = json.dumps({"jsonrpc": "2.0", "id": 7, "result": {"content": []}}).encode()
OTHERS = [
    b"data: " + ANSWER + b"\n\n",
    b"event: message\nid: 3\ndata: " + ANSWER + b"\n\n",
    b"event: message\r\ndata: " + ANSWER + b"\r\n\r\n",
    b"data:" + CHANGED + b"\n\n",
    b": a comment\n\n",
    b"id: 5\nretry: 9\ndata: \n\n",
    b"event: other\ndata: " + LOG + b"\n\n",
    b"data: " + LOG[:20] + b"\ndata: " + LOG[20:] + b"\n\n",
    b"data: " + LOG + b" x\n\n",
    b"data: " + LOG + b"\ndata: \n\n",
    b"data: " + LOG[:-1] + b', "id": 1}\n\n',
    b"data: " + json.dumps({"jsonrpc": "2.0", "id": 8, "result": {"text": "y" * 200_000}}).encode() + b"\n\n",
    b"\n",
]
NOTICES = [b"data: " + LOG + b"\n\n", b"event: message\nid: 4\ndata: " + LOG + b"\n\n", b"data:" + LOG + b"\r\n\r\n"]


class Chunks(httpx2.AsyncByteStream):
    def __init__(self, chunks: Sequence[bytes]) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk


async def passed(chunks: Sequence[bytes], limits: NotificationLimits) -> bytes:
    return b"".join([chunk async for chunk in UnfloodedEvents(Chunks(chunks), limits)])


def used_up() -> NotificationLimits:
    limits = NotificationLimits(clock=lambda: 0.0)
    while limits.admits(LOG):
        pass
    limits.dropped = 0
    return limits


@pytest.mark.parametrize("seed", range(30))
async def test_f13_29_event_flood_other_events_pass_as_they_came(seed: int) -> None:
    chance = random.Random(seed)
    events = [chance.choice(OTHERS) if chance.random() < 0.5 else chance.choice(NOTICES) for _ in range(60)]
    stream = b"".join(events)
    cuts = sorted(chance.randrange(len(stream)) for _ in range(chance.randrange(40)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    limits = used_up()

    left = await passed(chunks, limits)

    kept = [event for event in events if event not in NOTICES]
    assert left == b"".join(kept)
    assert limits.dropped == len(events) - len(kept)


async def test_below_the_limits_everything_passes() -> None:
    stream = b"".join([*OTHERS, *NOTICES] * 5)

    assert await passed([stream], NotificationLimits()) == stream


async def test_f13_29_event_flood_the_first_pass_and_the_rest_is_counted() -> None:
    count = 3 * int(READ_AT_ONCE)
    limits = NotificationLimits()

    left = await passed([NOTICES[0]] * count, limits)

    assert READ_AT_ONCE <= left.count(LOG) < 2 * READ_AT_ONCE
    assert left.count(LOG) + limits.dropped == count


async def test_an_event_passes_as_soon_as_it_is_whole() -> None:
    stream = UnfloodedEvents(Chunks([OTHERS[0][:9], OTHERS[0][9:], b"data: "]), NotificationLimits())

    assert await anext(aiter(stream)) == OTHERS[0]


async def test_events_that_end_with_carriage_returns_are_not_held_back() -> None:
    stream = UnfloodedEvents(Chunks([b"data: " + ANSWER + b"\r\r", b"data: "]), NotificationLimits())

    assert await anext(aiter(stream)) == b"data: " + ANSWER + b"\r\r"
