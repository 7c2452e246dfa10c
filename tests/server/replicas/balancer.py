"""A load balancer for tests: each connection goes to the next backend that says it is ready (or any that listens)."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

CHECK_EVERY_S = 0.1
Address = tuple[str, int]


@dataclass
class Balancer:
    """`backends` may change while it runs; `url` stays."""

    url: str = ""
    backends: list[Address] = field(default_factory=list[Address])
    _ready: list[Address] = field(default_factory=list[Address])
    _turn: itertools.count[int] = field(default_factory=itertools.count)

    def check(self) -> None:
        self._ready = [backend for backend in list(self.backends) if _is_ready(backend)]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        backends = self._ready or list(self.backends)
        start = next(self._turn)
        for number in range(len(backends)):
            host, port = backends[(start + number) % len(backends)]
            try:
                back_reader, back_writer = await asyncio.open_connection(host, port)
            except OSError:
                continue
            await asyncio.gather(_copy(reader, back_writer), _copy(back_reader, writer))
            break
        writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    except OSError:
        pass
    finally:
        with contextlib.suppress(OSError):
            writer.close()


def _is_ready(backend: Address) -> bool:
    try:
        with urllib.request.urlopen(f"http://{backend[0]}:{backend[1]}/readyz", timeout=2) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


@contextmanager
def balancer() -> Generator[Balancer]:
    """On a free port, in a thread of its own."""
    made = Balancer()
    is_listening = threading.Event()
    has_ended = threading.Event()

    async def run() -> None:
        server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        made.url = f"http://{host}:{port}/mcp"
        is_listening.set()
        while not has_ended.is_set():
            await asyncio.to_thread(made.check)
            await asyncio.sleep(CHECK_EVERY_S)
        server.close()

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    try:
        assert is_listening.wait(20)
        yield made
    finally:
        has_ended.set()
        thread.join(20)
