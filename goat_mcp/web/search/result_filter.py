"""What of a provider's hits is shown: wanted domains only, each page once, nothing that hides or forges.

Titles and snippets come from pages anybody may have written, URLs included. Each becomes one line, so that a snippet
cannot pass for the next result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from goat_mcp.files.documents.visible_text import drop_hidden
from goat_mcp.web.http.domains import ascii_host, host_is_in_domain
from goat_mcp.web.search.provider import MAX_SNIPPET_CHARS, SearchHit, SearchQuery

MAX_TITLE_CHARS = 150
MAX_URL_CHARS = 800
# Browsers read a backslash as a slash, others do not: what one takes for the host, another takes for a user name.
_AMBIGUOUS_IN_URL = re.compile(r"[\\\x00-\x1f\x7f]|[^\S ]")
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class FilteredResults:
    """`other_domains` counts what was left out for its domain."""

    results: tuple[SearchHit, ...]
    other_domains: int


def filter_results(hits: Iterable[SearchHit], query: SearchQuery) -> FilteredResults:
    results: list[SearchHit] = []
    seen: set[str] = set()
    other_domains = 0
    for hit in hits:
        page = _page(hit.url)
        if page is None or page.key in seen:
            continue
        if not _is_in_domains(page.host, query):
            other_domains += 1
            continue
        if len(results) == query.max_results:
            break
        seen.add(page.key)
        title = one_line(hit.title, MAX_TITLE_CHARS) or page.host
        results.append(SearchHit(title, page.url, one_line(hit.snippet, MAX_SNIPPET_CHARS)))
    return FilteredResults(tuple(results), other_domains)


@dataclass(frozen=True, slots=True)
class _Page:
    """`key` is alike for URLs of one page: they may differ in scheme, usual port, `www.`, last slash and fragment."""

    url: str
    host: str
    key: str


def _page(url: str) -> _Page | None:
    """A result's URL as it is shown; None for one that is no web address, or can be read in more than one way."""
    url = drop_hidden(url.strip())
    if _AMBIGUOUS_IN_URL.search(url):
        return None
    try:
        parts = urlsplit(url)
        port, host = parts.port, ascii_host(parts.hostname or "")
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or "@" in parts.netloc:
        return None
    place = host if port in (None, _DEFAULT_PORTS[parts.scheme]) else f"{host}:{port}"
    path = quote(parts.path, safe="/%:@!$&'()*+,;=~-._")
    query = f"?{quote(parts.query, safe='/%:@!$&()*+,;=~-._?')}" if parts.query else ""
    fragment = f"#{quote(parts.fragment, safe='/%:@!$&()*+,;=~-._?')}" if parts.fragment else ""
    shown = f"{parts.scheme}://{place}{path}{query}{fragment}"
    if len(shown) > MAX_URL_CHARS:
        return None
    key = f"{place.removeprefix('www.')}{path.rstrip('/')}{query}"
    return _Page(shown, host, key)


def _is_in_domains(host: str, query: SearchQuery) -> bool:
    if query.allowed:
        return any(host_is_in_domain(host, domain) for domain in query.allowed)
    return not any(host_is_in_domain(host, domain) for domain in query.blocked)


def one_line(text: str, max_chars: int) -> str:
    """Text of others as one line of at most `max_chars`, without characters that hide or reorder."""
    line = drop_hidden(" ".join(text.split()))
    return line if len(line) <= max_chars else f"{line[: max_chars - 1].rstrip()}…"
