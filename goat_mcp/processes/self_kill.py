"""Whether a script asks to kill the server that would run it. Best effort: a convenience, not a boundary."""

from __future__ import annotations

import os
import re

from goat_mcp.processes.process_table import command_line, living_process
from goat_mcp.processes.script_words import SimpleCommand, simple_commands

_NAMES = ("goat-mcp", "goat_mcp")
_VALUE_OPTIONS = frozenset("PgGstuUFdrq")


def kill_of_this_server(script: str) -> str | None:
    """The words of the first command in `script` that would signal this process, else None.

    Looks at `pkill` and `killall` by the patterns that match this process (or its name, goat-mcp), and at `kill`
    with its number, `$PPID` (that is us, for a command) or `-1` (everybody).
    """
    for command in simple_commands(script):
        judge = {"pkill": _pkill, "killall": _killall, "kill": _kill}.get(command.name)
        if judge is not None and judge(command):
            return " ".join(command.words)
    return None


def _pkill(command: SimpleCommand) -> bool:
    full = exact = ignore_case = narrowed = False
    patterns: list[str] = []
    words = iter(command.words[1:])
    for word in words:
        if word.startswith("--"):
            full, exact = full or word == "--full", exact or word == "--exact"
            ignore_case = ignore_case or word == "--ignore-case"
            narrowed = narrowed or word.startswith(("--parent", "--pgroup", "--session", "--terminal"))
        elif word.startswith("-") and not (word[1:].isdigit() or (word[1:].isupper() and len(word) > 2)):
            full, exact, ignore_case = full or "f" in word, exact or "x" in word, ignore_case or "i" in word
            narrowed = narrowed or bool(set(word) & set("Pgst"))
            if word[-1] in _VALUE_OPTIONS:
                next(words, None)
        elif not word.startswith("-"):
            patterns.append(word)
    # Restricted to some parent, group, session or terminal: hardly ours, and not worth working out.
    return not narrowed and any(_matches(pattern, full, exact, ignore_case) for pattern in patterns)


def _matches(pattern: str, full: bool, exact: bool, ignore_case: bool) -> bool:
    own = living_process(os.getpid())
    subjects = [command_line(os.getpid()) if full else own.name if own is not None else ""]
    if full:
        subjects.extend(_NAMES)
    try:
        expression = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    except re.error:
        return any(name in pattern for name in _NAMES)
    match = expression.fullmatch if exact else expression.search
    return any(match(subject) for subject in subjects if subject) or pattern in _NAMES


def _killall(command: SimpleCommand) -> bool:
    own = living_process(os.getpid())
    own_names = {*_NAMES, own.name if own is not None else ""}
    return any(word in own_names for word in command.words[1:] if not word.startswith("-"))


def _kill(command: SimpleCommand) -> bool:
    words = list(command.words[1:])
    if words and words[0] in ("-s", "-n"):
        del words[:2]
    elif words and words[0].startswith("-") and words[0] != "--":
        del words[:1]
    us = {str(os.getpid()), "$PPID", "${PPID}", "-1", f"-{os.getpgrp()}"}
    return any(word in us for word in words)
