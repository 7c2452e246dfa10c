"""sed: scripts that only print. Its commands `e` (run), `w` (write) and `r` (read a file), and the flags e and w of
`s`, are refused with everything else this reader does not know for sure.

Seds differ in where a bracket expression ends and in whether a delimiter in one counts, so only those are read whose
every reading ends at the same place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from goat_mcp.commands.shell.options.table import OptionTable

_TABLE = OptionTable(
    "nErsuz",
    "e",
    "",
    "quiet silent regexp-extended separate unbuffered null-data posix debug help version",
    "expression",
)
_DELIMITERS = "/|,#:@_!%+"
# No `]` at the beginning of a bracket, no backslash, `[` or delimiter in it, no `\c`, which takes a further character.
_PARTS = {
    delimiter: (
        rf"(?>(?:[^\\\n\[{re.escape(delimiter)}]|\\[^\nc]"
        rf"|\[\^?+(?:[^\]\[\\\n{re.escape(delimiter)}]|\[:[a-z]+:\])+\])*)"
    )
    for delimiter in _DELIMITERS
}
_ADDRESS = re.compile(rf"\d+(?:~\d+)?|\$|[+~]\d+|/{_PARTS['/']}/[IM]*")
_SUBSTITUTIONS = {
    delimiter: re.compile(rf"{re.escape(delimiter)}(?:{part}{re.escape(delimiter)}){{2}}")
    for delimiter, part in _PARTS.items()
}
_FLAGS = re.compile(r"[gpiImM0-9]*")
_LABEL = re.compile(r"[ \t]*[A-Za-z0-9_]*")
_NUMBER = re.compile(r"[ \t]*\d*")
_PLAIN_COMMANDS = "pPdDqQnNgGhHxl=zF"
_COMMAND_END = re.compile(r"[ \t]*(?:[;\n}]|\Z)")


def sed_problem(words: Sequence[str]) -> str:
    """Empty, or why a sed command might do more than print."""
    arguments = _TABLE.read(words)
    if arguments.problem:
        return arguments.problem
    scripts = arguments.values("-e", "--expression")
    if not scripts or arguments.late:
        # If options must come first, as on other systems, the first operand is a script, whatever follows it.
        scripts = (*scripts, *arguments.operands[:1])
    for script in scripts:
        if not _only_prints(script):
            return f"its script {script[:40]!r} may do more than print"
    return ""


def _only_prints(script: str) -> bool:
    at = 0
    while at < len(script):
        if script[at] in " \t\n;{}":
            at += 1
            continue
        at = _after_addresses(script, at)
        command = script[at : at + 1]
        at += 1
        if command == "{":
            continue
        if command and command in "sy":
            at = _after_substitution(script, at, command)
        elif command and command in _PLAIN_COMMANDS:
            at = _end(_NUMBER, script, at)
        elif command and command in ":btT":
            # To some seds the label goes on to the end of the line: then even less is run.
            at = _end(_LABEL, script, at)
        else:
            return False
        at = _end(_COMMAND_END, script, at) if at >= 0 else -1
        if at < 0:
            return False
    return True


def _end(pattern: re.Pattern[str], script: str, at: int) -> int:
    """Where the match at this place ends, -1 without one."""
    match = pattern.match(script, at)
    return match.end() if match else -1


def _after_addresses(script: str, at: int) -> int:
    """The place of the command after its addresses."""
    if (after := _end(_ADDRESS, script, at)) >= 0:
        at = after
        if script[at : at + 1] == "," and (after := _end(_ADDRESS, script, at + 1)) >= 0:
            at = after
    while script[at : at + 1] in (" ", "\t", "!"):
        at += 1
    return at


def _after_substitution(script: str, at: int, command: str) -> int:
    """The place after `s/a/b/flags` or `y/a/b/`, -1 unless all of it is plain."""
    pattern = _SUBSTITUTIONS.get(script[at : at + 1])
    after = _end(pattern, script, at) if pattern is not None else -1
    return _end(_FLAGS, script, after) if after >= 0 and command == "s" else after
