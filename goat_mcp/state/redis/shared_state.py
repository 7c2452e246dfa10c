"""The state that the settings say several servers share, and what it keeps. Nothing connects before it is needed."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.substitution import Unresolved
from goat_mcp.state.database import Warn
from goat_mcp.state.options import StateOptions
from goat_mcp.state.secret_references import SecretReferences

if TYPE_CHECKING:  # without `state.url` no server needs it
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from goat_mcp.state.redis.connection import RedisConnection
    from goat_mcp.state.redis.events import SharedEvents
    from goat_mcp.state.redis.shared_files import SharedFiles
    from goat_mcp.state.redis.shared_table import SharedTable
    from goat_mcp.state.redis.stores import RedisConfigStore, RedisTodoStore, RedisTokens

KEY_CHARS = 32
ALONE_S = 60.0
"""More than the renewal of a login may take."""
AGAIN_S = 0.05
_LET_GO = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class SharedState:
    """`keys`: the secrets that all replicas have, the one to seal with first."""

    def __init__(self, connection: RedisConnection, keys: list[str]) -> None:
        self.connection = connection
        self.keys = keys
        self._files: SharedFiles | None = None

    @classmethod
    def of(cls, options: StateOptions, references: SecretReferences) -> SharedState | None:
        """None without `state.url`. Raises `ToolError(CONFIG)` if a setting cannot be used."""
        setting = options.url.get_secret_value().strip()
        if not setting:
            return None
        from goat_mcp.state.redis.address import parsed_address, resolved_url
        from goat_mcp.state.redis.connection import RedisConnection, check_installed

        check_installed()
        try:
            address = parsed_address(resolved_url(setting, references))
        except Unresolved as why:
            raise ToolError(ErrorCode.CONFIG, f"state.url: {why}") from None
        references.hide(*address.secrets)
        keys = [
            _checked(_secret(option.get_secret_value(), name, references), name)
            for name, option in (("state.key", options.key), ("state.previous_key", options.previous_key))
            if option.get_secret_value()
        ]
        if not options.key.get_secret_value():
            raise ToolError(
                ErrorCode.CONFIG,
                "state.url is set without state.key, the secret that all servers of this state share",
                f"Make one of {KEY_CHARS} characters or more, such as `openssl rand -hex 32`, and give it to each.",
            )
        return cls(RedisConnection(address, options.prefix), keys)

    def events(self, warn: Warn) -> SharedEvents:
        from goat_mcp.state.redis.events import SharedEvents

        return SharedEvents(self.connection, warn)

    @property
    def machine(self) -> str:
        """Names this machine, or container, among those that share the state."""
        return socket.gethostname()

    def table(self, name: str, schema: Sequence[str], after_loss: Sequence[str] = ()) -> SharedTable:
        from goat_mcp.state.redis.encrypted_text import EncryptedText
        from goat_mcp.state.redis.shared_table import SharedTable

        return SharedTable(self.connection, name, schema, EncryptedText(self.keys), after_loss)

    def files(self, folder: Path) -> SharedFiles:
        """Those in a state directory: this process has one."""
        from goat_mcp.state.redis.encrypted_text import EncryptedText
        from goat_mcp.state.redis.shared_files import SharedFiles

        if self._files is None:
            self._files = SharedFiles(self.connection, folder, EncryptedText(self.keys))
        return self._files

    def editing(self, folder: Path, group: str) -> AbstractContextManager[None]:
        return self.files(folder).editing(group)

    @asynccontextmanager
    async def alone(self, name: str, max_wait_s: float) -> AsyncGenerator[None]:
        """Hold a name that one server has at a time, at most for `ALONE_S`. Raises `ToolError`: BUSY if others have it
        all the time, IO if the shared state is away."""
        key, token, until_s = f"alone:{name}", secrets.token_hex(16), time.monotonic() + max_wait_s
        while not await self.connection.add(key, token, lasts_s=ALONE_S):
            if time.monotonic() > until_s:
                raise ToolError(ErrorCode.BUSY, f"another server has been at {name} for {max_wait_s:g} s", "Try again.")
            await anyio.sleep(AGAIN_S)
        try:
            yield
        finally:
            with anyio.move_on_after(AGAIN_S * 20, shield=True), suppress(ToolError):
                await self.connection.run_script(_LET_GO, [key], [token])

    def look(self, folder: Path, group: str) -> bool:
        """Get the newest of a group of shared files. Blocking. Raises `ToolError(IO)`, `OSError`."""
        return self.files(folder).look(group)

    def todos(self) -> RedisTodoStore:
        from goat_mcp.state.redis.stores import RedisTodoStore

        return RedisTodoStore(self.connection)

    def settings(self) -> RedisConfigStore:
        from goat_mcp.state.redis.stores import RedisConfigStore

        return RedisConfigStore(self.connection)

    def tokens(self, lifetime_s: float) -> RedisTokens:
        from goat_mcp.state.redis.stores import RedisTokens

        return RedisTokens(self.connection, lifetime_s)


def _secret(given: str, name: str, references: SecretReferences) -> str:
    try:
        return references.secret(given)
    except Unresolved as why:
        raise ToolError(ErrorCode.CONFIG, f"{name}: {why}") from None


def _checked(key: str, name: str) -> str:
    if len(key) < KEY_CHARS:
        raise ToolError(
            ErrorCode.CONFIG,
            f"{name} has {len(key)} characters; it takes {KEY_CHARS} or more",
            "Make another one, such as `openssl rand -hex 32`.",
        )
    return key
