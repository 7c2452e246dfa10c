"""A tool an upstream lists and clients do not see."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Withheld:
    """`name` is the upstream's own, cut; `reason` is for people."""

    name: str
    reason: str
