"""The words of a command, and its program's name among them."""

from __future__ import annotations

Words = tuple[str, ...]
"""Of one command, unquoted, its program first."""


def bare_name(word: str) -> str:
    """The name without its directory."""
    return word.rstrip("/").rpartition("/")[2] or word
