"""What a user can configure about our own requests, whoever makes them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import unquote

from pydantic import AfterValidator, SecretStr

from goat_mcp.core.errors import ToolError
from goat_mcp.core.settings_part import SettingsPart
from goat_mcp.http_client.target import Target, parse_target


class ProxyPlace(NamedTuple):
    """Where a proxy is, and the name and password it wants, if any."""

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


def _check_proxy(proxy: SecretStr) -> SecretStr:
    if proxy.get_secret_value():
        proxy_place(proxy.get_secret_value())
    return proxy


class HttpOptions(SettingsPart):
    """`proxy` is `http://[user:password@]host:port`; the environment's proxy variables are never used (R-NET-6).

    `ca_file` holds certificates (PEM) that are trusted beside the usual authorities.
    """

    proxy: Annotated[SecretStr, AfterValidator(_check_proxy)] = SecretStr("")
    ca_file: Path | None = None
