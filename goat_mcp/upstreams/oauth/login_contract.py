"""What the parts of a login agree on: who logs in, what can go wrong, and how the files of stored logins are named.

Light: it is read at the start. No text of an error here holds a secret.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # the SDK's client side, which a start does not load
    from mcp.shared.auth import AuthorizationCodeResult

FOLDER = "oauth"
"""Of the state directory: where stored logins are."""


def slot_of(resource: str, principal: str, workspace: str = "") -> str:
    """Names the logins at one resource for one principal, in file names.

    `workspace` is a directory whose logins are apart from those of others; empty for logins that all of them use.
    """
    whose = "\0".join((resource, principal, *((workspace,) if workspace else ())))
    return hashlib.sha256(whose.encode("utf-8", "surrogatepass")).hexdigest()[:24]


class LoginPrompt(Protocol):
    """Whoever can log in: somebody at a terminal, a client that shows addresses, a test.

    `redirect_uri` is where they come back to; it is reported before they are sent away.
    """

    @property
    def redirect_uri(self) -> str: ...

    async def visit(self, url: str) -> None:
        """Show them the address, which was checked. Nothing is opened that they did not ask for."""
        ...

    async def came_back(self) -> AuthorizationCodeResult:
        """What they brought. Raises `LoginRefused` if they were turned away or never came."""
        ...


class LoginNeeded(Exception):
    """A person must log in (again). `scopes` are those the upstream asked for beyond what it granted."""

    def __init__(self, why: str, scopes: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.scopes = scopes


class LoginRefused(Exception):
    """The authorization server, or what the upstream says of it, is not one to log in with."""


class CredentialsRefused(LoginRefused):
    """The authorization server, or an identity provider, refused what proves who goat-mcp is."""


class RenewalRefused(Exception):
    """The authorization server no longer takes the refresh token."""


class AuthServerDown(Exception):
    """The authorization server cannot be asked now. Nothing is lost; try again."""
