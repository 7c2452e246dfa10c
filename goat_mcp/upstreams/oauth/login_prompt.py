"""Whoever can log in: somebody at a terminal, a client that shows addresses, a test."""

from __future__ import annotations

from typing import Protocol

from mcp.shared.auth import AuthorizationCodeResult


class LoginPrompt(Protocol):
    """Asked to open an address, and to come back from there.

    `redirect_uri` is where they come back to; it is told before they are sent away.
    """

    @property
    def redirect_uri(self) -> str: ...

    async def visit(self, url: str) -> None:
        """Show them the address, which was checked. Nothing is opened that they did not ask for."""
        ...

    async def came_back(self) -> AuthorizationCodeResult:
        """What they brought. Raises `LoginRefused` where they were turned away or never came."""
        ...
