"""Replicas are replaced one after the other under load: no wrong answer, and nothing twice."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from mcp import MCPError
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.repetitions import is_full
from tests.server.replicas.balancer import balancer
from tests.server.replicas.cluster import ENDPOINT, KEY, cluster, headers, wait_until
from tests.server.replicas.test_lost_replicas import NEXT_KEY

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.full,  # leaving, and both keys side by side: `test_lost_replicas`
    pytest.mark.real_processes,
    pytest.mark.posix_only("signals end the replicas"),
]
CLIENTS = 50 if is_full() else 6
STATUSES_TO_RETRY = {404, 503}


class Load:
    """Clients of both eras, which call until they are told to stop. Each call has a name of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.is_over = False
        self.answered: list[str] = []
        self.unanswered: Counter[str] = Counter()
        """Calls that got an error, by its kind."""
        self.statuses = Counter[int]()
        self.wrong: list[str] = []

    async def client(self, number: int) -> None:
        era = "legacy" if number % 2 else "2026-07-28"
        count = 0
        while not self.is_over:
            try:
                async with self.connected(era) as client:
                    while not self.is_over:
                        count += 1
                        await self.call(client, f"{number}-{count}")
            except* (MCPError, httpx2.HTTPError, OSError) as problems:
                self.unanswered[_kind(problems)] += 1

    @asynccontextmanager
    async def connected(self, era: str) -> AsyncGenerator[Client]:
        """Each request takes a connection of its own, so that the balancer has to choose for each."""
        limits = httpx2.Limits(max_keepalive_connections=0)
        hooks = {"response": [self.refused]}
        async with (
            httpx2.AsyncClient(headers=headers(), timeout=30, limits=limits, event_hooks=hooks) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=era) as client,
        ):
            yield client

    async def refused(self, response: httpx2.Response) -> None:
        if response.status_code >= 400:
            self.statuses[response.status_code] += 1

    async def call(self, client: Client, name: str) -> None:
        result = await client.call_tool(f"{ENDPOINT}pay", {"name": name})
        text: Any = result.content[0]
        if result.is_error:
            self.wrong.append(text.text)
        elif text.text != f"{name}: paid":
            self.wrong.append(f"{name} got {text.text}")
        else:
            self.answered.append(name)


def _kind(problem: BaseException) -> str:
    if isinstance(problem, BaseExceptionGroup):
        return _kind(cast("BaseExceptionGroup[Any]", problem).exceptions[0])
    return f"{type(problem).__name__}: {problem}"


async def _all(load: Load) -> None:
    await asyncio.gather(*(load.client(number) for number in range(CLIENTS)))


def test_a_rolling_restart_with_a_new_key_under_load_answers_nothing_wrong(tmp_path: Path) -> None:
    with balancer() as front, cluster(tmp_path, front.url.split("/")[2]) as made:
        keys: list[dict[str, Any]] = [
            {"state__key": KEY},
            {"state__key": KEY, "state__previous_key": NEXT_KEY},
            {"state__key": NEXT_KEY, "state__previous_key": KEY},
        ]
        running = {name: made.start(name, **keys[0]) for name in ("a", "b")}
        front.backends = [one.address for one in running.values()]
        wait_until(lambda: all(one.probe()[0] == 200 for one in running.values()), "both are ready")
        load = Load(front.url)

        def replace(name: str, key: dict[str, Any]) -> None:
            before = running.pop(name)
            before.process.terminate()
            before.process.wait(40)
            front.backends = [one.address for one in running.values()]
            after = running[name] = made.start(name, **key)
            wait_until(lambda: after.probe()[0] == 200, "it is ready")
            front.backends = [one.address for one in running.values()]

        async def restart() -> None:
            loading = asyncio.create_task(_all(load))
            for key in keys[1:]:
                for name in ("a", "b"):
                    await asyncio.sleep(1)
                    await asyncio.to_thread(replace, name, key)
            answered = len(load.answered)
            while len(load.answered) < answered + 5 * CLIENTS:  # noqa: ASYNC110  # the new ones serve
                await asyncio.sleep(0.05)
            load.is_over = True
            await loading

        asyncio.run(asyncio.wait_for(restart(), 240))

        effects = Counter(made.effects)
        assert load.wrong == []
        assert [name for name, count in effects.items() if count > 1] == []
        assert set(load.answered) <= set(effects)
        print(json.dumps({"answered": len(load.answered), "errors": load.unanswered, "statuses": load.statuses}))
        # What clients may try again: their session is gone, or their connection was.
        assert [kind for kind in load.unanswered if not _may_be_retried(kind)] == []
        assert sum(load.unanswered.values()) <= 8 * CLIENTS


def _may_be_retried(kind: str) -> bool:
    return any(word in kind for word in ("Session terminated", "Session not found", "404", "503", "disconnected"))
