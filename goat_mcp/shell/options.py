"""Which options of allow-listed programs go beyond what the program's bare name suggests (R-SHELL-4)."""

from __future__ import annotations

from collections.abc import Sequence

from goat_mcp.shell.names import bare_name
from goat_mcp.shell.unwrapping import SHELLS, WRAPPERS

_RUNNERS = frozenset(
    {"eval", "source", ".", "trap", "alias", "hash", "history", "enable", "set", "shopt", "mapfile", "readarray"}
    | {"ssh", "awk", "gawk", "mawk", "python", "python3", "perl", "ruby", "node"}
)
_WITH_OPTIONS = frozenset(
    {"git", "find", "sort", "sed", "rg", "tar", "man", "date", "make", "cargo", "go", "npm", "yarn", "pnpm", "uniq"}
    | {"printf"}
)


def unsafe_option(words: Sequence[str], *, named_words: int = 1) -> str:
    """Empty, or why a rule with a wildcard does not cover this command although it names the program.

    `named_words`: how many of the first words the rule spells out (`git commit *`: 2).
    """
    name = bare_name(words[0])
    if name in SHELLS or name in WRAPPERS or name in _RUNNERS:
        return f"{name} runs what its arguments say; only a rule that spells the whole command covers it"
    if name in _WITH_OPTIONS:
        for word in words[1:]:
            if word.startswith("-") and len(word) > 1:
                return f"{name} {word.partition('=')[0]} is not known to be harmless"
    return ""
