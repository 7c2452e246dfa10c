"""`agent.command`: the words of a command line with placeholders, filled in for one run.

A word may be a list: a group that is left out where one of its placeholders stands for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

PLACEHOLDERS = (
    *("prompt", "system", "model", "effort", "max_turns", "resume", "directory"),
    *("allowed_tools", "denied_tools", "mode"),
)
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")

Word = str | tuple[str, ...]


def _check_list(words: Any) -> Any:
    if isinstance(words, str):
        raise ValueError('wants a list of words, e.g. ["claude", "-p"]')
    return words


def _check(words: tuple[Word, ...]) -> tuple[Word, ...]:
    if not words:
        return words
    program = words[0]
    if not isinstance(program, str) or not program or _PLACEHOLDER.search(program):
        raise ValueError("the first word is the program: a text without placeholders")
    if "/" in program and not program.startswith(("/", "~/")):
        # It would be looked for in the workspace, where a model may have put it.
        raise ValueError("the program is a name in the PATH, or an absolute path")
    if any("\0" in part for part in _parts(words)):
        raise ValueError("a word holds a NUL character")
    for name in sorted(placeholders_in(words) - set(PLACEHOLDERS)):
        known = ", ".join(f"{{{known}}}" for known in PLACEHOLDERS)
        raise ValueError(f"{{{name}}} is no placeholder; known are {known}")
    return words


CommandWords = Annotated[tuple[Word, ...], BeforeValidator(_check_list), AfterValidator(_check)]


def placeholders_in(words: Sequence[Word]) -> set[str]:
    """The placeholders of a command line."""
    return {name for part in _parts(words) for name in _PLACEHOLDER.findall(part)}


def fill_words(words: Sequence[Word], values: Mapping[str, str]) -> list[str]:
    """The command line of one run. What is filled in is one word, whatever is in it, and never an option."""

    def fill(part: str) -> str:
        word = _PLACEHOLDER.sub(lambda match: values[match[1]], part)
        # What no argument can hold.
        word = word.replace("\0", "").encode("utf-8", "replace").decode()
        # A prompt that begins with `--` is a model's, and options are the user's.
        return f" {word}" if word.startswith("-") and not part.startswith("-") else word

    line: list[str] = []
    for word in words:
        if isinstance(word, str):
            line.append(fill(word))
        elif all(values[name] for name in placeholders_in((word,))):
            line.extend(map(fill, word))
    return line


def _parts(words: Sequence[Word]) -> list[str]:
    return [part for word in words for part in ((word,) if isinstance(word, str) else word)]
