"""Names are looked up without holding up each other, the event loop or the exit."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.to_thread
import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.web.http import HttpClient, HttpOptions
from goat_mcp.web.http.resolver import MAX_LOOKUPS, SystemResolver
from tests.web.http.local_server import page, serving

pytestmark = pytest.mark.anyio

HANGS_AND_ENDS = """
import socket, threading, anyio
from goat_mcp.web.http.resolver import SystemResolver

begun = threading.Event()

def getaddrinfo(*_, **__):
    begun.set()
    threading.Event().wait()

async def main():
    socket.getaddrinfo = getaddrinfo
    async with anyio.create_task_group() as group:
        group.start_soon(SystemResolver(), "slow.test", 443)
        await anyio.to_thread.run_sync(begun.wait)
        group.cancel_scope.cancel()
    print("given up")

anyio.run(main)
"""


class Hanging:
    """A system whose look-ups of hosts with `slow` in their name hang until `released`."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.asked: list[str] = []
        self._begun = threading.Semaphore(0)

    async def is_asked(self, times: int) -> None:
        """Wait until that many look-ups have begun."""
        for _ in range(times):
            assert await anyio.to_thread.run_sync(self._begun.acquire, True, 60)

    def __call__(self, host: bytes, *rest: Any, **more: Any) -> Any:
        self.asked.append(host.decode())
        self._begun.release()
        if b"slow" in host:
            self.released.wait(120)
            raise socket.gaierror(-3, "Temporary failure in name resolution")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))] * 2


@contextmanager
def hanging(monkeypatch: pytest.MonkeyPatch) -> Generator[Hanging]:
    system = Hanging()
    monkeypatch.setattr(socket, "getaddrinfo", system)
    try:
        yield system
    finally:
        system.released.set()


async def give_up(http: HttpClient, host: str) -> ToolError:
    with pytest.raises(ToolError) as refused:
        await http.send("GET", f"https://{host}/", timeout_s=0.2)
    return refused.value


async def test_hosts_whose_look_up_hangs_do_not_keep_another_host_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    http = HttpClient(HttpOptions())
    async with serving({"/": page("here")}) as server:
        with hanging(monkeypatch) as system, anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for number in range(64):
                    group.start_soon(http.send, "GET", f"https://slow{number}.test/")
                await system.is_asked(64)
                answer = await http.send("GET", server.url(host="quick.test"), allow_hosts=["quick.test"])
                assert answer.body == b"here"
                group.cancel_scope.cancel()


async def test_a_host_that_is_being_looked_up_is_not_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    http = HttpClient(HttpOptions())
    with hanging(monkeypatch) as system:
        first = await give_up(http, "slow.test")
        second = await give_up(http, "slow.test")

    assert (first.facts, second.facts) == ({"timed_out": True}, {"timed_out": True})
    assert system.asked == ["slow.test"]


async def test_who_waits_for_a_look_up_of_another_gets_its_answer_and_the_next_one_asks_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolver = SystemResolver()
    problems: list[OSError] = []

    async def wait(host: str) -> None:
        with pytest.raises(OSError, match="Temporary failure") as failed:
            await resolver(host, 443)
        problems.append(failed.value)

    with hanging(monkeypatch) as system:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(wait, "slow.test")
                await anyio.wait_all_tasks_blocked()
                system.released.set()
            await wait("slow.test")
            addresses = await resolver("quick.test", 443)

    assert len(problems) == 4
    assert addresses == ["127.0.0.1"]
    assert system.asked == ["slow.test", "slow.test", "quick.test"]


async def test_more_look_ups_than_there_may_be_are_refused_until_others_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolver = SystemResolver()

    async def ask(number: int) -> None:
        with pytest.raises(OSError, match="Temporary failure"):
            await resolver(f"slow{number}.test", 443)

    with hanging(monkeypatch) as system, anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for number in range(MAX_LOOKUPS):
                group.start_soon(ask, number)
            await system.is_asked(MAX_LOOKUPS)
            with pytest.raises(ToolError) as refused:
                await resolver("quick.test", 443)
            assert refused.value.code is ErrorCode.BUSY
            system.released.set()
        addresses = await resolver("quick.test", 443)

    assert addresses == ["127.0.0.1"]


def test_a_look_up_that_hangs_does_not_hold_up_the_exit() -> None:
    ended = subprocess.run([sys.executable, "-c", HANGS_AND_ENDS], capture_output=True, timeout=60, check=False)

    assert (ended.returncode, ended.stdout.strip()) == (0, b"given up")
