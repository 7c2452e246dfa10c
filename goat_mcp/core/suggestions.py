"""The names that are nearest to one that does not exist, for error messages."""

from __future__ import annotations

from collections.abc import Iterable

MAX_SUGGESTIONS = 5
_MAX_WORSE = 0.1
_MAX_GIVEN_CHARS = 100
"""Comparing takes time with the square of the length; what is longer is no typing mistake."""


def nearest(given: str, known: Iterable[str], *, most: int = MAX_SUGGESTIONS, cutoff: float = 0.6) -> list[str]:
    """At most `most` of `known`, nearest first, without regard to case and to `-` or `_`.

    What is much less alike than the nearest one is left out: it was not meant.
    """
    from difflib import SequenceMatcher, get_close_matches  # only an error needs it

    by_key: dict[str, dict[str, None]] = {}
    for name in known:
        by_key.setdefault(_key(name), {})[name] = None
    key = _key(given[:_MAX_GIVEN_CHARS])
    found = get_close_matches(key, by_key, n=most, cutoff=cutoff)
    alike = [SequenceMatcher(None, one, key).ratio() for one in found]
    near = (by_key[one] for one, ratio in zip(found, alike, strict=True) if ratio >= alike[0] - _MAX_WORSE)
    return [name for names in near for name in names][:most]


def did_you_mean(given: str, known: Iterable[str], *, most: int = MAX_SUGGESTIONS, cutoff: float = 0.6) -> str:
    """`did you mean a, b or c?`; empty if nothing is near."""
    return one_of(nearest(given, known, most=most, cutoff=cutoff))


def one_of(near: Iterable[str]) -> str:
    """The same question about at most five names that were found in another way."""
    *first, last = list(near)[:MAX_SUGGESTIONS] or [""]
    if not last:
        return ""
    return f"did you mean {', '.join(first)} or {last}?" if first else f"did you mean {last}?"


def _key(name: str) -> str:
    return name.casefold().replace("_", "-")
