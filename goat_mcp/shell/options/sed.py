"""sed: scripts that only print. Its commands `e` (run), `w` (write) and `r` (read a file), and the flags e and w of
`s`, are refused with everything else this reader does not know for sure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from goat_mcp.shell.options.table import OptionTable

_TABLE = OptionTable(
    "nErsuz",
    "e",
    "",
    "quiet silent regexp-extended separate unbuffered null-data posix debug help version",
    "expression",
)
_ADDRESS = re.compile(r"\d+(?:~\d+)?|\$|[+~]\d+")
_REGEX_ADDRESS = re.compile(r"/((?:[^/\\\n\[]|\\[^\n]|\[\^?\]?[^]/\\\n]*\])*)/[IM]*")
_PLAIN_COMMANDS = "pPdDqQnNgGhHxl=zF"
_DELIMITERS = "/|,#:@_!%+"


def sed_problem(words: Sequence[str]) -> str:
    """Empty, or why a sed command might do more than print."""
    arguments = _TABLE.read(words)
    if arguments.problem:
        return arguments.problem
    scripts = _scripts(words) or list(arguments.operands[:1])
    for script in scripts:
        if not _only_prints(script):
            return f"its script {script[:40]!r} may do more than print"
    return ""


def _scripts(words: Sequence[str]) -> list[str]:
    found: list[str] = []
    for index, word in enumerate(words):
        if word == "--":
            break
        if word.startswith("--expression="):
            found.append(word.partition("=")[2])
        elif word == "--expression" or (re.fullmatch(r"-[nErsuz]*e", word)):
            found.extend(words[index + 1 : index + 2])
        elif match := re.match(r"-[nErsuz]*e", word):
            found.append(word[match.end() :])
    return found


def _only_prints(script: str) -> bool:
    at = 0
    while at < len(script):
        if script[at] in " \t\n;{}":
            at += 1
            continue
        at = _after_addresses(script, at)
        if at < 0 or at >= len(script):
            return False
        command = script[at]
        at += 1
        if command == "{":
            continue
        if command in _PLAIN_COMMANDS:
            if match := re.match(r"[ \t]*\d+", script[at:]):
                at += match.end()
        elif command in "sy":
            at = _after_substitution(script, at, command)
            if at < 0:
                return False
        else:
            return False
        if match := re.match(r"[ \t]*(?:[;\n}]|$)", script[at:]):
            at += match.end()
        else:
            return False
    return True


def _after_addresses(script: str, at: int) -> int:
    """The place of the command after its addresses, -1 where they are not understood."""
    for place in range(2):
        match = _ADDRESS.match(script, at) or _REGEX_ADDRESS.match(script, at)
        if match is None:
            if place:
                return -1
            break
        at = match.end()
        if place or script[at : at + 1] != ",":
            break
        at += 1
    while script[at : at + 1] in (" ", "\t", "!"):
        at += 1
    return at


def _after_substitution(script: str, at: int, command: str) -> int:
    """The place after `s/a/b/flags` or `y/a/b/`, -1 unless all of it is plain."""
    delimiter = script[at : at + 1]
    if not delimiter or delimiter not in _DELIMITERS:
        return -1
    for part in range(2):
        at += 1
        start = at
        while at < len(script) and script[at] != delimiter:
            if script[at] == "\n" or (script[at] == "\\" and script[at + 1 : at + 2] in ("", "\n", delimiter)):
                return -1
            at += 2 if script[at] == "\\" else 1
        if at >= len(script):
            return -1
        if not part and script.count("[", start, at) != script.count("]", start, at):
            # Is the delimiter in a bracket expression, or its end? Seds differ.
            return -1
    at += 1
    if command == "s":
        flags = re.match(r"[gpiI0-9]*", script[at:])
        at += flags.end() if flags else 0
    return at
