"""The providers there are, by the name `web.search.provider` gives them."""

from __future__ import annotations

from goat_mcp.web.search.brave import Brave
from goat_mcp.web.search.duckduckgo import DuckDuckGo
from goat_mcp.web.search.exa import Exa
from goat_mcp.web.search.options import ProviderName
from goat_mcp.web.search.provider import SearchProvider
from goat_mcp.web.search.searxng import Searxng
from goat_mcp.web.search.tavily import Tavily

PROVIDERS: dict[ProviderName, SearchProvider] = {
    "searxng": Searxng(),
    "brave": Brave(),
    "tavily": Tavily(),
    "exa": Exa(),
    "duckduckgo": DuckDuckGo(),
}
