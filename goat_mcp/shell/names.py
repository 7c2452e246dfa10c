"""A program's name in a command, and its spellings."""

from __future__ import annotations


def bare_name(word: str) -> str:
    """The name without its directory."""
    return word.rstrip("/").rpartition("/")[2] or word
