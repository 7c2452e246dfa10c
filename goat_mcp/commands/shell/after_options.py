"""Where, behind a program's own options, the words of another command begin."""

from __future__ import annotations

import re

from goat_mcp.commands.shell.words import Word

ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=", re.DOTALL)


def after_options(rest: list[Word], with_value: frozenset[str], positions: int = 0) -> list[list[Word]]:
    """Where the command may begin. First: if no option that we do not know takes the next word; then: if some do."""
    found: list[list[Word]] = []
    starts = [0]
    known: set[int] = set()
    for start in starts:
        index, left = start, positions
        while index < len(rest) and index not in known:
            known.add(index)
            word = rest[index].text
            if word == "--":
                index += 1
                break
            if word == "-":
                # `env - rm`
                index += 1
            elif word.startswith("-") and len(word) > 1:
                is_its_value = takes_next(word, with_value)
                index += 2 if is_its_value else 1
                may_be_value = is_its_value is None and index < len(rest) and not rest[index].text.startswith("-")
                if may_be_value and positions == 0:
                    starts.append(index + 1)
            elif ASSIGNMENT.match(word):
                index += 1
            elif left:
                left -= 1
                index += 1
            else:
                break
        else:
            if index < len(rest):
                continue  # as found before
        found.append(rest[index + left :])
    return found


def takes_next(option: str, with_value: frozenset[str]) -> bool | None:
    """Whether the next word is this option's value: by its name, an abbreviation, or the end of a cluster. None where
    nobody knows."""
    if option in with_value:
        return True
    if "=" in option:
        return False
    if option.startswith("--"):
        return True if len(option) > 2 and any(one.startswith(option) for one in with_value) else None
    for at, letter in enumerate(option[1:], start=2):
        if f"-{letter}" in with_value:
            return at == len(option)
    return None
