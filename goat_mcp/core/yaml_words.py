"""Words that YAML 1.1 reads as truth values: `off` and `no` are false, `on` and `yes` true."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

_WORDS = {True: ("on", "yes"), False: ("off", "no")}
_ALL = frozenset(word for words in _WORDS.values() for word in words)


def meant_word(value: Any, choices: Collection[Any]) -> Any:
    """`value`; for a truth value that is no choice, the one word among `choices` that YAML reads so."""
    if not isinstance(value, bool) or any(one is value for one in choices):
        return value
    words = [word for word in _WORDS[value] if word in choices]
    return words[0] if len(words) == 1 else value


def is_word(text: str) -> bool:
    """Whether it is one of these words, in any spelling that YAML reads so (`Off`, `NO`)."""
    return text.lower() in _ALL
