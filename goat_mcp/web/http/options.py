"""What a user can configure about our own requests, whoever makes them. Loaded at start, so it loads nothing itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, SecretStr

from goat_mcp.core.settings_part import SettingsPart


def _check_proxy(proxy: SecretStr) -> SecretStr:
    from goat_mcp.web.http.proxy import proxy_place

    if proxy.get_secret_value():
        proxy_place(proxy.get_secret_value())
    return proxy


class HttpOptions(SettingsPart):
    """`proxy` is `http://[user:password@]host:port`; the environment's proxy variables are never used (R-NET-6).

    `ca_file` holds certificates (PEM) that are trusted beside the usual authorities.
    """

    proxy: Annotated[SecretStr, AfterValidator(_check_proxy)] = SecretStr("")
    ca_file: Path | None = None
