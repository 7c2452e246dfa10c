"""Tavily. Source: its API reference, "Search" (POST /search)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from goat_mcp.web.search.answer_json import objects, read_object, text
from goat_mcp.web.search.provider import Found, Hit, ProviderRequest, SearchQuery


@dataclass(frozen=True)
class Tavily:
    name: str = "tavily"
    base_url: str = "https://api.tavily.com"
    key_variable: str = "TAVILY_API_KEY"
    max_query_chars: int = 400
    advice: Mapping[int, str] = field(
        default_factory=lambda: {
            432: "The key's plan is used up: ask the user to raise it, or to name another web.search.provider.",
            433: "The spending limit is reached: ask the user to raise it, or to name another web.search.provider.",
        }
    )

    def request(self, query: SearchQuery, key: str) -> ProviderRequest:
        body: dict[str, Any] = {"query": query.text, "max_results": query.max_results, "search_depth": "basic"}
        if query.allowed:
            body["include_domains"] = list(query.allowed)
        if query.blocked:
            body["exclude_domains"] = list(query.blocked)
        headers = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "Authorization": f"Bearer {key}",
        }
        return ProviderRequest("POST", "/search", headers, json.dumps(body).encode())

    def refuses_key(self, status: int, body: bytes) -> bool:
        return status in (401, 403)

    def read(self, body: bytes) -> Found:
        items = objects(read_object(body).get("results"), "results")
        return Found(
            tuple(Hit(text(item.get("title")), text(item.get("url")), text(item.get("content"))) for item in items)
        )
