"""SearXNG, a metasearch engine people host themselves. Source: its documentation, "Search API"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlencode

from goat_mcp.web.search.answer_json import objects, read_object, text
from goat_mcp.web.search.provider import Found, Hit, ProviderRequest, SearchQuery
from goat_mcp.web.search.site_operators import with_site_operators

_MAX_ENGINES = 5


@dataclass(frozen=True)
class Searxng:
    name: str = "searxng"
    base_url: str = ""
    key_variable: str = ""
    max_query_chars: int = 2000
    advice: Mapping[int, str] = field(
        default_factory=lambda: {
            403: "This instance may not answer in JSON: add json to search.formats in its settings.yml, "
            "or name another one with web.search.base_url."
        }
    )

    def request(self, query: SearchQuery, key: str) -> ProviderRequest:
        asked = with_site_operators(query, max_chars=self.max_query_chars)
        path = "/search?" + urlencode({"q": asked, "format": "json"})
        return ProviderRequest("GET", path, {"Accept": "application/json"})

    def refuses_key(self, status: int, body: bytes) -> bool:
        return False

    def read(self, body: bytes) -> Found:
        answer = read_object(body)
        hits = tuple(
            Hit(text(item.get("title")), text(item.get("url")), text(item.get("content")))
            for item in objects(answer.get("results"), "results")
        )
        return Found(hits, _silent_engines(answer.get("unresponsive_engines")))


def _silent_engines(value: Any) -> str:
    """`[["google", "CAPTCHA"], ...]` in words: an empty answer is not "nothing found" when nobody looked."""
    if not isinstance(value, list):
        return ""
    engines = [
        ": ".join(text(part) for part in cast("list[Any]", engine)[:2])
        for engine in cast("list[Any]", value)[:_MAX_ENGINES]
        if isinstance(engine, list)
    ]
    return f"engines of this SearXNG that did not answer: {', '.join(engines)}" if engines else ""
