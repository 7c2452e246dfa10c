"""Programs that run the command behind their options: `nice`, `xargs`, `sudo`, `su -c`, as `running_programs` lists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from goat_mcp.commands.shell.running_programs import (
    OPENS_SHELL,
    RUN_BY_VARIABLE,
    TEXT_OPTIONS,
    WRAPPERS,
    value_attached,
)
from goat_mcp.commands.shell.words import Word

STREAM_FILES = ("/dev/", "/proc/")


@dataclass
class InnerCommands:
    """The commands and texts that one command runs."""

    commands: list[list[Word]] = field(default_factory=list[list[Word]])
    texts: list[str] = field(default_factory=list[str])
    reads_stdin: bool = False
    """It is a shell that reads its script from standard input."""
    hidden: str = ""

    def add_text(self, words: Sequence[Word], by: str) -> None:
        """Text that `by` has a shell run."""
        if any(not word.literal for word in words):
            self.hidden = f"{by} of text that is not literal"
        self.texts.append(" ".join(word.text for word in words))

    def add_commands(self, candidates: Sequence[list[Word]]) -> None:
        self.commands.extend(command for command in candidates if command)


def add_assignment(inner: InnerCommands, name: str, value: Word) -> None:
    """`NAME=VALUE`: programs run the text of some variables (GIT_PAGER)."""
    if name in ("BASH_ENV", "ENV") and value.text.startswith(STREAM_FILES):
        inner.hidden = "a shell that reads what other commands print"
    if RUN_BY_VARIABLE.match(name) or name.startswith("GIT_CONFIG_VALUE_"):
        inner.add_text([Word(value.text.removeprefix("!"), value.literal)], name)


ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=", re.DOTALL)


def after_options(rest: list[Word], with_value: frozenset[str], positions: int = 0) -> list[list[Word]]:
    """The words from where the command may begin: first if no unknown option takes the next word, then if some do."""
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
                continue  # found before
        found.append(rest[index + left :])
    return found


def takes_next(option: str, with_value: frozenset[str]) -> bool | None:
    """Whether the next word is this option's value: by its name, an abbreviation, or the end of a cluster. None if
    unknown."""
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


_SUBSTITUTED_BY_PARALLEL = re.compile(r"\{[^{}\s]*\}")
_INPUTS_OF_PARALLEL = re.compile(r":{3,4}\+?")
_ASKS_FOR_SHELL = re.compile(r"-[A-Za-z]*[is][A-Za-z]*|--(?:shell|login)")
_READS_OPTIONS_ANYWHERE = ("su", "runuser", "script")
_ONLY_PRINTS = frozenset({"--help", "--version", "-V", "-h"})


def add_wrapped(inner: InnerCommands, name: str, rest: list[Word], fed: bool) -> None:
    """Add the commands behind the options of a wrapper. `fed`: it gets more words that are not in the script."""
    options, _, positions = WRAPPERS[name].partition("|")
    has_text = _add_option_texts(inner, name, rest, fed)
    if name in ("env", "sudo", "doas"):
        for word in rest:
            if not ASSIGNMENT.match(word.text):
                continue
            variable, _, value = word.text.partition("=")
            add_assignment(inner, variable, Word(value, word.literal))
    candidates = after_options(rest, frozenset(options.split()), 0 if positions == "?" else int(positions or 0))
    if positions == "?":
        candidates.append([word for word in candidates[0][1:3] if word.text != "--"] + candidates[0][3:])
    if name in ("xargs", "parallel", "sem"):
        placeholder = _replaced_by_xargs(rest, frozenset(options.split()))
        for at, command in enumerate(candidates):
            if name != "xargs":
                command = _joined_by_parallel(inner, name, command, placeholder, is_guess=at > 0)
            if placeholder:
                command = [Word(word.text, word.literal and placeholder not in word.text) for word in command]
            inner.add_commands([command])
        return
    if fed and not any(candidates):
        inner.hidden = f"{name} with a command that is not in the script"
    # A word before the command may be optional: then it is unknown which of the two it is.
    if _opens_shell(name, rest) and not has_text and len(candidates[0]) <= (1 if positions == "?" else 0):
        inner.reads_stdin = True
    if name in ("watch", "ssh", "sg", "hyperfine"):
        for command in candidates:
            inner.add_text(command, name) if command else None
    inner.add_commands(candidates)


def _add_option_texts(inner: InnerCommands, name: str, rest: list[Word], fed: bool) -> bool:
    """Whether an option holds a text that a shell runs; adds these texts to `inner`."""
    found = False
    for option in TEXT_OPTIONS.get(name, ()):
        for index, word in enumerate(rest):
            attached = value_attached(option, word.text)
            if attached is None:
                is_option = name in _READS_OPTIONS_ANYWHERE or all(one.text.startswith("-") for one in rest[:index])
                if not word.literal and word.text.startswith("-") and is_option:
                    inner.hidden = f"{name} with an option that is not literal"
                continue
            found = True
            value = Word(attached, word.literal) if attached else next(iter(rest[index + 1 : index + 2]), None)
            if value is not None:
                inner.add_text([value], name)
            elif fed:
                inner.hidden = f"{name} with text that is not in the script"
    return found


def _opens_shell(name: str, rest: list[Word]) -> bool:
    """Whether without a command it runs a shell, which then reads standard input."""
    if any(word.text in _ONLY_PRINTS for word in rest):
        return False
    if name in ("sudo", "doas"):
        return any(_ASKS_FOR_SHELL.fullmatch(word.text) for word in rest)
    return name in OPENS_SHELL


def _joined_by_parallel(
    inner: InnerCommands, name: str, command: list[Word], placeholder: str, *, is_guess: bool
) -> list[Word]:
    """The command before `:::`. A shell reads it joined with blanks. Without a command the inputs are commands."""
    end = next((at for at, word in enumerate(command) if _INPUTS_OF_PARALLEL.fullmatch(word.text)), len(command))
    command, inputs = command[:end], command[end:]
    if not command:
        inner.texts.extend(word.text for word in inputs)
        if not is_guess and name == "parallel":
            inner.hidden = "parallel with commands that are not in the script"
        return []
    text = " ".join(word.text for word in command)
    # The inserted text is not in the script, so it counts as a variable.
    known = _SUBSTITUTED_BY_PARALLEL.sub("$_", text.replace(placeholder, "$_") if placeholder else text)
    inner.texts.append(known if known != text or name == "sem" else f"{text} $_")
    if not is_guess and any(not word.literal and not _SUBSTITUTED_BY_PARALLEL.fullmatch(word.text) for word in command):
        inner.hidden = f"{name} of text that is not literal"
    if " " in command[0].text:
        return []
    return [Word(word.text, word.literal and not _SUBSTITUTED_BY_PARALLEL.search(word.text)) for word in command]


def _replaced_by_xargs(rest: list[Word], with_value: frozenset[str]) -> str:
    """The text that xargs replaces by its input; empty without one."""
    index = 0
    while index < len(rest) and rest[index].text.startswith("-"):
        option = rest[index].text
        following = rest[index + 1].text if index + 1 < len(rest) else ""
        if option.startswith("--"):
            name, equals, value = option.partition("=")
            if len(name) > 3 and "--replace".startswith(name):
                return value if equals else "{}"
        elif found := re.match(r"-[0-9oprtx]*([IJi])(.*)", option, re.DOTALL):
            return found[2] or ("{}" if found[1] == "i" else following)
        index += 2 if takes_next(option, with_value) else 1
    return ""
