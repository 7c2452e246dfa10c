"""The words of a command that are no options, and the values of the options one asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Operands:
    """`options` are as they were given; letters of a cluster (`-rn`) one by one, without the values of `values`."""

    words: tuple[str, ...]
    options: tuple[str, ...]
    values: tuple[tuple[str, str], ...] = field(default=())

    def has(self, *options: str) -> bool:
        return any(one in options for one in self.options)

    def value_of(self, *options: str) -> tuple[str, ...]:
        return tuple(value for option, value in self.values if option in options)


def operands(arguments: Sequence[str], valued: str = "") -> Operands:
    """`valued`: options that take a value, e.g. `-e -g --glob`. A value of an option not named there is an operand."""
    takes_value = frozenset(valued.split())
    words: list[str] = []
    options: list[str] = []
    values: list[tuple[str, str]] = []
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        if word == "--":
            words += waiting
            break
        if not word.startswith("-") or word == "-":
            words.append(word)
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            options.append(name)
            if equals:
                values.append((name, value))
            elif name in takes_value and waiting:
                values.append((name, waiting.pop(0)))
        else:
            _cluster(word, takes_value, options, values, waiting)
    return Operands(tuple(words), tuple(options), tuple(values))


def _cluster(
    word: str, takes_value: frozenset[str], options: list[str], values: list[tuple[str, str]], waiting: list[str]
) -> None:
    if word in takes_value and waiting:
        # `-exec`, `-name`: a single dash before a whole name.
        options.append(word)
        values.append((word, waiting.pop(0)))
        return
    options.append(word)
    for at, letter in enumerate(word[1:], start=2):
        option = f"-{letter}"
        options.append(option)
        if option in takes_value:
            if at < len(word):
                values.append((option, word[at:]))
            elif waiting:
                values.append((option, waiting.pop(0)))
            return
