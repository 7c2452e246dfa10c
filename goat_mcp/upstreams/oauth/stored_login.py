"""What is known of one login: whose it is, with whom, and the tokens. Everything but `LoginSecrets` may be shown."""

from __future__ import annotations

import hashlib
import time
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from goat_mcp.upstreams.oauth.logins import slot_of

LEEWAY_S = 30.0
"""A token that ends this soon is renewed first: it would end on its way."""


class LoginSecrets(BaseModel):
    """What must be seen by nobody. `generation` tells which state of the login it belongs to."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    generation: int
    access_token: str
    refresh_token: str = ""
    client_secret: str = ""
    registration: dict[str, Any] = {}
    """The record of our registration, which may hold keys of its own."""

    def values(self) -> list[str]:
        """All of it that has to be kept out of texts."""
        more = [str(value) for key, value in self.registration.items() if "token" in key or "secret" in key]
        return [value for value in (self.access_token, self.refresh_token, self.client_secret, *more) if value]


class LoginFacts(BaseModel):
    """A login without its secrets. Times are seconds since 1970."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    resource: str
    issuer: str
    client_id: str
    principal: str
    server: str
    """The upstream's name when it was made."""
    is_registered: bool = False
    """Whether the client id was made for us, and not written by the user."""
    scope: str = ""
    expires_at_s: float | None = None
    obtained_at_s: float = 0.0
    generation: int = 0
    kept_in: Literal["keyring", "file"] = "file"
    auth_server: dict[str, Any] = {}
    """Metadata of the authorization server; empty for one of the oldest kind, which has none."""
    protected_resource: dict[str, Any] = {}
    redirect_uri: str = ""
    can_renew: bool = False
    """Whether it goes on without a person once its token has ended."""
    renewing_since_s: float | None = None
    """Set while new tokens are asked for. It stays where the process ended before it had stored them."""
    refused: str = ""
    """Why the authorization server will not renew this login; empty while it does."""

    @property
    def slot(self) -> str:
        """Names the resource and the principal: what is known before anybody has been asked."""
        return slot_of(self.resource, self.principal)

    @property
    def key(self) -> str:
        """Names the login, in file names and in the keyring."""
        whom = hashlib.sha256(f"{self.issuer}\0{self.client_id}".encode("utf-8", "surrogatepass")).hexdigest()
        return f"{self.slot}-{whom[:16]}"

    def is_fresh(self) -> bool:
        """Whether the access token will be good for a while, as far as its server said."""
        if self.expires_at_s is None:
            return True
        leeway_s = min(LEEWAY_S, (self.expires_at_s - self.obtained_at_s) / 10)
        return time.time() < self.expires_at_s - leeway_s

    @property
    def status(self) -> Literal["valid", "expired", "ended"]:
        """`ended`: its authorization server takes it no longer. One that is renewed by itself is not `expired`."""
        if self.refused:
            return "ended"
        return "expired" if self.is_over() and not self.can_renew else "valid"

    def is_over(self) -> bool:
        """Whether the access token has ended."""
        return self.expires_at_s is not None and time.time() >= self.expires_at_s


class StoredLogin(BaseModel):
    """A login, whole."""

    model_config = ConfigDict(frozen=True)

    facts: LoginFacts
    secrets: LoginSecrets
