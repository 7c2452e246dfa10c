"""The search providers, and the one that the settings name. DuckDuckGo, read from HTML, has a file of its own."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.substitution import Unresolved
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.web.options import ProviderName, SearchOptions
from goat_mcp.web.search.duckduckgo import DuckDuckGo
from goat_mcp.web.search.provider import (
    MAX_SNIPPET_CHARS,
    ProviderAnswer,
    ProviderRequest,
    SearchHit,
    SearchProvider,
    SearchQuery,
    UnexpectedFormat,
    objects,
    read_object,
    text,
    with_site_operators,
)

_MAX_ENGINES = 5


@dataclass(frozen=True, kw_only=True)
class Searxng(SearchProvider):
    """A metasearch engine people host themselves. Source: its documentation, "Search API"."""

    name: str = "searxng"
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

    def read(self, body: bytes) -> ProviderAnswer:
        answer = read_object(body)
        hits = tuple(
            SearchHit(text(item.get("title")), text(item.get("url")), text(item.get("content")))
            for item in objects(answer.get("results"), "results")
        )
        return ProviderAnswer(hits, _silent_engines(answer.get("unresponsive_engines")))


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


BRAVE_MAX_COUNT = 20
BRAVE_MAX_WORDS = 50
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")


@dataclass(frozen=True, kw_only=True)
class Brave(SearchProvider):
    """Source: its API reference, "Web search" (GET /res/v1/web/search)."""

    name: str = "brave"
    base_url: str = "https://api.search.brave.com"
    key_variable: str = "BRAVE_API_KEY"
    max_query_chars: int = 400

    def request(self, query: SearchQuery, key: str) -> ProviderRequest:
        asked = with_site_operators(query, max_chars=self.max_query_chars, max_words=BRAVE_MAX_WORDS)
        # Operators are hints here: with a filter of ours to come, ask for all there is on a page.
        count = BRAVE_MAX_COUNT if query.allowed or query.blocked else query.max_results
        parameters = {"q": asked, "count": count, "result_filter": "web", "text_decorations": "false"}
        headers = {"Accept": "application/json", "X-Subscription-Token": key}
        return ProviderRequest("GET", "/res/v1/web/search?" + urlencode(parameters), headers)

    def refuses_key(self, status: int, body: bytes) -> bool:
        # A key Brave does not know is a 422, as is a query it cannot take; the code in the body tells them apart.
        return status in (401, 403) or (status == 422 and b"SUBSCRIPTION_TOKEN" in body)

    def read(self, body: bytes) -> ProviderAnswer:
        answer = read_object(body)
        web: Any = answer.get("web")
        if web is None and answer.get("type") == "search":
            return ProviderAnswer(())  # "web" is left out if nothing was found
        if not isinstance(web, dict):
            raise UnexpectedFormat("it has no object 'web'")
        items = objects(cast("dict[str, Any]", web).get("results"), "web.results")
        return ProviderAnswer(
            tuple(
                SearchHit(
                    _without_markup(item.get("title")), text(item.get("url")), _without_markup(item.get("description"))
                )
                for item in items
            )
        )


def _without_markup(value: Any) -> str:
    """Titles and descriptions are HTML: entities, and `<strong>` in spite of `text_decorations`."""
    return html.unescape(_TAG.sub("", text(value)))


@dataclass(frozen=True, kw_only=True)
class Tavily(SearchProvider):
    """Source: its API reference, "Search" (POST /search)."""

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

    def read(self, body: bytes) -> ProviderAnswer:
        items = objects(read_object(body).get("results"), "results")
        return ProviderAnswer(
            tuple(
                SearchHit(text(item.get("title")), text(item.get("url")), text(item.get("content"))) for item in items
            )
        )


@dataclass(frozen=True, kw_only=True)
class Exa(SearchProvider):
    """Source: its API reference, "Search" (POST /search) and "Error codes"."""

    name: str = "exa"
    base_url: str = "https://api.exa.ai"
    key_variable: str = "EXA_API_KEY"
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

    def read(self, body: bytes) -> ProviderAnswer:
        items = objects(read_object(body).get("results"), "results")
        return ProviderAnswer(
            tuple(SearchHit(text(item.get("title")), text(item.get("url")), _highlights(item)) for item in items)
        )


def _highlights(item: dict[str, Any]) -> str:
    """The highlights; the page's text where an older or other server sent that instead."""
    highlights: Any = item.get("highlights")
    if isinstance(highlights, list) and highlights:
        return " … ".join(text(part) for part in cast("list[Any]", highlights))
    return text(item.get("text"))


PROVIDERS: dict[ProviderName, SearchProvider] = {
    "searxng": Searxng(),
    "brave": Brave(),
    "tavily": Tavily(),
    "exa": Exa(),
    "duckduckgo": DuckDuckGo(),
}


_SHORTEST_HIDDEN_CHARS = 6
_STEPS = (
    "Ask the user to set web.search.provider: duckduckgo (no key); brave, tavily or exa, each with its key in "
    "{variables} or in web.search.key; or searxng with web.search.base_url. "
    "E.g. `--set web.search.provider=duckduckgo`, or GOAT_MCP_WEB__SEARCH__PROVIDER=duckduckgo, then a new start."
)


@dataclass(frozen=True)
class ConfiguredProvider:
    """`key_source` and `address` say in words where the two came from, for errors."""

    wire: SearchProvider
    base_url: str
    address: str
    allow_hosts: tuple[str, ...]
    key: str = field(default="", repr=False)
    key_source: str = ""

    def without_key(self, text: str) -> str:
        """A text of the provider, or about it, that does not show the key."""
        return text.replace(self.key, "[key]") if len(self.key) >= _SHORTEST_HIDDEN_CHARS else text


def configured_provider(options: SearchOptions, references: SecretReferences) -> ConfiguredProvider:
    """Raises `ToolError` NOT_CONFIGURED, or CONFIG for a key that cannot be one."""
    if options.provider is None:
        variables = ", ".join(wire.key_variable for wire in PROVIDERS.values() if wire.key_variable)
        raise ToolError(
            ErrorCode.NOT_CONFIGURED, "no search provider is configured", _STEPS.format(variables=variables)
        )
    wire = PROVIDERS[options.provider]
    base_url = options.base_url or wire.base_url
    if not base_url:
        raise ToolError(
            ErrorCode.NOT_CONFIGURED,
            f"web.search.provider is {wire.name}, but no instance of it is named",
            "Ask the user to set web.search.base_url to its address, e.g. http://localhost:8080.",
        )
    key, key_source = _key(wire, options, references) if wire.key_variable else ("", "")
    parts = urlsplit(base_url)
    place = f"{parts.scheme}://{parts.netloc}"
    if options.base_url:
        # What the user names may be private, or a proxy on this machine.
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return ConfiguredProvider(
            wire, base_url, f"{place}, from web.search.base_url", (f"{_host(parts.netloc)}:{port}",), key, key_source
        )
    return ConfiguredProvider(wire, base_url, place, (), key, key_source)


def _host(netloc: str) -> str:
    """The host with the brackets an IPv6 address has in a URL, without a port."""
    return f"{netloc.partition(']')[0]}]" if netloc.startswith("[") else netloc.partition(":")[0]


def _key(wire: SearchProvider, options: SearchOptions, references: SecretReferences) -> tuple[str, str]:
    setting = options.key.get_secret_value()
    source = "web.search.key" if setting else f"the environment variable {wire.key_variable}"
    try:
        if setting:
            key = references.secret(setting)
        else:
            key = references.environ.get(wire.key_variable, "").strip()
            references.hide(key)
    except Unresolved as missing:
        raise ToolError(ErrorCode.NOT_CONFIGURED, f"web.search.key: {missing}", "Ask the user to do so.") from None
    if not key:
        raise ToolError(
            ErrorCode.NOT_CONFIGURED,
            f"web.search.provider is {wire.name}, which wants a key, and there is none",
            f"Ask the user to put it into the environment variable {wire.key_variable} or into web.search.key.",
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ToolError(
            ErrorCode.CONFIG,
            f"{source} holds characters no key has (blanks, line ends or others beyond ASCII)",
            "Ask the user to copy the key once more.",
        )
    return key, source
