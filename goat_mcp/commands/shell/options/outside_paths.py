"""Words of a command that lead elsewhere than into the directory it runs in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from goat_mcp.commands.shell.options.table import Arguments

_ELSEWHERE = re.compile(r"(?:^|=)/|(?:^|[/=])\.\.(?:/|:|$)|://|(?:^|=)[A-Za-z]:[/\\]")


def leads_elsewhere(word: str) -> bool:
    """Whether a word, or the value after its `=`, is an absolute path, goes up by `..` or is an address."""
    return _ELSEWHERE.search(word) is not None


def only_here(arguments: Arguments) -> str:
    """Empty, or which operand a program would run or take its configuration from although it lies elsewhere.

    Source: R-SHELL-4; programs such as pytest run what a file or the folders around it hold.
    """
    return _elsewhere(word for word in arguments.operands if word.startswith("@") or leads_elsewhere(word))


def only_here_with_values(arguments: Arguments) -> str:
    """As `only_here`, of the values of options, too: if some of them choose a configuration."""
    return only_here(arguments) or _elsewhere(value for _, value in arguments.given if value and leads_elsewhere(value))


def _elsewhere(words: Iterator[str]) -> str:
    word = next(words, "")
    return f"{word} may lie outside of what the rule was meant for" if word else ""
