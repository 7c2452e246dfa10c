"""What each provider is sent: its own parameters for domains where it has them, `site:` operators elsewhere."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from goat_mcp.web.search.duckduckgo import DuckDuckGo
from goat_mcp.web.search.provider import ProviderRequest, SearchProvider, SearchQuery
from goat_mcp.web.search.providers import Brave, Exa, Searxng, Tavily

KEY = "sekrit"
PLAIN = SearchQuery("tom & jerry", 7)
ALLOWED = SearchQuery("tom", 7, allowed=("a.com", "b.org"))
BLOCKED = SearchQuery("tom", 7, blocked=("a.com", "b.org"))


def parameters(request: ProviderRequest) -> dict[str, str]:
    """The query string, or the form."""
    text = urlsplit(request.path).query if request.content is None else request.content.decode()
    return {name: values[0] for name, values in parse_qs(text, keep_blank_values=True).items()}


def body(request: ProviderRequest) -> Any:
    assert request.content is not None
    return json.loads(request.content)


def test_brave_gets_its_key_in_a_header_and_never_in_the_url() -> None:
    request = Brave().request(PLAIN, KEY)

    assert request.headers["X-Subscription-Token"] == KEY
    assert (request.method, request.path.partition("?")[0], request.content) == ("GET", "/res/v1/web/search", None)
    assert parameters(request) == {
        "q": "tom & jerry",
        "count": "7",
        "result_filter": "web",
        "text_decorations": "false",
    }
    assert KEY not in request.path


@pytest.mark.parametrize("provider", [Brave(), Searxng(), DuckDuckGo()], ids=lambda provider: provider.name)
@pytest.mark.parametrize(
    ("query", "asked"),
    [
        (SearchQuery("tom", 7, allowed=("a.com",)), "tom site:a.com"),
        (ALLOWED, "tom (site:a.com OR site:b.org)"),
        (BLOCKED, "tom -site:a.com -site:b.org"),
    ],
)
def test_domains_travel_as_operators(provider: SearchProvider, query: SearchQuery, asked: str) -> None:
    assert parameters(provider.request(query, KEY))["q"] == asked


def test_with_a_filter_of_ours_to_come_brave_is_asked_for_a_whole_page() -> None:
    assert [parameters(Brave().request(query, KEY))["count"] for query in (PLAIN, ALLOWED, BLOCKED)] == [
        "7",
        "20",
        "20",
    ]


def test_operators_that_do_not_fit_stay_at_home() -> None:
    domains = tuple(f"{letter * 20}.com" for letter in "abcdefghijklmnopqrst")
    some_blocked = parameters(Brave().request(SearchQuery("w " * 10 + "w", 7, blocked=domains), KEY))["q"]
    no_allowed = parameters(Brave().request(SearchQuery("tom", 7, allowed=domains), KEY))["q"]
    many_words = parameters(Brave().request(SearchQuery("w " * 49 + "w", 7, blocked=domains), KEY))["q"]

    assert 350 < len(some_blocked) <= 400 and some_blocked.endswith(".com")
    assert no_allowed == "tom"
    assert "site:" not in many_words


def test_searxng_is_asked_for_json_and_gets_no_key() -> None:
    request = Searxng().request(PLAIN, KEY)

    assert parameters(request) == {"q": "tom & jerry", "format": "json"}
    assert KEY not in repr(request)


def test_tavily_has_parameters_for_domains() -> None:
    request = Tavily().request(ALLOWED, KEY)

    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert (request.method, request.path) == ("POST", "/search")
    assert body(request) == {
        "query": "tom",
        "max_results": 7,
        "search_depth": "basic",
        "include_domains": ["a.com", "b.org"],
    }
    assert body(Tavily().request(BLOCKED, KEY))["exclude_domains"] == ["a.com", "b.org"]
    assert not {"include_domains", "exclude_domains"} & set(body(Tavily().request(PLAIN, KEY)))


def test_exa_has_parameters_for_domains() -> None:
    request = Exa().request(ALLOWED, KEY)

    assert request.headers["x-api-key"] == KEY
    assert (request.method, request.path) == ("POST", "/search")
    assert body(request) == {
        "query": "tom",
        "type": "auto",
        "numResults": 7,
        "contents": {"highlights": {"maxCharacters": 500}},
        "includeDomains": ["a.com", "b.org"],
    }
    assert body(Exa().request(BLOCKED, KEY))["excludeDomains"] == ["a.com", "b.org"]
    assert not {"includeDomains", "excludeDomains"} & set(body(Exa().request(PLAIN, KEY)))


def test_duckduckgo_gets_the_form_of_its_first_page_and_no_key() -> None:
    request = DuckDuckGo().request(PLAIN, KEY)

    assert (request.method, request.path) == ("POST", "/html/")
    assert request.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert parameters(request) == {"q": "tom & jerry", "b": "", "kl": "wt-wt"}
    assert KEY not in repr(request)


@pytest.mark.parametrize(
    ("query", "asked"),
    [("!w tom", '"!w" tom'), ("\\tom cat", '"\\tom" cat'), ("tom !", 'tom "!"'), ("wow! tom", "wow! tom")],
)
def test_words_that_send_duckduckgos_searchers_elsewhere_are_quoted(query: str, asked: str) -> None:
    assert parameters(DuckDuckGo().request(SearchQuery(query, 7), ""))["q"] == asked
