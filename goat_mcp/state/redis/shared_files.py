"""Small files of the state directory that several servers share: remembered rules, pins, trust, plans, logins.

Readers look at their own file, as ever. Whoever edits holds a lock in Redis, gets the newest version of the group of
files before, and sends what was changed after it: of two servers that edit at the same time none loses what the other
wrote. The others hear of it and get it, and look every half minute anyway (design/0032).

These files allow commands and name programs, so Redis is not believed about them: it holds them sealed with the state
key, and only under names that belong to their group.
"""

from __future__ import annotations

import errno
import secrets
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from goat_mcp.core.errors import ToolError
from goat_mcp.state.private_file import write_private
from goat_mcp.state.redis.connection import RedisConnection
from goat_mcp.state.redis.encrypted_text import EncryptedText

GROUPS = {
    "rules": ("rules/*.jsonl",),
    "pins": ("goat.lock", "pins/*.json"),
    "trust": ("trust.json",),
    "logins": ("oauth/*-*.json",),
    "plans": ("plans/*/*.json", "plans/*/*.md"),
}
"""Which files are edited under one lock, by patterns below the state directory."""
CHANNEL = "files"
LOOK_S = 30.0
LOCK_LASTS_S = 15.0
LOCK_WAIT_S = 10.0
_AGAIN_S = 0.02
_RETRY_S = 2.0
_NEWER = """
local version = redis.call('GET', KEYS[1]) or '0'
if version == ARGV[1] then return {version} end
return {version, redis.call('HGETALL', KEYS[2])}
"""
_SEND = """
if redis.call('GET', KEYS[3]) ~= ARGV[1] then return '' end
local now = redis.call('TIME')
local version = (tonumber(redis.call('GET', KEYS[1]) or 0) or 0) + 1
version = math.max(version, tonumber(now[1]) * 1000000 + tonumber(now[2]))
local text = string.format('%.0f', version)
redis.call('SET', KEYS[1], text)
for i = 2, #ARGV, 3 do
  if ARGV[i + 1] == 'gone' then
    redis.call('HDEL', KEYS[2], ARGV[i])
  else
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 2])
  end
end
return text
"""
# Versions are times: an edit in a Redis that was restored from an old file is newer than all that anybody knows.
_UNLOCK = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class SharedFiles:
    """Of one state directory. Blocking: on an event loop, in a thread."""

    def __init__(self, redis: RedisConnection, folder: Path, encrypted: EncryptedText) -> None:
        self._redis = redis
        self._encrypted = encrypted
        self._folder = folder
        self._mutex = threading.RLock()
        self._known: dict[str, int] = {}
        """The version of each group that lies in the folder."""
        self._sent: dict[str, dict[str, str]] = {}
        """Its files as Redis has them, by name."""
        self._unreadable: dict[str, list[str]] = {}
        """What Redis has that our keys have not sealed: files of these names stay as they are."""
        self._is_resealed = False

    @contextmanager
    def editing(self, group: str, *, anew: bool = False) -> Generator[None]:
        """Alone with the newest version of a group; what the block has changed is sent at its end, all of it if `anew`.

        Raises `OSError` if that cannot be done; then the files are as they were.
        """
        token = secrets.token_hex(16)
        with self._mutex:
            try:
                self._lock(group, token)
            except ToolError as problem:
                raise OSError(errno.EIO, problem.message) from None
            try:
                self._pull(group)
                if unreadable := self._unreadable[group]:
                    raise OSError(errno.EACCES, f"state.key of this server did not seal {unreadable[0]} in Redis")
                before = self._files(group)
                if anew:
                    self._sent[group] = {}
                try:
                    yield
                    self._send(group, token)
                except BaseException:
                    self._restore(group, before)
                    raise
            except ToolError as problem:
                raise OSError(errno.EIO, problem.message) from None
            finally:
                self._unlock(group, token)

    def look(self, group: str) -> bool:
        """Get the newest version of a group. Returns whether that was another one. Raises `ToolError(IO)`, `OSError`.

        A Redis that has lost everything, or has an older version than this server, gets what is here.
        """
        with self._mutex:
            was = self._known.get(group, 0)
            if not self._pull(group) and not self._unreadable[group]:
                with self.editing(group):
                    pass
            return was != self._known.get(group, 0)

    def reseal(self) -> None:
        """Seal again what an earlier key has sealed: that key goes. Raises `ToolError(IO)`, `OSError`."""
        for group in GROUPS:
            stored = self._redis.ask_here(partial(_stored, self._redis.key(self._keys(group)[1])))
            is_old = any(self._encrypted.is_old(_name(group, name), text) for name, text in stored.items())
            if is_old and not self._unreadable.get(group):
                with self.editing(group, anew=True):
                    pass

    async def follow(self) -> None:
        """Get what other servers change, until cancelled."""
        while True:
            try:
                async with self._redis.listening(CHANNEL) as next_message:
                    await self._look_at_all()
                    looked_s = time.monotonic()
                    while True:
                        message = await next_message()
                        if message is not None or time.monotonic() - looked_s > LOOK_S:
                            await self._look_at_all()
                            looked_s = time.monotonic()
            except (ToolError, OSError):  # the shared state is away; who edits is told, who reads has what is here
                await anyio.sleep(_RETRY_S)

    async def _look_at_all(self) -> None:
        for group in GROUPS:
            await anyio.to_thread.run_sync(self.look, group, abandon_on_cancel=True)
        if not self._is_resealed:
            # Once: while servers still have different first keys they would seal in turns for ever.
            await anyio.to_thread.run_sync(self.reseal, abandon_on_cancel=True)
            self._is_resealed = True

    def _pull(self, group: str) -> bool:
        """Take what is in Redis. False if that is nothing, or older than what is here: then it is only looked at."""
        known = self._known.get(group, 0)
        answer, *found = self._redis.run_script_here(_NEWER, self._keys(group)[:2], [known])
        version = int(answer) if answer.isdecimal() else 0
        if version and version == known:
            return True
        flat: list[str] = found[0] if found else []
        stored = {name: text for name, text in zip(flat[::2], flat[1::2], strict=True) if _belongs(group, name)}
        opened = {name: self._encrypted.opened(_name(group, name), text) for name, text in stored.items()}
        newest = {name: text for name, text in opened.items() if text is not None}
        self._unreadable[group] = sorted(stored.keys() - newest.keys())
        self._sent[group] = newest
        here = self._files(group)
        if (not version or version < known) and here != newest:
            return False
        for name, text in newest.items():
            if here.get(name) != text:
                self._keep_first(group, name)
                self._write(name, text)
        for name in here.keys() - stored.keys():
            self._keep_first(group, name)
            (self._folder / name).unlink(missing_ok=True)
        self._known[group] = version
        return True

    def _send(self, group: str, token: str) -> None:
        here, before = self._files(group), self._sent.get(group, {})
        changed = [
            (name, "here", self._encrypted.sealed(_name(group, name), text))
            for name, text in here.items()
            if before.get(name) != text
        ]
        changed += [(name, "gone", "") for name in before.keys() - here.keys()]
        if not changed:
            return
        flat = [part for one in changed for part in one]
        version = self._redis.run_script_here(_SEND, self._keys(group), [token, *flat])
        if not version:
            raise OSError(errno.EIO, f"another server changes {group}, and this one took too long; try again")
        self._known[group], self._sent[group] = int(version), here
        self._redis.ask_here(lambda client: client.publish(self._redis.key(CHANNEL), group))

    def _restore(self, group: str, before: dict[str, str]) -> None:
        for name in self._files(group).keys() - before.keys():
            (self._folder / name).unlink(missing_ok=True)
        for name, text in before.items():
            self._write(name, text)

    def _keep_first(self, group: str, name: str) -> None:
        """What this machine had before it shared anything is not lost."""
        path = self._folder / name
        if group not in self._known and path.exists():
            write_private(path.with_name(f"{path.name}.before-sharing"), path.read_bytes())

    def _files(self, group: str) -> dict[str, str]:
        found = (path for pattern in GROUPS[group] for path in self._folder.glob(pattern))
        return {path.relative_to(self._folder).as_posix(): path.read_bytes().decode("latin-1") for path in found}

    def _write(self, name: str, text: str) -> None:
        path = self._folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(path, text.encode("latin-1"))

    def _lock(self, group: str, token: str) -> None:
        key, until_s = self._redis.key(self._keys(group)[2]), time.monotonic() + LOCK_WAIT_S
        while not self._redis.ask_here(lambda client: client.set(key, token, nx=True, px=int(LOCK_LASTS_S * 1000))):
            if time.monotonic() > until_s:
                raise OSError(errno.EAGAIN, f"another server changes {group} all the time; try again")
            time.sleep(_AGAIN_S)

    def _unlock(self, group: str, token: str) -> None:
        try:
            self._redis.run_script_here(_UNLOCK, self._keys(group)[2:], [token])
        except ToolError:
            return  # it ends by itself

    def _keys(self, group: str) -> list[str]:
        return [f"files:{group}:{part}" for part in ("version", "content", "lock")]


def _name(group: str, name: str) -> str:
    """What a file is sealed under: the text of one is no text for another."""
    return f"{group}/{name}"


def _belongs(group: str, name: str) -> bool:
    """Whether a file of this group may have the name: nothing else is written because Redis says so."""
    parts = name.split("/")
    if any(part.startswith(".") or "\\" in part or ":" in part or "\0" in part for part in parts):
        return False
    patterns = (pattern.split("/") for pattern in GROUPS[group])
    return any(len(parts) == len(pattern) and all(map(fnmatchcase, parts, pattern)) for pattern in patterns)


def _stored(key: str, client: Any) -> dict[str, str]:
    return client.hgetall(key)
