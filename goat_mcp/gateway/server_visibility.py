"""Which upstreams a client may know of, and what keeps the others, or a part of one, from it.

By the settings' rules and the choice of tools. What an upstream has to say for itself is in its status.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from goat_mcp.calls.permissions.rule_set import CurrentRules
from goat_mcp.catalog.catalog import Catalog
from goat_mcp.core.rights import Rights
from goat_mcp.core.spec import ToolSpec


@dataclass(eq=False)
class ServerVisibility:
    """`catalog` is that of the process: rights narrow it further."""

    catalog: Catalog
    rules: CurrentRules

    def shown(self, rights: Rights) -> Callable[[str], bool]:
        """Which servers a client with these rights may know of."""
        catalog = self.catalog.of(rights)
        return lambda server: not catalog.hides_server(server)

    def listed_with_reason(self, rights: Rights) -> Callable[[str], bool]:
        """Which servers a list of resources names: also those that the settings deny to everybody, with the reason."""
        shown = self.shown(rights)
        return lambda server: shown(server) or self.catalog.hides_server(server)

    def why_denied(self, server: str) -> str:
        """What keeps all of an upstream from clients, and so its resources; empty if nothing does."""
        if rule := self.rules.now().denying_all_of(server):
            return f"rule {rule}"
        return "catalog.deny, or the profile" if self.catalog.hides_server(server) else ""

    def why_hidden(self, rights: Rights) -> Callable[[ToolSpec], str]:
        """The rule or setting that keeps a prompt, or a server's resources, from a client; empty if none does."""
        catalog, deny = self.catalog.of(rights), self.rules.now().deny

        def why(spec: ToolSpec) -> str:
            for name in (spec.rule_name, spec.name):
                for rule in deny.about(name):
                    if rule.specifier is None:
                        return f"rule {rule.text}"
            return "" if catalog.shows(spec) else "the choice of tools in the settings"

        return why
