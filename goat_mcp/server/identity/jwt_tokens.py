"""Checks the tokens of the OpenID provider. They stay here: nothing behind this holds one.

PyJWT reads and checks signature, issuer, audience and times. What it leaves open is decided here: which algorithms and
keys count, that no claim is missing, and that a token which was checked once need not be checked for each request.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from mcp.server.auth.provider import AccessToken, TokenVerifier

from goat_mcp.server.caller_identity import ADMINISTRATOR_SCOPE, APPROVER_SCOPE, token_scope
from goat_mcp.server.identity.challenge import RefusedToken
from goat_mcp.server.identity.claims import ClaimMapping, Person, claim, names
from goat_mcp.server.identity.provider_keys import ProviderKeys
from goat_mcp.settings.identity import IdentitySettings

MAX_TOKEN_CHARS = 16_384
MAX_CHECKED = 4096
"""Tokens that are remembered as good; the one that was not used for longest goes first."""
_REQUIRED = ["exp", "iss", "aud"]
_LATEST_S = 2**40
"""A number that a clock can be compared with."""


@dataclass(frozen=True)
class _Checked:
    access: AccessToken
    profile: str
    ends_s: float
    """By the clock of the world; leeway is in it."""
    generation: int
    """Of the provider's keys."""


class JwtTokens(TokenVerifier):
    """Those of one issuer for one audience. `now_s` is the clock of the world."""

    def __init__(
        self,
        identity: IdentitySettings,
        keys: ProviderKeys,
        audience: Collection[str],
        profiles: Callable[[], Collection[str]],
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._identity = identity
        self._keys = keys
        self._audience = sorted(audience)
        self._profiles = profiles
        self._claims = ClaimMapping(identity, profiles)
        self._now_s = now_s
        self._checked: OrderedDict[bytes, _Checked] = OrderedDict()

    async def verify_token(self, token: str) -> AccessToken:
        """Whose it is. Raises `RefusedToken`, also if nobody can check it now."""
        known_by = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        if (known := self._checked.get(known_by)) is not None:
            if self._still_counts(known):
                self._checked.move_to_end(known_by)
                return known.access
            del self._checked[known_by]
        claims = await self._checked_claims(token)
        person = self._claims.person(claims)
        generation = self._keys.generation
        access = self._access(person, may_approve=self._identity.approve_scope in granted_scopes(claims))
        ends_s = min(int(claims["exp"]), _LATEST_S) + self._identity.leeway_s
        self._checked[known_by] = _Checked(access, person.profile, ends_s, generation)
        if len(self._checked) > MAX_CHECKED:
            self._checked.popitem(last=False)
        return access

    def _still_counts(self, known: _Checked) -> bool:
        return (
            self._now_s() < known.ends_s
            and self._keys.are_current
            and known.generation == self._keys.generation
            and (not known.profile or known.profile in self._profiles())
        )

    def _access(self, person: Person, *, may_approve: bool) -> AccessToken:
        scopes = [token_scope(person.profile)] if person.profile else []
        if person.is_administrator:
            scopes.append(ADMINISTRATOR_SCOPE)
        if may_approve:
            scopes.append(APPROVER_SCOPE)
        # The token itself is not kept: nothing behind this could let it out.
        return AccessToken(
            token="",
            client_id=person.principal,
            subject=person.principal,
            scopes=scopes,
            claims={"iss": self._identity.issuer},
        )

    async def _checked_claims(self, token: str) -> Mapping[str, Any]:
        import jwt

        if len(token) > MAX_TOKEN_CHARS:
            raise RefusedToken("the token is too long")
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError):
            raise RefusedToken("the token is not known here") from None
        algorithm: Any = header.get("alg")
        if algorithm not in self._identity.algorithms:
            raise RefusedToken("the token is signed with an algorithm that does not count here")
        key_id: Any = header.get("kid")
        key = await self._keys.key(key_id if isinstance(key_id, str) else None, algorithm)
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self._audience,
                issuer=self._identity.issuer,
                leeway=self._identity.leeway_s,
                options={"require": _REQUIRED},
            )
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError) as problem:
            raise RefusedToken(_reason(problem)) from None
        if not set(self._identity.scopes) <= granted_scopes(claims):
            raise RefusedToken("the token lacks a scope that is needed here", status=403, error="insufficient_scope")
        return claims


def granted_scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    """RFC 9068 has them in one text, some providers in a list."""
    return _words(claim(claims, "scp")) | _words(claim(claims, "scope"))


def _words(value: Any) -> frozenset[str]:
    return frozenset(value.split(" ")) if isinstance(value, str) else names(value)


def _reason(problem: Exception) -> str:
    """Our words: those of the library may hold what the token says."""
    import jwt

    reasons: dict[type[Exception], str] = {
        jwt.ExpiredSignatureError: "the token has expired",
        jwt.ImmatureSignatureError: "the token is not valid yet",
        jwt.InvalidAudienceError: "the token is for another audience",
        jwt.InvalidIssuerError: "the token is from another issuer",
        jwt.MissingRequiredClaimError: "the token lacks a claim that is needed",
        jwt.InvalidSignatureError: "the token's signature is wrong",
    }
    return next((reason for kind, reason in reasons.items() if isinstance(problem, kind)), "the token is invalid")
