"""What a user can configure about the web: the settings `web.*`."""

from __future__ import annotations

from goat_mcp.http_client import HttpOptions
from goat_mcp.web.search.options import SearchOptions


class WebOptions(HttpOptions):
    search: SearchOptions = SearchOptions()
