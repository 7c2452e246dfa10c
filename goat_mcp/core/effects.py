"""What a tool can do, in words for people: the same ones wherever a tool is shown."""

from __future__ import annotations

from goat_mcp.core.side_effect import Hints, Risk, SideEffect

READS, CHANGES, DELETES = "reads", "changes", "deletes"
PROGRAMS, NETWORK = "runs programs", "uses the network"
MAY_CHANGE = "may change things"
"""Of a tool whose server does not say what it does."""


def effects_of(side_effect: SideEffect, risk: Risk, hints: Hints) -> tuple[str, ...]:
    """Of a tool that states all three, as ours and declared ones do."""
    if side_effect is SideEffect.SPAWNS or risk is Risk.CRITICAL:
        return (PROGRAMS,)
    words: list[str] = []
    if hints.read_only:
        words.append(READS)
    elif side_effect is not SideEffect.NETWORK or hints.destructive:
        words.append(CHANGES)
    if side_effect is SideEffect.NETWORK or hints.open_world:
        words.append(NETWORK)
    return tuple(words)
