"""Exa. Source: its API reference, "Search" (POST /search) and "Error codes"."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from goat_mcp.web.search.answer_json import objects, read_object, text
from goat_mcp.web.search.provider import MAX_SNIPPET_CHARS, Found, Hit, ProviderRequest, SearchQuery


@dataclass(frozen=True)
class Exa:
    name: str = "exa"
    base_url: str = "https://api.exa.ai"
    key_variable: str = "EXA_API_KEY"
    max_query_chars: int = 2000
    advice: Mapping[int, str] = field(
        default_factory=lambda: {
            402: "The credits are used up: ask the user to add some, or to name another web.search.provider."
        }
    )

    def request(self, query: SearchQuery, key: str) -> ProviderRequest:
        body: dict[str, Any] = {
            "query": query.text,
            "type": "auto",
            "numResults": query.max_results,
            "contents": {"highlights": {"maxCharacters": MAX_SNIPPET_CHARS}},
        }
        if query.allowed:
            body["includeDomains"] = list(query.allowed)
        if query.blocked:
            body["excludeDomains"] = list(query.blocked)
        headers = {"Accept": "application/json", "Content-Type": "application/json", "x-api-key": key}
        return ProviderRequest("POST", "/search", headers, json.dumps(body).encode())

    def refuses_key(self, status: int, body: bytes) -> bool:
        return status in (401, 403)

    def read(self, body: bytes) -> Found:
        items = objects(read_object(body).get("results"), "results")
        return Found(tuple(Hit(text(item.get("title")), text(item.get("url")), _excerpt(item)) for item in items))


def _excerpt(item: dict[str, Any]) -> str:
    """The highlights; the page's text where an older or other server sent that instead."""
    highlights: Any = item.get("highlights")
    if isinstance(highlights, list) and highlights:
        return " … ".join(text(part) for part in cast("list[Any]", highlights))
    return text(item.get("text"))
