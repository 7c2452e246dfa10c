"""Programs without a table: a wildcard rule covers what it spells out, and plain words after that. Options,
assignments, files of arguments and verbs that run something are asked about (R-SHELL-4)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence

from goat_mcp.commands.shell.options.table import names

RUNNING_VERBS = names(
    "run exec x dlx shell ssh eval execute sh bash repl console call invoke spawn script run-script source attach "
    "debug interactive plugin plugins extension"
)
"""What programs call it when they run another one."""
_ASSIGNMENT = re.compile(r"[A-Za-z_][\w.-]*\+?=")


def unknown_problem(words: Sequence[str], named_words: int, spelled: Collection[str] = ()) -> str:
    """Empty, or which word goes beyond what the rule spells, and the rule that would cover it.

    `named_words`: how many of the first words the rule spells out; `spelled`: the words it spells out elsewhere.
    """
    if len(words) == 2 and words[1] in ("--version", "--help"):
        return ""
    beyond = [
        index
        for index, word in enumerate(words)
        if index >= max(named_words, 1) and word not in spelled and _is_no_plain_word(word)
    ]
    if not beyond:
        return ""
    rule = shlex.join(words[: beyond[-1] + 1])
    return f"{words[beyond[0]]} is not known to be harmless; a rule that spells it out covers it: Bash({rule} *)"


def _is_no_plain_word(word: str) -> bool:
    return (
        (word.startswith("-") and word != "-")
        or word.startswith("@")
        or _ASSIGNMENT.match(word) is not None
        # Maven and its like: exec:java.
        or word.partition(":")[0] in RUNNING_VERBS
    )
