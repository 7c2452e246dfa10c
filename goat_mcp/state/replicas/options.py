"""Settings of one replica: `replica.*`. They count with `state.url` only."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from goat_mcp.core.settings_part import BaseUrl, SettingsPart

NAME_PATTERN = r"^$|^[A-Za-z0-9][A-Za-z0-9-]{0,62}$"


class ReplicaOptions(SettingsPart):
    """`name` is this replica's own, by default the host's name and the port; `url` is where the other replicas reach
    it, by default the address that it listens at.

    `lease_s`: how long after its last sign of life the others take it for dead. `leave_delay_s`: how long it goes on
    serving after SIGTERM, so that the load balancer sees that it leaves. `drain_s`: how long it waits at most,
    with that delay, for calls that run.
    """

    name: Annotated[str, Field(pattern=NAME_PATTERN)] = ""
    url: BaseUrl = ""
    lease_s: float = Field(default=10.0, ge=1, le=60)
    leave_delay_s: float = Field(default=5.0, ge=0, le=20)
    drain_s: float = Field(default=25.0, ge=0, le=300)
