"""Heads of records of calls, kept in the shared state: a tail that was cut off the file, or rewritten, shows there.

Each record has a stream of its own. An entry is signed with the secret of the replicas: who can only write to the
shared state cannot make a record look cut. Nothing is read back but by `goat-mcp audit verify`.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import anyio

from goat_mcp.core.errors import ToolError

ANCHOR_S = 10.0
"""How often the head is kept, if it is another one."""
LAST_S = 2.0
"""How long the end of a process may wait for it."""
MAX_ENTRIES = 10_000
KEPT_S = 400 * 24 * 3600
"""After the last entry."""
_ADD = """
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', 'head', ARGV[2], 'mac', ARGV[3])
return redis.call('EXPIRE', KEYS[1], ARGV[4])
"""
_READ = "return redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', ARGV[1])"


class Anchored(Protocol):
    """The shared state, as far as anchors need it. Keys are without its prefix. Both raise `ToolError(IO)`."""

    async def run_script(self, script: str, keys: Sequence[str], arguments: Sequence[str | int]) -> Any: ...

    def run_script_here(self, script: str, keys: Sequence[str], arguments: Sequence[str | int]) -> Any:
        """In the thread of the caller."""
        ...


class Anchors:
    """Of the record in `file` on `machine`. `keys` are the secrets of the replicas, the one to sign with first."""

    def __init__(self, state: Anchored, keys: Sequence[str], machine: str, file: Path) -> None:
        self._state = state
        self._keys = [key.encode() for key in keys]
        path = os.path.join(os.path.realpath(file.expanduser().parent), file.name)  # noqa: PTH118  # as text
        self._chain = hashlib.sha256(f"{machine}\0{path}".encode()).hexdigest()[:32]
        self._last = ""

    async def keep(self, head: Callable[[], str], warn: Callable[..., object]) -> None:
        """Keep the head every `ANCHOR_S`, until cancelled."""
        problem = ""
        while True:
            await anyio.sleep(ANCHOR_S)
            try:
                await self.add(head())
                problem = ""
            except ToolError as failed:
                if not problem:  # once for each outage
                    warn("the head of the record of calls is not kept elsewhere", problem=str(failed))
                problem = str(failed)

    async def add(self, head: str) -> None:
        """Keep this head, `NUMBER:HASH`, if it is news. Raises `ToolError(IO)`."""
        if head and head != self._last:
            await self._state.run_script(_ADD, [self._key], [MAX_ENTRIES, head, self._mac(head, self._keys[0]), KEPT_S])
            self._last = head

    async def add_last(self, head: str) -> None:
        """As `add`, at the end of the process, which does not wait long for it."""
        with anyio.move_on_after(LAST_S), suppress(ToolError):
            await self.add(head)

    def read(self) -> list[str]:
        """All heads that replicas have kept of this record, newest first. Blocking. Raises `ToolError(IO)`."""
        entries: list[tuple[str, list[str]]] = self._state.run_script_here(_READ, [self._key], [MAX_ENTRIES])
        found: list[str] = []
        for _, (_, head, _, mac) in entries:
            if any(hmac.compare_digest(mac, self._mac(head, key)) for key in self._keys):
                found.append(head)
        return found

    @property
    def _key(self) -> str:
        return f"audit:anchors:{self._chain}"

    def _mac(self, head: str, key: bytes) -> str:
        return hmac.new(key, f"goat-mcp audit anchor\0{self._chain}\0{head}".encode(), "sha256").hexdigest()
