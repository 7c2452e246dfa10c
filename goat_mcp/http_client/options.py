"""What a user can configure about our own requests, whoever makes them."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, SecretStr

from goat_mcp.core.settings_part import SettingsPart


class HttpOptions(SettingsPart):
    """`proxy` is `http://[user:password@]host:port`; the environment's proxy variables are never used (R-NET-6).

    `ca_file` holds certificates (PEM) that are trusted beside the usual authorities.
    """

    proxy: SecretStr | None = Field(default=None)
    ca_file: Path | None = None
