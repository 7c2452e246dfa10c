"""The state that the settings say several servers share, and what it keeps. Nothing connects before it is needed."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.substitution import Unresolved
from goat_mcp.state.options import StateOptions
from goat_mcp.state.secret_references import SecretReferences

if TYPE_CHECKING:  # without `state.url` no server needs it
    from collections.abc import Sequence

    from goat_mcp.state.redis.connection import RedisConnection
    from goat_mcp.state.redis.shared_table import SharedTable
    from goat_mcp.state.redis.stores import RedisConfigStore, RedisTodoStore, RedisTokens

KEY_CHARS = 32


class SharedState:
    """`keys`: the secrets that all replicas have, the one to seal with first."""

    def __init__(self, connection: RedisConnection, keys: list[str]) -> None:
        self.connection = connection
        self.keys = keys

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

    @property
    def machine(self) -> str:
        """Names this machine, or container, among those that share the state."""
        return socket.gethostname()

    def table(self, name: str, schema: Sequence[str]) -> SharedTable:
        from goat_mcp.state.redis.shared_table import SharedTable

        return SharedTable(self.connection, name, schema)

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
