"""What a user can configure about searching the web: the settings `web.search.*`."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from goat_mcp.core.settings_part import Secret, SettingsPart

ProviderName = Literal["searxng", "brave", "tavily", "exa", "duckduckgo"]


def _check_base_url(url: str) -> str:
    if url and not _is_base_url(url):
        raise ValueError("wants http(s)://HOST[:PORT][/PATH], without user, password, ? or #")
    return url.rstrip("/")


def _is_base_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        has_address = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and has_address and "@" not in parts.netloc and not set("?#") & set(url)


class SearchOptions(SettingsPart):
    """`base_url` is for SearXNG, which has no public default, and for proxies that speak a provider's format.

    `key` may be a reference, `${NAME}`; empty means the provider's customary variable, e.g. BRAVE_API_KEY. It is
    never sent to a provider that needs none, so that one left behind does not reach another company.
    """

    provider: ProviderName | None = None
    base_url: Annotated[str, AfterValidator(_check_base_url)] = ""
    key: Secret = SecretStr("")
    max_results: int = Field(default=10, ge=1, le=20)
