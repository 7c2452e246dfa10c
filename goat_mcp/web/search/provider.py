"""What a search provider is: how a query becomes one HTTP request, and its answer a list of hits.

A provider knows its wire format and nothing else. Sending, retrying and errors live in `search_client`, keys in
`configured_provider`."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

MAX_SNIPPET_CHARS = 500
"""Characters of one result's snippet that are shown."""


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """`text` is on one line. Of `allowed` and `blocked`, ASCII domains that cover their subdomains, one is empty."""

    text: str
    max_results: int
    allowed: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """`path` starts with `/` and follows the base URL; it carries the query string."""

    method: Literal["GET", "POST"]
    path: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One result as the provider gave it: plain text, but neither shortened nor made safe to show."""

    title: str
    url: str
    snippet: str


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """`notice` is what the provider says of its own answer, e.g. which of its engines failed."""

    hits: tuple[SearchHit, ...]
    notice: str = ""


class UnexpectedFormat(Exception):
    """The answer is not in the provider's format; the text says what it is."""


class ChallengedByProvider(Exception):
    """The provider wants to see a person before it answers."""


@dataclass(frozen=True, kw_only=True)
class SearchProvider(ABC):
    """The wire format of one provider.

    Attributes:
        base_url: the public address; empty if there is none.
        key_variable: the environment variable that customarily holds the key; empty if none is needed.
        advice: what to do about a status that means something of its own here.
    """

    name: str
    base_url: str = ""
    key_variable: str = ""
    max_query_chars: int = 2000
    advice: Mapping[int, str] = field(default_factory=dict[int, str])

    @abstractmethod
    def request(self, query: SearchQuery, key: str) -> ProviderRequest: ...

    def refuses_key(self, status: int, body: bytes) -> bool:
        return bool(self.key_variable) and status in (401, 403)

    @abstractmethod
    def read(self, body: bytes) -> ProviderAnswer:
        """Raises `UnexpectedFormat` for what is not an answer, `ChallengedByProvider` for a challenge."""


def with_site_operators(query: SearchQuery, *, max_chars: int, max_words: int = 10_000) -> str:
    """The query's text with operators for its domains, as far as they fit.

    Some of several allowed domains would hide the others, so all of them go along or none; of blocked ones each helps.
    What does not fit, and what a provider ignores, is filtered from the results anyway.
    """
    if query.allowed:
        alternatives = " OR ".join(f"site:{domain}" for domain in query.allowed)
        text = f"{query.text} ({alternatives})" if len(query.allowed) > 1 else f"{query.text} {alternatives}"
        return text if _fits(text, max_chars, max_words) else query.text
    text = query.text
    for domain in query.blocked:
        longer = f"{text} -site:{domain}"
        if not _fits(longer, max_chars, max_words):
            break
        text = longer
    return text


def _fits(text: str, max_chars: int, max_words: int) -> bool:
    return len(text) <= max_chars and len(text.split()) <= max_words


def read_object(body: bytes) -> dict[str, Any]:
    """Raises `UnexpectedFormat`."""
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError):
        start = body.lstrip()[:200].lower()
        kind = "a web page" if start.startswith((b"<!doctype", b"<html", b"<head", b"<body")) else "no JSON"
        raise UnexpectedFormat(f"it is {kind} ({len(body)} bytes)") from None
    if not isinstance(answer, dict):
        raise UnexpectedFormat(f"it is JSON, but a {type(answer).__name__} and no object")
    return cast("dict[str, Any]", answer)


def objects(value: Any, where: str) -> list[dict[str, Any]]:
    """The objects of a list. Raises `UnexpectedFormat` if there is no list: that is not "nothing found"."""
    if not isinstance(value, list):
        raise UnexpectedFormat(f"it has no list {where!r}")
    return [cast("dict[str, Any]", item) for item in cast("list[Any]", value) if isinstance(item, dict)]


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""
