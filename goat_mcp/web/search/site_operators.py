"""Domains as `site:` operators, for providers that have no parameter for them."""

from __future__ import annotations

from goat_mcp.web.search.provider import SearchQuery


def with_site_operators(query: SearchQuery, *, max_chars: int, max_words: int = 10_000) -> str:
    """The query's text with operators for its domains, as far as they fit.

    Some of several allowed domains would hide the others, so all of them go along or none; of blocked ones each helps.
    What does not fit, and what a provider ignores, is filtered from the results anyway.
    """
    if query.allowed:
        alternatives = " OR ".join(f"site:{domain}" for domain in query.allowed)
        asked = f"{query.text} ({alternatives})" if len(query.allowed) > 1 else f"{query.text} {alternatives}"
        return asked if _fits(asked, max_chars, max_words) else query.text
    asked = query.text
    for domain in query.blocked:
        longer = f"{asked} -site:{domain}"
        if not _fits(longer, max_chars, max_words):
            break
        asked = longer
    return asked


def _fits(asked: str, max_chars: int, max_words: int) -> bool:
    return len(asked) <= max_chars and len(asked.split()) <= max_words
