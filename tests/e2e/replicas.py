"""Several `goat-mcp serve --http` of one team: one Redis, one upstream that counts its own effects."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import Client

from tests.e2e.conftest import UNASKED, fill, upstream_file
from tests.e2e.goat import TOKEN, HttpGoat, Launch, wait_for_url
from tests.redis_server import RedisServer, redis_server

LEASE_S = 2
WITHIN_S = 60.0
SERVER = Path(__file__).parent / "servers" / "counting.py"
KEY = "example-key-that-all-replicas-of-the-tests-share"


@dataclass
class Team:
    """`goats` by the name of their replica."""

    folder: Path
    redis: RedisServer
    options: tuple[str, ...]
    goats: dict[str, HttpGoat] = field(default_factory=dict[str, HttpGoat])

    @property
    def counted(self) -> Path:
        """Where the upstream has its files."""
        return self.folder / "counted"

    def effects(self) -> list[str]:
        file = self.counted / "effects"
        return [line.split(" ", 1)[1] for line in file.read_text().splitlines()] if file.exists() else []

    def start(self, name: str) -> HttpGoat:
        own = Launch(self.folder / name, self.folder / "ws", self.options)
        own.folder.mkdir(exist_ok=True)
        token = own.folder / "token"
        token.write_text(TOKEN)
        token.chmod(0o600)
        # Its own process and no fork of another: signals must reach it.
        command = [sys.executable, "-m", "goat_mcp", "serve", "--workspace", str(own.workspace), *own.options]
        command += ["--http", "127.0.0.1:0", "--token-file", str(token), "--set", f"replica.name={name}"]
        process = subprocess.Popen(
            command,
            env={**own.environment, "GOAT_MCP_STATE__KEY": KEY},
            cwd=own.workspace,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        said: list[str] = []
        goat = self.goats[name] = HttpGoat(wait_for_url(process, said), process, said)
        return goat

    def owner_of(self, pid: int) -> str:
        """Whose child the upstream's process is."""
        for name, goat in self.goats.items():
            if pid in descendants(goat.process.pid):
                return name
        raise AssertionError(f"nobody's: {pid}")

    def send(self, name: str, number: signal.Signals) -> None:
        os.kill(self.goats[name].process.pid, number)

    def end(self) -> None:
        for goat in self.goats.values():
            if goat.process.poll() is None:
                goat.process.send_signal(signal.SIGCONT)
                goat.process.kill()
            goat.process.wait()


def descendants(pid: int) -> set[int]:
    import psutil

    return {child.pid for child in psutil.Process(pid).children(recursive=True)}


@contextmanager
def team(folder: Path, *names: str, **entry: Any) -> Generator[Team]:
    """Skips the test if there is no Redis."""
    (folder / "counted").mkdir()
    fill(folder / "ws")
    counting = {"command": sys.executable, "args": [str(SERVER), str(folder / "counted")]}
    file = upstream_file(folder / "upstreams.json", up={**counting, "trust_annotations": True, **entry})
    with ExitStack() as stack:
        redis = stack.enter_context(redis_server(folder))
        settings = (f"state.url={redis.url}", f"replica.lease_s={LEASE_S}")
        chosen = tuple(word for setting in settings for word in ("--set", setting))
        ours = Team(folder, redis, ("--upstreams", str(file), *UNASKED, *chosen))
        stack.callback(ours.end)
        for name in names:
            ours.start(name)
        yield ours


async def called(client: Client, tool: str, **arguments: Any) -> str:
    """The text of the answer, an error's too."""
    answer = await client.call_tool(f"mcp__up__{tool}", arguments)
    return "".join(block.text for block in answer.content if block.type == "text")


def until(holds: Callable[[], bool], what: str = "") -> None:
    give_up_s = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < give_up_s, what
        time.sleep(0.05)
