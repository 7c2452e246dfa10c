"""What a user can configure about searching the web: the settings `web.search.*`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from goat_mcp.core.settings_part import BaseUrl, Secret, SettingsPart

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
