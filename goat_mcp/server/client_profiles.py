"""Which profiles narrow what one request may do: those of its token, its client and its path, all of them (PRF-1).

A client's name is its own word and a path its own choice. So neither takes anything back of what the token leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goat_mcp.core.rights import NO_LIMITS, Rights

PATH_PROFILE = "goat_mcp.profile"
"""Where a request's ASGI scope has the profile of its path."""
_SCOPE_PREFIX = "profile:"


def token_scope(profile: str) -> str:
    """What marks a token of this profile."""
    return f"{_SCOPE_PREFIX}{profile}"


class ClientProfiles:
    """`by_client`: the profile of a client that gives this name in its `clientInfo`."""

    def __init__(self, by_client: Mapping[str, str]) -> None:
        self._by_client = by_client

    def rights(self, *, token_scopes: list[str], client: str, request: Any) -> Rights:
        """The one that is written last says what names and schemas look like: the path, before the client."""
        of_token = [scope.removeprefix(_SCOPE_PREFIX) for scope in token_scopes if scope.startswith(_SCOPE_PREFIX)]
        of_client = self._by_client.get(client, "")
        of_path = request.scope.get(PATH_PROFILE, "") if request is not None else ""
        if not of_token and not of_client and not of_path:
            return NO_LIMITS
        profiles = tuple(dict.fromkeys(profile for profile in (*of_token, of_client, of_path) if profile))
        return Rights(profiles=profiles)
