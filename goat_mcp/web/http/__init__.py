"""Requests of our own to web servers: the only place that builds an HTTP client (R-NET-1).

Every address is checked before it is dialled. What a page means, caching and rate limits live in `goat_mcp.web.pages`;
upstream MCP servers over HTTP have a client of their own in `goat_mcp.upstreams`.
"""

from goat_mcp.web.http.client import HttpClient
from goat_mcp.web.options import HttpOptions

__all__ = ["HttpClient", "HttpOptions"]
