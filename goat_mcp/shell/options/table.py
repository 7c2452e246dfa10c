"""A program's harmless options, and reading its arguments by them. Unknown and abbreviated options are refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass


def names(text: str) -> frozenset[str]:
    """The names in a text that lists them with blanks between, as most tables of options are written."""
    return frozenset(text.split())


@dataclass(frozen=True)
class Arguments:
    """What a command's arguments are, or the `problem` with the first that is not known to be harmless."""

    options: tuple[str, ...] = ()
    operands: tuple[str, ...] = ()
    problem: str = ""


class OptionTable:
    """The options of one program or of one of its verbs.

    `flags`: letters without a value; `valued`: letters with one; `attached`: letters whose value, if any, is part of
    the same word. `long`: with or without `=VALUE`; `long_valued`: with `=VALUE` or the next word as value. With
    `one_dash` long names follow a single dash (Go). With `own_first` everything after the first operand belongs to
    what that names.
    """

    def __init__(
        self,
        flags: str = "",
        valued: str = "",
        attached: str = "",
        long: str = "",
        long_valued: str = "",
        *,
        one_dash: bool = False,
        own_first: bool = False,
        numbers: bool = False,
        check: Callable[[Arguments], str] | None = None,
    ) -> None:
        self._flags, self._valued, self._attached = flags, valued, attached
        self._long, self._long_valued = names(long), names(long_valued)
        self._one_dash, self._own_first, self._numbers = one_dash, own_first, numbers
        self._check = check

    def problem(self, words: Sequence[str]) -> str:
        """Empty, or which of these arguments is not known to be harmless."""
        arguments = self.read(words)
        return arguments.problem or (self._check(arguments) if self._check is not None else "")

    def read(self, words: Sequence[str]) -> Arguments:
        """The arguments by this table."""
        options: list[str] = []
        operands: list[str] = []
        waiting = list(reversed(words))
        while waiting:
            word = waiting.pop()
            if word == "--":
                operands.extend(reversed(waiting))
                break
            if not word.startswith("-") or word == "-":
                operands.append(word)
                if self._own_first:
                    operands.extend(reversed(waiting))
                    break
                continue
            if self._numbers and re.fullmatch(r"-\d+", word):
                continue
            found = self._option(word)
            if found is None:
                return Arguments(problem=f"{word.partition('=')[0]} is not an option known to be harmless")
            in_word, wants_value = found
            options.extend(in_word)
            if wants_value and waiting:
                value = waiting.pop()
                if value.startswith("-") and not re.fullmatch(r"-\d*", value):
                    # If we were wrong about the value this would be an option.
                    return Arguments(problem=f"{value} could be an option or the value of {word}")
        return Arguments(tuple(options), tuple(operands))

    def _option(self, word: str) -> tuple[list[str], bool] | None:
        """The options in a word, and whether the next word is the value of the last; None for unknown ones."""
        if word.startswith("--") or self._one_dash:
            name, equals, _ = word.lstrip("-").partition("=") if self._one_dash else word[2:].partition("=")
            if name in self._long:
                return [f"--{name}"], False
            if name in self._long_valued:
                return [f"--{name}"], not equals
            return None
        found: list[str] = []
        for index, letter in enumerate(word[1:], start=1):
            found.append(f"-{letter}")
            if letter in self._valued:
                return found, index == len(word) - 1
            if letter in self._attached:
                return found, False
            if letter not in self._flags:
                return None
        return found, False
