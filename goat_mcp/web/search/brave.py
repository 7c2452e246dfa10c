"""Brave Search. Source: its API reference, "Web search" (GET /res/v1/web/search)."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlencode

from goat_mcp.web.search.answer_json import objects, read_object, text
from goat_mcp.web.search.provider import Found, Hit, NotUnderstood, ProviderRequest, SearchQuery
from goat_mcp.web.search.site_operators import with_site_operators

MAX_COUNT = 20
MAX_WORDS = 50
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")


@dataclass(frozen=True)
class Brave:
    name: str = "brave"
    base_url: str = "https://api.search.brave.com"
    key_variable: str = "BRAVE_API_KEY"
    max_query_chars: int = 400
    advice: Mapping[int, str] = field(default_factory=dict[int, str])

    def request(self, query: SearchQuery, key: str) -> ProviderRequest:
        asked = with_site_operators(query, max_chars=self.max_query_chars, max_words=MAX_WORDS)
        # Operators are hints here: with a filter of ours to come, ask for all there is on a page.
        count = MAX_COUNT if query.allowed or query.blocked else query.max_results
        parameters = {"q": asked, "count": count, "result_filter": "web", "text_decorations": "false"}
        headers = {"Accept": "application/json", "X-Subscription-Token": key}
        return ProviderRequest("GET", "/res/v1/web/search?" + urlencode(parameters), headers)

    def refuses_key(self, status: int, body: bytes) -> bool:
        # A key Brave does not know is a 422, as is a query it cannot take; the code in the body tells them apart.
        return status in (401, 403) or (status == 422 and b"SUBSCRIPTION_TOKEN" in body)

    def read(self, body: bytes) -> Found:
        answer = read_object(body)
        web: Any = answer.get("web")
        if web is None and answer.get("type") == "search":
            return Found(())  # "web" is left out where nothing was found
        if not isinstance(web, dict):
            raise NotUnderstood("it has no object 'web'")
        items = objects(cast("dict[str, Any]", web).get("results"), "web.results")
        return Found(
            tuple(
                Hit(_plain(item.get("title")), text(item.get("url")), _plain(item.get("description"))) for item in items
            )
        )


def _plain(value: Any) -> str:
    """Titles and descriptions are HTML: entities, and `<strong>` in spite of `text_decorations`."""
    return html.unescape(_TAG.sub("", text(value)))
