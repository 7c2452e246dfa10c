"""What a call may do that an agent makes: never more than the call that started the agent."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rights:
    """`allowed` None means every tool of the catalog. `mode` is a permission mode that may only narrow, or empty.

    `depth` counts agents: 0 is a client's own call.
    """

    allowed: frozenset[str] | None = None
    denied: frozenset[str] = frozenset()
    mode: str = ""
    depth: int = 0

    def permits(self, rule_name: str) -> bool:
        return rule_name not in self.denied and (self.allowed is None or rule_name in self.allowed)

    def narrowed(
        self, *, allowed: frozenset[str] | None, denied: frozenset[str] = frozenset(), mode: str = ""
    ) -> Rights:
        """The rights of an agent that a call with these rights starts."""
        if allowed is not None and self.allowed is not None:
            allowed = allowed & self.allowed
        return Rights(
            allowed=self.allowed if allowed is None else allowed,
            denied=self.denied | denied,
            mode=mode or self.mode,
            depth=self.depth + 1,
        )


NO_LIMITS = Rights()
"""Those of a client's own call."""
