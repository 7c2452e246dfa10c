"""What the claims of a checked token say: who it is, which profile narrows them, whether they administrate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

from goat_mcp.core.rights import principal_of_user
from goat_mcp.server.identity.challenge import RefusedToken
from goat_mcp.settings.identity import IdentitySettings

MAX_NAME_CHARS = 256


@dataclass(frozen=True)
class Person:
    """`profile` is empty if nothing narrows them."""

    principal: str
    profile: str
    is_administrator: bool


@dataclass(frozen=True)
class ClaimMapping:
    """By the settings. `profiles` are those that there are now."""

    identity: IdentitySettings
    profiles: Callable[[], Collection[str]]

    def person(self, claims: Mapping[str, Any]) -> Person:
        """Raises `RefusedToken` for a token that names nobody, or somebody who has nothing here."""
        name = claim(claims, self.identity.principal_claim)
        if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_CHARS or not name.isprintable():
            raise RefusedToken(f"the token names nobody in its claim {self.identity.principal_claim}")
        groups = names(claim(claims, self.identity.groups_claim))
        is_administrator = name in self.identity.administrators or bool(
            groups & set(self.identity.administrator_groups)
        )
        profile = self._profile(claims, groups)
        if not profile and self.identity.maps_profiles and not is_administrator:
            raise _nothing_here("this identity has no profile here")
        if profile and profile not in self.profiles():
            # The settings have lost it, or the provider says what nobody knows here: nothing is guessed.
            raise _nothing_here("this identity has a profile that is not configured here")
        return Person(principal_of_user(name), profile, is_administrator)

    def _profile(self, claims: Mapping[str, Any], groups: Collection[str]) -> str:
        own = claim(claims, self.identity.profile_claim) if self.identity.profile_claim else None
        if isinstance(own, str) and own:
            return own
        of_groups = (profile for group, profile in self.identity.profile_of_group.items() if group in groups)
        return next(of_groups, self.identity.profile)


def _nothing_here(reason: str) -> RefusedToken:
    # No error code: another token of the same person would be no better, so the client must not ask for one.
    return RefusedToken(reason, status=403, error="")


def claim(claims: Mapping[str, Any], name: str) -> Any:
    """The claim of this name, which may hold dots itself; else what the path leads to; None if there is nothing."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = cast("Mapping[str, Any]", found).get(part) if isinstance(found, dict) else None
    return found


def names(value: Any) -> frozenset[str]:
    """A list of texts, or one text for a list of one. Anything else holds none."""
    if isinstance(value, str):
        return frozenset({value})
    return (
        frozenset(one for one in cast("list[Any]", value) if isinstance(one, str))
        if isinstance(value, list)
        else (frozenset())
    )
