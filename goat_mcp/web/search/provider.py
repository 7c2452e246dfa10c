"""What a search provider is: how a query becomes one HTTP request, and its answer a list of hits.

A provider knows its wire format and nothing else. Keys, sending, retrying and errors live in `asking`; what of the
hits is shown, in `shown_results`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

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
class Hit:
    """One result as the provider gave it: plain text, but neither shortened nor made safe to show."""

    title: str
    url: str
    snippet: str


@dataclass(frozen=True, slots=True)
class Found:
    """`notice` is what the provider says of its own answer, e.g. which of its engines failed."""

    hits: tuple[Hit, ...]
    notice: str = ""


class NotUnderstood(Exception):
    """The answer is not in the provider's format; the text says what it is."""


class Blocked(Exception):
    """The provider wants to see a person before it answers."""


class SearchProvider(Protocol):
    """The wire format of one provider."""

    @property
    def name(self) -> str: ...

    @property
    def base_url(self) -> str:
        """The public address, or empty where there is none."""
        ...

    @property
    def key_variable(self) -> str:
        """The environment variable that customarily holds the key, or empty where none is needed."""
        ...

    @property
    def max_query_chars(self) -> int: ...

    @property
    def advice(self) -> Mapping[int, str]:
        """What to do about a status that means something of its own here."""
        ...

    def request(self, query: SearchQuery, key: str) -> ProviderRequest: ...

    def refuses_key(self, status: int, body: bytes) -> bool: ...

    def read(self, body: bytes) -> Found:
        """Raises `NotUnderstood` for what is not an answer, `Blocked` for a challenge."""
        ...
