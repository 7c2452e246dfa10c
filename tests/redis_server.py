"""A real Redis for tests, on a loopback port, with nothing on disk. It can be ended and started again, empty."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

STARTED_WITHIN_S = 30.0


class RedisServer:
    """`url` stays the same over restarts."""

    def __init__(self, folder: Path, *options: str, config: Path | None = None) -> None:
        """With a `config` it is a Sentinel."""
        self._config = config
        self._folder = folder
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        assert program is not None
        first = ("--save", "") if self._config is None else (str(self._config), "--sentinel")
        listening = ("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder))
        words = (program, *first, *listening)
        self._process = subprocess.Popen([*words, *self._options], stdout=subprocess.DEVNULL)
        until = time.monotonic() + STARTED_WITHIN_S
        while not self._answers():
            assert time.monotonic() < until, "redis-server does not answer"
            time.sleep(0.02)

    def stop(self) -> None:
        """What was in it is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def set_back(self) -> None:
        """End it, and start it with what was there at the last `SAVE`. What came after is lost."""
        self.stop()
        self.start()
        (self._folder / "dump.rdb").unlink()

    def ask(self, *words: str) -> str:
        """One command in a connection of its own, as Redis answers it."""
        return self.ask_bytes(*(word.encode() for word in words)).decode()

    def ask_bytes(self, *words: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            parts = [b"*%d\r\n" % len(words), *(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)]
            connection.sendall(b"".join(parts))
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while more := connection.recv(65536):
                answer += more
        return answer

    def commands(self) -> int:
        """How many commands clients have sent, without those of this class."""
        stats = self.ask("INFO", "commandstats")
        counted = [line for line in stats.splitlines() if line.startswith("cmdstat_")]
        return sum(
            int(line.split("calls=")[1].split(",")[0]) for line in counted if not line.startswith("cmdstat_info")
        )

    def _answers(self) -> bool:
        try:
            return self.ask("PING").startswith(("+PONG", "-NOAUTH"))
        except OSError:
            return False


@contextmanager
def redis_server(folder: Path, *options: str, config: Path | None = None) -> Generator[RedisServer]:
    """Skips the test if no Redis is installed."""
    if shutil.which("redis-server") is None and shutil.which("valkey-server") is None:
        pytest.skip("needs redis-server; make redis installs it")
    server = RedisServer(folder, *options, config=config)
    server.start()
    try:
        yield server
    finally:
        server.stop()
