"""What an upstream lists and clients do not see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from goat_mcp.upstreams.reason_code import ReasonCode


@dataclass(frozen=True)
class RejectedEntry:
    """`name` is the upstream's own, cut; `reason` is for people, `reason_code` for programs."""

    name: str
    reason: str
    reason_code: ReasonCode = ReasonCode.BROKEN_ENTRY
    kind: Literal["tool", "resource", "template", "prompt"] = "tool"
