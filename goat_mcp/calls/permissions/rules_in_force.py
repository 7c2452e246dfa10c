"""The rules of a gateway as they are at this moment: without those that have ended, and as settings have them now."""

from __future__ import annotations

import threading
import time

from goat_mcp.calls.permissions.rule_set import RuleSet


class RulesInForce:
    """Implements `CurrentRules`. May be asked in any thread; at each moment some rules are in force, whole."""

    def __init__(self, rules: RuleSet) -> None:
        self._rules = rules
        self._changing = threading.Lock()

    def now(self) -> RuleSet:
        """Every decision asks once, and goes by what it got."""
        rules = self._rules
        left = rules.at(time.time())
        if left is not rules:
            with self._changing:
                if self._rules is rules:
                    self._rules = left
        return left

    def replace(self, rules: RuleSet) -> None:
        """From now on these hold."""
        with self._changing:
            self._rules = rules
