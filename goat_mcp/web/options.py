"""Settings of everything that goes over the network: `web.*`. Loaded at start, so it loads nothing itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from goat_mcp.core.settings_part import BaseUrl, Secret, SettingsPart, one_or_many


def _check_proxy(proxy: SecretStr) -> SecretStr:
    from goat_mcp.web.http.target import parse_proxy

    if proxy.get_secret_value():
        parse_proxy(proxy.get_secret_value())
    return proxy


class HttpOptions(SettingsPart):
    """`proxy` is `http://[user:password@]host:port`; the environment's proxy variables are never used (R-NET-6).

    `ca_file` holds certificates (PEM) that are trusted beside the usual authorities.
    """

    proxy: Annotated[SecretStr, AfterValidator(_check_proxy)] = SecretStr("")
    ca_file: Path | None = None


ProviderName = Literal["searxng", "brave", "tavily", "exa", "duckduckgo"]


class SearchOptions(SettingsPart):
    """`base_url` is for SearXNG, which has no public default, and for proxies that speak a provider's format.

    `key` may be a reference, `${NAME}`; empty means the provider's customary variable, e.g. BRAVE_API_KEY. It is
    never sent to a provider that needs none, so that one left behind does not reach another company.
    """

    provider: ProviderName | None = None
    base_url: BaseUrl = ""
    key: Secret = SecretStr("")
    max_results: int = Field(default=10, ge=1, le=20)


def _check_host_entry(entry: str) -> str:
    from goat_mcp.web.http.target import check_host_entry  # not at start, where nearly nobody has set any

    return check_host_entry(entry)


HostEntries = Annotated[
    tuple[Annotated[str, AfterValidator(_check_host_entry)], ...],
    BeforeValidator(one_or_many),
]


class WebOptions(HttpOptions):
    """`allow_hosts` are `host` or `host:port`: they may have private addresses, and plain http stays as it is.

    `cache_s` is how long a page is served again without asking for it; 0 turns that off. `robots` false ignores
    robots.txt. `requests_per_minute` is for each host; 0 means any number.
    """

    allow_hosts: HostEntries = ()
    cache_s: float = Field(default=900.0, ge=0, le=86_400)
    robots: bool = True
    requests_per_minute: int = Field(default=10, ge=0, le=10_000)
    search: SearchOptions = SearchOptions()
