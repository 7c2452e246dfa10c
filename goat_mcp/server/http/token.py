"""The bearer tokens that HTTP clients show: where they are kept and how they are compared.

R-HTTP-1: 32 random bytes, in a private file, compared in constant time.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from pathlib import Path

from mcp.server.auth.provider import AccessToken, TokenVerifier

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.rights import OPERATOR
from goat_mcp.server.caller_identity import token_scope
from goat_mcp.state.file_safety import UnsafeFile, create_secret_file, read_secret_file

TOKEN_BYTES = 32
MIN_TOKEN_CHARS = 32
_NONE: Mapping[str, str] = {}


class StaticToken(TokenVerifier):
    """Accepts one token, whose holder is the operator, and those of profiles, each a principal of its own.

    `of_profiles` are by profile.
    """

    def __init__(self, token: str, of_profiles: Mapping[str, str] = _NONE) -> None:
        self._tokens = [(token.encode(), OPERATOR, list[str]())]
        self._tokens += [
            (other.encode(), token_scope(profile), [token_scope(profile)]) for profile, other in of_profiles.items()
        ]

    async def verify_token(self, token: str) -> AccessToken | None:
        shown = token.encode("utf-8", "surrogatepass")
        found: AccessToken | None = None
        for known, principal, scopes in self._tokens:
            # All of them, each time: how long it takes says nothing of which one it was.
            if hmac.compare_digest(shown, known):
                # The token itself is not kept: nothing behind this could let it out.
                found = AccessToken(token="", client_id=principal, subject=principal, scopes=scopes)
        return found


def profile_tokens(files: Mapping[str, Path], token: str) -> dict[str, str]:
    """The tokens of profiles, by profile, apart from the operator's. Raises `ToolError(CONFIG)` also for one twice."""
    tokens: dict[str, str] = {}
    for profile, path in files.items():
        own = read_or_create_token(path)
        if own == token or own in tokens.values():
            raise _broken(path, f"holds a token that is another one's already, so profile {profile} would be nobody's")
        tokens[profile] = own
    return tokens


def read_or_create_token(path: Path) -> str:
    """The token in `path`, which is created 0600 with a new one if it does not exist.

    Raises `ToolError(CONFIG)` for a link, a file others can read or replace, or a token too short to be safe.
    """
    try:
        try:
            token = read_secret_file(path).strip()
        except FileNotFoundError:
            token = secrets.token_urlsafe(TOKEN_BYTES)
            create_secret_file(path, token + "\n")
    except (UnsafeFile, FileExistsError) as unsafe:
        reason = "was made by somebody else meanwhile" if isinstance(unsafe, FileExistsError) else str(unsafe)
        raise _broken(path, reason) from None
    if len(token) < MIN_TOKEN_CHARS or not token.isascii() or not token.isprintable() or " " in token:
        raise _broken(path, f"does not hold a token of at least {MIN_TOKEN_CHARS} printable characters")
    return token


def _broken(path: Path, what: str) -> ToolError:
    return ToolError(
        ErrorCode.CONFIG,
        f"token file {path} {what}",
        "Name another file; one that does not exist is made with a new token.",
    )
