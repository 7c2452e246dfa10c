"""Settings of where state is kept: `state.*` (design D19)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, SecretStr

from goat_mcp.core.settings_part import Secret, SettingsPart


class StateOptions(SettingsPart):
    """`url`: a Redis or Valkey that several servers share; without it, state is in the state directory of each machine.

    `redis://HOST:PORT/DB`, `rediss://` for TLS, `redis+cluster://HOST:PORT` and `redis+sentinel://HOST:PORT,HOST:PORT/NAME`,
    with `USER:PASSWORD@` before the host. `prefix` begins all its keys. `key` is the secret that all replicas of one
    server share, at least 32 characters; `previous_key` is the one before it, which is still read.
    """

    url: Secret = SecretStr("")
    prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")] = "goat-mcp"
    key: Secret = SecretStr("")
    previous_key: Secret = SecretStr("")
