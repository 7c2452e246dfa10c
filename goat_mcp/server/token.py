"""The bearer token that every HTTP client shows: where it is kept and how it is compared.

R-HTTP-1: 32 random bytes, in a private file, compared in constant time.
"""

from __future__ import annotations

import hmac
import secrets
from pathlib import Path

from mcp.server.auth.provider import AccessToken, TokenVerifier

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.secret_file import UnsafeFile, create_secret_file, read_secret_file

TOKEN_BYTES = 32
MIN_TOKEN_CHARS = 32
PRINCIPAL = "operator"


class StaticToken(TokenVerifier):
    """Accepts exactly one token, whose holder is the operator."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def verify_token(self, token: str) -> AccessToken | None:
        if not hmac.compare_digest(token.encode("utf-8", "surrogatepass"), self._token):
            return None
        return AccessToken(token=token, client_id=PRINCIPAL, subject=PRINCIPAL, scopes=[])


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
