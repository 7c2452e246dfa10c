"""Whether a script would end goat-mcp itself. It serves a message: what is hidden well enough is not found."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from goat_mcp.commands.shell.script_parsing import read_script
from goat_mcp.core import posix
from goat_mcp.processes.process_table import command_line, living_process

_SERVER_NAMES = ("goat-mcp", "goat_mcp")
_PKILL_VALUE_OPTIONS = frozenset("PgGstuUFdrq")


def kill_of_this_server(script: str) -> str | None:
    """The words of the first command in `script` that would signal this process, else None.

    Looks at `pkill` and `killall` by the patterns that match this process (or its name, goat-mcp), and at `kill`
    with its number, `$PPID` (that is us, for a command) or `-1` (everybody).
    """
    judges = {"pkill": _pkill, "killall": _killall, "kill": _kill}
    for name, *words in read_script(script).all_commands:
        if name in judges and judges[name](words):
            return " ".join((name, *words))
    return None


def _pkill(arguments: Sequence[str]) -> bool:
    full = exact = ignore_case = narrowed = False
    patterns: list[str] = []
    words = iter(arguments)
    for word in words:
        if word.startswith("--"):
            full, exact = full or word == "--full", exact or word == "--exact"
            ignore_case = ignore_case or word == "--ignore-case"
            narrowed = narrowed or word.startswith(("--parent", "--pgroup", "--session", "--terminal"))
        elif word.startswith("-") and not (word[1:].isdigit() or (word[1:].isupper() and len(word) > 2)):
            full, exact, ignore_case = full or "f" in word, exact or "x" in word, ignore_case or "i" in word
            narrowed = narrowed or bool(set(word) & set("Pgst"))
            if word[-1] in _PKILL_VALUE_OPTIONS:
                next(words, None)
        elif not word.startswith("-"):
            patterns.append(word)
    # Restricted to some parent, group, session or terminal: hardly ours, and not worth working out.
    return not narrowed and any(_matches_this_server(pattern, full, exact, ignore_case) for pattern in patterns)


def _matches_this_server(pattern: str, full: bool, exact: bool, ignore_case: bool) -> bool:
    own = living_process(os.getpid())
    subjects = [command_line(os.getpid()) if full else own.name if own is not None else ""]
    if full:
        subjects.extend(_SERVER_NAMES)
    try:
        expression = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    except re.error:
        return any(name in pattern for name in _SERVER_NAMES)
    match = expression.fullmatch if exact else expression.search
    return any(match(subject) for subject in subjects if subject) or pattern in _SERVER_NAMES


def _killall(arguments: Sequence[str]) -> bool:
    own = living_process(os.getpid())
    own_names = {*_SERVER_NAMES, own.name if own is not None else ""}
    return any(word in own_names for word in arguments if not word.startswith("-"))


def _kill(arguments: Sequence[str]) -> bool:
    words = list(arguments)
    if words and words[0] in ("-s", "-n"):
        del words[:2]
    elif words and words[0].startswith("-") and words[0] != "--":
        del words[:1]
    us = {str(os.getpid()), "$PPID", "${PPID}", "-1", f"-{posix.getpgrp()}"}
    return any(word in us for word in words)
