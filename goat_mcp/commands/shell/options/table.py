"""A program's harmless options, and reading its arguments by them. Unknown and abbreviated options are refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from goat_mcp.commands.shell.words import names


@dataclass(frozen=True)
class Arguments:
    """What a command's arguments are, or the `problem` with the first that is not known to be harmless.

    `given`: each option with its value, None without one. `first`: the first word, whatever it is. `late`: an option
    stands behind an operand; some systems take that for an operand, too.
    """

    given: tuple[tuple[str, str | None], ...] = ()
    operands: tuple[str, ...] = ()
    first: str = ""
    late: bool = False
    problem: str = ""

    def has(self, *names: str) -> bool:
        """Whether one of these options is given, and never with a value, which could turn it off (`--spider=no`)."""
        values = [value for name, value in self.given if name in names]
        return bool(values) and not any(value is not None for value in values)

    def values(self, *names: str) -> tuple[str, ...]:
        """The values of these options, empty for one without, in the order they are given."""
        return tuple(value or "" for name, value in self.given if name in names)


class OptionTable:
    """The options of one program or of one of its verbs.

    `flags`: letters without a value; `valued`: letters with one; `attached`: letters whose value, if any, is part of
    the same word. `separate`: letters whose value is the next word (or a number), so that no letter may follow in the
    same word: programs that read their options by themselves would take it for an option.
    `long`: with or without `=VALUE`; `long_valued`: with `=VALUE` or the next word as value. With `one_dash` long names
    follow a single dash (Go). With `own_first` everything after the first operand belongs to what that names.
    `check` gets the arguments as they were read, never the words again, and says what is wrong with them.
    """

    def __init__(
        self,
        flags: str = "",
        valued: str = "",
        attached: str = "",
        long: str = "",
        long_valued: str = "",
        *,
        separate: str = "",
        one_dash: bool = False,
        own_first: bool = False,
        numbers: bool = False,
        check: Callable[[Arguments], str] | None = None,
    ) -> None:
        self._flags, self._valued, self._attached, self._separate = flags, valued, attached, separate
        self._long, self._long_valued = names(long), names(long_valued)
        self._one_dash, self._own_first, self._numbers = one_dash, own_first, numbers
        self._check = check

    def problem(self, words: Sequence[str]) -> str:
        """Empty, or which of these arguments is not known to be harmless."""
        arguments = self.read(words)
        return arguments.problem or (self._check(arguments) if self._check is not None else "")

    def read(self, words: Sequence[str]) -> Arguments:
        """The arguments by this table."""
        given: list[tuple[str, str | None]] = []
        operands: list[str] = []
        late = False
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
            late = late or bool(operands)
            if self._numbers and re.fullmatch(r"-\d+", word):
                continue
            found = self._option(word)
            if found is None:
                return Arguments(problem=f"{word.partition('=')[0]} is not an option known to be harmless")
            in_word, wants_value = found
            if wants_value and waiting:
                value = waiting.pop()
                if value.startswith("-") and not re.fullmatch(r"-\d*", value):
                    # If we were wrong about the value this would be an option.
                    return Arguments(problem=f"{value} could be an option or the value of {word}")
                in_word[-1] = (in_word[-1][0], value)
            given.extend(in_word)
        return Arguments(tuple(given), tuple(operands), words[0] if words else "", late)

    def _option(self, word: str) -> tuple[list[tuple[str, str | None]], bool] | None:
        """The options in a word, and whether the next word is the value of the last; None for unknown ones."""
        if word.startswith("--") or self._one_dash:
            name, equals, value = word.lstrip("-").partition("=") if self._one_dash else word[2:].partition("=")
            if name in self._long or name in self._long_valued:
                return [(f"--{name}", value if equals else None)], name in self._long_valued and not equals
            return None
        found: list[tuple[str, str | None]] = []
        for index, letter in enumerate(word[1:], start=1):
            name, rest = f"-{letter}", word[index + 1 :]
            if letter in self._separate:
                if rest and not rest.isdecimal():
                    return None
                return [*found, (name, rest or None)], not rest
            if letter in self._valued or letter in self._attached:
                return [*found, (name, rest or None)], letter in self._valued and not rest
            if letter not in self._flags:
                return None
            found.append((name, None))
        return found, False


def values_among(options: Mapping[str, Collection[str]]) -> Callable[[Arguments], str]:
    """A check: each of these options may have these values only."""

    def check(arguments: Arguments) -> str:
        return next(
            (
                f"{name}={value} is not known to be harmless"
                for name, value in arguments.given
                if name in options and value not in options[name]
            ),
            "",
        )

    return check


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
