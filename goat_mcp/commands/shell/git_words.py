"""Where git's verb stands behind its global options."""

from __future__ import annotations

from collections.abc import Sequence

from goat_mcp.commands.shell.names import Words

_WITH_VALUE = frozenset(
    {"-c", "-C", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix", "--exec-path"}
    | {"--attr-source"}
)


def verb_index(rest: Sequence[str]) -> int:
    """Of the words behind `git`; their number where there is no verb."""
    index = 0
    while index < len(rest) and rest[index].startswith("-"):
        index += 2 if rest[index] in _WITH_VALUE else 1
    return min(index, len(rest))


def without_global_options(words: Words) -> Words:
    return (words[0], *words[1 + verb_index(words[1:]) :])
