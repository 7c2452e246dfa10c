"""DuckDuckGo through the page it serves to browsers without scripts: it has no search API and wants no key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

from goat_mcp.web.pages.html_tokens import tokens
from goat_mcp.web.search.provider import (
    ChallengedByProvider,
    ProviderAnswer,
    ProviderRequest,
    SearchHit,
    SearchProvider,
    SearchQuery,
    UnexpectedFormat,
    with_site_operators,
)

_PAGE = "https://html.duckduckgo.com/html/"
_CHALLENGE_FORM = "challenge-form"
_NO_RESULTS = frozenset({"no-results", "result--no-result"})
_PROGRAMS = frozenset({"script", "style"})


@dataclass(frozen=True, kw_only=True)
class DuckDuckGo(SearchProvider):
    """Read from the page for browsers without scripts."""

    name: str = "duckduckgo"
    base_url: str = "https://html.duckduckgo.com"
    max_query_chars: int = 499

    def request(self, query: SearchQuery, key: str) -> ProviderRequest:
        asked = with_site_operators(replace(query, text=_without_bangs(query.text)), max_chars=self.max_query_chars)
        form = {"q": asked, "b": "", "kl": "wt-wt"}  # first page, no region
        headers = {
            "Accept": "text/html",
            "Content-Type": "application/x-www-form-urlencoded",
            "Referer": "https://html.duckduckgo.com/",
        }
        return ProviderRequest("POST", "/html/", headers, urlencode(form).encode())

    def read(self, body: bytes) -> ProviderAnswer:
        reader = _ResultPage()
        for kind, text, attributes, _ in tokens(body.decode("utf-8", "replace")):
            if kind == "text":
                reader.text(text)
            elif kind == "start":
                reader.start(text, attributes)
            else:
                reader.end(text)
        if reader.is_challenge:
            raise ChallengedByProvider
        if not reader.hits and not reader.says_nothing_found:
            raise UnexpectedFormat(f"it is no page of results ({len(body)} bytes)")
        return ProviderAnswer(tuple(reader.hits))


class _ResultPage:
    """Collects results while the page goes by. A result is `a.result__a`, then `.result__snippet`."""

    def __init__(self) -> None:
        self.hits: list[SearchHit] = []
        self.is_challenge = False
        self.says_nothing_found = False
        self._in_ad = False
        self._url = ""
        self._ends_with = ""
        self._in_program = False
        self._is_title = False
        self._texts: list[str] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._in_program = tag in _PROGRAMS
        if self._ends_with:
            return
        classes = frozenset(attributes.get("class", "").split())
        self.is_challenge = self.is_challenge or attributes.get("id") == _CHALLENGE_FORM
        self.says_nothing_found = self.says_nothing_found or bool(classes & _NO_RESULTS)
        if "result" in classes:
            self._in_ad, self._url = "result--ad" in classes, ""
        if "result__a" in classes:
            self._url = "" if self._in_ad else _target(attributes.get("href", ""))
            self._is_title = True
        elif "result__snippet" in classes:
            self._is_title = False
        else:
            return
        if self._url:
            self._ends_with = tag

    def end(self, tag: str) -> None:
        self._in_program = False
        if self._ends_with and tag == self._ends_with:
            self._keep("".join(self._texts))

    def text(self, text: str) -> None:
        if self._ends_with and not self._in_program:
            self._texts.append(text)

    def _keep(self, text: str) -> None:
        if self._is_title:
            self.hits.append(SearchHit(text, self._url, ""))
        else:
            self.hits[-1] = replace(self.hits[-1], snippet=text)
        self._texts, self._ends_with = [], ""


def _target(link: str) -> str:
    """Where a result leads: its links go through `/l/?uddg=TARGET`, those of advertisers through `/y.js`."""
    try:
        whole = urljoin(_PAGE, link)
        parts = urlsplit(whole)
    except ValueError:
        return ""
    host = parts.hostname or ""
    if host != "duckduckgo.com" and not host.endswith(".duckduckgo.com"):
        return whole
    if parts.path.rstrip("/") == "/l":
        return parse_qs(parts.query).get("uddg", [""])[0]
    return "" if parts.path == "/y.js" else whole


def _without_bangs(query: str) -> str:
    """`!w` and `\\` before a word send the searcher elsewhere; quoted, they are words."""
    words = [f'"{word}"' if word.startswith(("!", "\\")) and '"' not in word else word for word in query.split(" ")]
    return " ".join(words)
