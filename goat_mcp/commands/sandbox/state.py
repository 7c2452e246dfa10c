"""What a caller is told about confinement: which one there is, which was wanted, and why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from goat_mcp.commands.sandbox.options import SandboxWish

ConfinementName = Literal["bubblewrap", "landlock", "none"]


@dataclass(frozen=True)
class SandboxState:
    """`name` is what a command would run in now; `reason` says why it is `none` although something was wanted."""

    name: ConfinementName
    wanted: SandboxWish
    reason: str = ""

    @property
    def confined(self) -> bool:
        return self.name != "none"

    @property
    def unsandboxed(self) -> bool:
        """Wanted, and there is none: such a command at least asks (R-PROC-1)."""
        return self.wanted is not SandboxWish.OFF and not self.confined
