"""The worst a call can do, and what follows from it: its risk and its MCP annotations."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class SideEffect(StrEnum):
    """Source: Goat tool system, "SideEffect Types & Risk Mapping"."""

    NONE = "none"
    READ_ONLY = "read_only"
    MUTATING = "mutating"
    NETWORK = "network"
    BLOCKING = "blocking"
    SPAWNS = "spawns"


class Risk(IntEnum):
    """Ordered: a higher risk is never decided more leniently than a lower one."""

    NONE = 0
    LOW = 1
    MEDIUM = 2
    HIGH = 3
    CRITICAL = 4


RISK_OF: dict[SideEffect, Risk] = {
    SideEffect.NONE: Risk.NONE,
    SideEffect.READ_ONLY: Risk.LOW,
    SideEffect.MUTATING: Risk.MEDIUM,
    SideEffect.NETWORK: Risk.HIGH,
    SideEffect.BLOCKING: Risk.LOW,
    SideEffect.SPAWNS: Risk.CRITICAL,
}


@dataclass(frozen=True, slots=True)
class Hints:
    """The four MCP annotation hints; a built-in states all of them."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool

    def wire(self) -> dict[str, bool]:
        return {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }


HINTS_OF: dict[SideEffect, Hints] = {
    SideEffect.NONE: Hints(read_only=True, destructive=False, idempotent=True, open_world=False),
    SideEffect.READ_ONLY: Hints(read_only=True, destructive=False, idempotent=True, open_world=False),
    SideEffect.MUTATING: Hints(read_only=False, destructive=True, idempotent=False, open_world=False),
    SideEffect.NETWORK: Hints(read_only=False, destructive=False, idempotent=True, open_world=True),
    SideEffect.BLOCKING: Hints(read_only=False, destructive=True, idempotent=True, open_world=False),
    SideEffect.SPAWNS: Hints(read_only=False, destructive=True, idempotent=False, open_world=True),
}
"""Hints a side effect implies. A tool may override them (contract: the table in tools.md, "Side effects")."""
