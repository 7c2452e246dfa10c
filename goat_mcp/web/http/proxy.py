"""Where a proxy is, from the URL that a user gave for it."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from goat_mcp.core.errors import ToolError
from goat_mcp.web.http.target import Target, parse_target


class ProxyPlace(NamedTuple):
    """Where it is, and the name and password it wants, if any."""

    target: Target
    login: tuple[str, str] | None


def proxy_place(url: str) -> ProxyPlace:
    """Take a proxy's URL apart. Raises `ValueError`, which does not show it: there may be a password in it."""
    scheme, _, rest = url.partition("://")
    credentials, at, authority = rest.rpartition("@")
    user, _, password = credentials.partition(":")
    try:
        target = parse_target(f"{scheme}://{authority}")
    except ToolError:
        raise ValueError("wants http(s)://[USER:PASSWORD@]HOST:PORT") from None
    if target.path != "/":
        raise ValueError("wants http(s)://[USER:PASSWORD@]HOST:PORT, without a path")
    return ProxyPlace(target, (unquote(user), unquote(password)) if at else None)
