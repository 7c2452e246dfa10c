"""Names of programs outside of commands: a word, or a part of one, that another program may run.

So a deny rule needs no list of all programs that run others (`bwrap`, `prove -e`), of their options and variables
(`ssh -o ProxyCommand=`, `TAR_OPTIONS`): a name counts anywhere, unless it is known to be data (`data_words`).
Source: R-SHELL-5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

from goat_mcp.commands.shell.words import Words, without_global_options

LISTS_FOLDERS = re.compile(r"(?:PYTHON|NODE_|GO|MAN|CLASS|CD|LD_LIBRARY_|PKG_CONFIG_)?PATH")
"""Variables whose value names folders, and no program."""
_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"`$()<>;|&]*", re.IGNORECASE)
_ENDS_COMMAND = re.compile(r"[;|&\n(){}`<>\[\]]+")
_BETWEEN = re.compile(r"[\s,:!$]+")
_QUOTES = re.compile(r"['\"\\]")
_EXPANSION = re.compile(r"\$(?:\w+|\{[^}]*\}|[@*#?!$-])")
_MAGIC = re.compile(r"[*?\[]")
_USES_VARIABLES = frozenset({"export", "declare", "typeset", "local", "readonly", "set"})
_MAX_OPTION_CHARS = 16
_MAX_MENTIONS = 200


@dataclass(frozen=True)
class OwnWords:
    """A command's own words: `nice -n 5` of `nice -n 5 make`. `wraps`: it runs another command, as here."""

    words: Words
    wraps: bool = False


@dataclass(frozen=True)
class Mentions:
    """`exported`: values of variables that programs see. `assigned`: values that a command may get by `$x`."""

    own: tuple[OwnWords, ...] = ()
    exported: tuple[str, ...] = ()
    assigned: tuple[str, ...] = ()

    @cached_property
    def _names(self) -> frozenset[str]:
        texts = (*(word for own in self.own for word in own.words[1:]), *self.exported, *self.assigned)
        return frozenset(name for text in texts for pieces in _commands_in(text) for name in map(_program, pieces))

    @cached_property
    def _paths(self) -> tuple[str, ...]:
        """`/bin/r?`: only the file system could tell which program that is."""
        words = (word for own in self.own for word in own.words[1:])
        return tuple(word.casefold() for word in words if "bin/" in word and _MAGIC.search(word))

    def may_name(self, program: str) -> bool:
        """Whether `of` could find this program; fast."""
        return program in self._names or any(_fits(path, program) for path in self._paths)

    def of(self, program: str) -> Iterator[tuple[str, Words]]:
        """Each mention of a program in lower case: the word with it, and the command that it may be."""
        found = 0
        for texts in self._relevant_texts():
            for at, text in enumerate(texts):
                for command in _readings(program, text, texts[at + 1 :]):
                    found += 1
                    # So many can only be meant to hide one.
                    yield text, command if found < _MAX_MENTIONS else (program,)
                    if found >= _MAX_MENTIONS:
                        return

    def _relevant_texts(self) -> Iterator[Sequence[str]]:
        # Its tables are loaded for the few scripts that name such a program at all.
        from goat_mcp.commands.shell.data_words import words_that_may_run

        uses_variables = False
        for own in self.own:
            kept = [own.words[at] for at in words_that_may_run(own.words, wraps=own.wraps)]
            uses_variables = uses_variables or own.words[0] in _USES_VARIABLES or any("$" in word for word in kept)
            yield kept
        yield from ([text] for text in self.exported)
        if uses_variables:
            yield from ([text] for text in self.assigned)


def _readings(program: str, text: str, following: Sequence[str]) -> Iterator[Words]:
    for pieces in _commands_in(text):
        for at, piece in enumerate(pieces):
            if _program(piece) == program:
                for command in ((program, *pieces[at + 1 :]), (program, *pieces[at + 1 :], *following)):
                    yield command
                    if program == "git":
                        yield without_global_options(command)
    if _MAGIC.search(text) and _fits(text.casefold(), program):
        yield (program, *following)


def _commands_in(text: str) -> Iterator[list[str]]:
    """The commands that a text may hold, in pieces: read with quotes as blanks, without quotes, without expansions."""
    if LISTS_FOLDERS.fullmatch(text.partition("=")[0]):
        return
    if "://" in text:
        text = _URL.sub(" ", text)
    readings = {text}
    if _QUOTES.search(text):
        readings = {_QUOTES.sub(" ", text), _QUOTES.sub("", text)}
    if "$" in text:
        readings |= {_EXPANSION.sub("", reading) for reading in readings}
    for reading in readings:
        for part in _ENDS_COMMAND.split(reading):
            pieces: list[str] = []
            for piece in _BETWEEN.split(part):
                # The part before `=` is a name, and no program.
                values = piece.split("=")
                pieces += [value.removeprefix("@") for value in (values[1:] if len(values) > 1 else values) if value]
            if not pieces:
                continue
            yield pieces
            for at, piece in enumerate(pieces):
                if piece.startswith("-") and not piece.startswith("--"):
                    # `-Orm`; in `-xIrm f` any letter could end the option.
                    is_alone = len(pieces) == 1
                    starts = (2,) if is_alone else range(2, min(len(piece), _MAX_OPTION_CHARS))
                    yield from ([piece[start:], *pieces[at + 1 :]] for start in starts if piece[start:])


def _program(piece: str) -> str:
    """The program that a piece may name; a path that ends in `/` is a directory, and names none."""
    return piece.rpartition("/")[2].casefold()


def _fits(path: str, program: str) -> bool:
    return "bin/" in path and fnmatchcase(program, path.rpartition("/")[2])
