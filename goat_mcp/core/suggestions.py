"""The names that are nearest to one that does not exist, for error messages."""

from __future__ import annotations

from collections.abc import Iterable

MAX_SUGGESTIONS = 5
_MAX_GIVEN_CHARS = 100
"""Comparing takes time with the square of the length; what is longer is no typing mistake."""


def nearest(given: str, known: Iterable[str], *, most: int = MAX_SUGGESTIONS, cutoff: float = 0.6) -> list[str]:
    """At most `most` of `known`, nearest first, without regard to case and to `-` or `_`."""
    from difflib import get_close_matches  # only an error needs it

    by_key: dict[str, str] = {}
    for name in known:
        by_key.setdefault(_key(name), name)
    return [by_key[key] for key in get_close_matches(_key(given[:_MAX_GIVEN_CHARS]), by_key, n=most, cutoff=cutoff)]


def did_you_mean(given: str, known: Iterable[str], *, most: int = MAX_SUGGESTIONS, cutoff: float = 0.6) -> str:
    """`did you mean a, b or c?`; empty if nothing is near."""
    near = nearest(given, known, most=most, cutoff=cutoff)
    if not near:
        return ""
    *first, last = near
    return f"did you mean {', '.join(first)} or {last}?" if first else f"did you mean {last}?"


def _key(name: str) -> str:
    return name.casefold().replace("_", "-")
