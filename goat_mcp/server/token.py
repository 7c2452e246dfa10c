"""The bearer token that every HTTP client shows: where it is kept and how it is compared.

R-HTTP-1: 32 random bytes, in a private file, compared in constant time.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from pathlib import Path

from mcp.server.auth.provider import AccessToken, TokenVerifier

from goat_mcp.core.errors import ErrorCode, ToolError

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

    Raises `ToolError(CONFIG)` for a link, a file others can read, or a token too short to be safe.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        return _create(path)
    except OSError as problem:
        raise _broken(path, f"cannot be opened: {problem.strerror}") from None
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise _broken(path, "is not a regular file")
        if os.name == "posix" and mode & 0o077:
            raise _broken(path, f"can be read by others (mode {stat.S_IMODE(mode):04o})")
        token = file.read().strip()
    if len(token) < MIN_TOKEN_CHARS or not token.isascii() or not token.isprintable() or " " in token:
        raise _broken(path, f"does not hold a token of at least {MIN_TOKEN_CHARS} printable characters")
    return token


def _create(path: Path) -> str:
    token = secrets.token_urlsafe(TOKEN_BYTES)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(token + "\n")
    return token


def _broken(path: Path, what: str) -> ToolError:
    return ToolError(
        ErrorCode.CONFIG,
        f"token file {path} {what}",
        "Name another file; one that does not exist is made with a new token.",
    )
