"""What can keep an upstream's login from working, by who has to act. No text of these holds a secret."""

from __future__ import annotations


class LoginNeeded(Exception):
    """A person must log in (again). `scopes` are those the upstream asked for beyond what it granted."""

    def __init__(self, why: str, scopes: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.scopes = scopes


class LoginRefused(Exception):
    """The authorization server, or what the upstream says of it, is not one to log in with."""


class RenewalRefused(Exception):
    """The authorization server no longer takes the refresh token."""


class AuthServerDown(Exception):
    """The authorization server cannot be asked now. Nothing is lost; try again."""
