"""Programs that run the command behind their options: `nice`, `xargs`, `sudo`, `su -c`. Which they are is a table's."""

from __future__ import annotations

import re

from goat_mcp.commands.shell.after_options import ASSIGNMENT, after_options, takes_next
from goat_mcp.commands.shell.inner import Inner, assigned
from goat_mcp.commands.shell.running_options import value_attached
from goat_mcp.commands.shell.running_programs import OPENS_SHELL, TEXT_OPTIONS, WRAPPERS
from goat_mcp.commands.shell.words import Word

_SUBSTITUTED_BY_PARALLEL = re.compile(r"\{[^{}\s]*\}")
_INPUTS_OF_PARALLEL = re.compile(r":{3,4}\+?")
_ASKS_FOR_SHELL = re.compile(r"-[A-Za-z]*[is][A-Za-z]*|--(?:shell|login)")
_READS_OPTIONS_ANYWHERE = ("su", "runuser", "script")
_ONLY_PRINTS = frozenset({"--help", "--version", "-V", "-h"})


def wrapped(inner: Inner, name: str, rest: list[Word], fed: bool) -> None:
    options, _, positions = WRAPPERS[name].partition("|")
    has_text = _texts_ofwrapped(inner, name, rest, fed)
    if name in ("env", "sudo", "doas"):
        for word in rest:
            if not ASSIGNMENT.match(word.text):
                continue
            variable, _, value = word.text.partition("=")
            assigned(inner, variable, Word(value, word.literal))
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
    # Of a word that may come before the command nobody knows which of the two it is.
    if _opens_shell(name, rest) and not has_text and len(candidates[0]) <= (1 if positions == "?" else 0):
        inner.reads_stdin = True
    if name in ("watch", "ssh", "sg", "hyperfine"):
        for command in candidates:
            inner.add_text(command, name) if command else None
    inner.add_commands(candidates)


def _texts_ofwrapped(inner: Inner, name: str, rest: list[Word], fed: bool) -> bool:
    """Whether an option of it names a text that a shell runs; the texts are put into `inner`."""
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
    """Whether it runs a shell where no command is named, which then reads standard input."""
    if any(word.text in _ONLY_PRINTS for word in rest):
        return False
    if name in ("sudo", "doas"):
        return any(_ASKS_FOR_SHELL.fullmatch(word.text) for word in rest)
    return name in OPENS_SHELL


def _joined_by_parallel(
    inner: Inner, name: str, command: list[Word], placeholder: str, *, is_guess: bool
) -> list[Word]:
    """The command before `:::`. It is joined with blanks and read by a shell; its inputs are commands without it."""
    end = next((at for at, word in enumerate(command) if _INPUTS_OF_PARALLEL.fullmatch(word.text)), len(command))
    command, inputs = command[:end], command[end:]
    if not command:
        inner.texts.extend(word.text for word in inputs)
        if not is_guess and name == "parallel":
            inner.hidden = "parallel with commands that are not in the script"
        return []
    text = " ".join(word.text for word in command)
    # What is put there stands in no script: a variable to whoever reads on.
    known = _SUBSTITUTED_BY_PARALLEL.sub("$_", text.replace(placeholder, "$_") if placeholder else text)
    inner.texts.append(known if known != text or name == "sem" else f"{text} $_")
    if not is_guess and any(not word.literal and not _SUBSTITUTED_BY_PARALLEL.fullmatch(word.text) for word in command):
        inner.hidden = f"{name} of text that is not literal"
    if " " in command[0].text:
        return []
    return [Word(word.text, word.literal and not _SUBSTITUTED_BY_PARALLEL.search(word.text)) for word in command]


def _replaced_by_xargs(rest: list[Word], with_value: frozenset[str]) -> str:
    """The text that stands for what it reads; empty where there is none."""
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
