"""How a program is found and started on Windows: by PATH and PATHEXT, and a `.cmd` through cmd.exe.

`npx`, `npm` and most of what npm installs are `.cmd` files. cmd.exe reads what it is given twice, once for itself and
once for the file's `%*`, and no quoting holds for every file (CVE-2024-27980). So an argument that it could read as
anything else is refused.
"""

from __future__ import annotations

import errno
import ntpath
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from goat_mcp.processes.windows_environment import variable

_PROGRAMS = (".com", ".exe")
_SCRIPTS = (".bat", ".cmd")
_COMMAND_VARIABLE = "GOAT_MCP_CMD_LINE"
_MAX_CHARS = 8_000
"""cmd.exe takes 8191 characters in all."""
_UNSAFE = re.compile(r'["%!\x00-\x1f\x7f]')
"""Ends a quotation, is replaced by a variable, or ends the line. In quotation marks all else is what it is."""


class UnsafeArgument(OSError):
    """cmd.exe would read it as something else."""


class ProgramStart(NamedTuple):
    """`variables` come on top of the child's environment."""

    arguments: tuple[str, ...]
    variables: Mapping[str, str]


def find_program(name: str, environment: Mapping[str, str], is_file: Callable[[str], bool]) -> str | None:
    """The file that a name means: in the absolute folders of PATH, never in the current directory.

    A folder's `.exe` comes before its `.cmd`. What CreateProcess and cmd.exe cannot start (`.ps1`, a shell script
    without an ending, as npm installs both) is not found, whatever PATHEXT says. A name with a folder is not looked up.
    """
    folders = [""] if ntpath.dirname(name) else variable(environment, "PATH").split(";")
    for folder in folders:
        folder = folder.strip('"')
        if folder and not (ntpath.isabs(folder) and ntpath.splitdrive(folder)[0]):
            continue
        if not folder and not ntpath.dirname(name):
            continue
        for ending in _endings(name, environment):
            path = ntpath.join(folder, name + ending)
            if is_file(path):
                return path
    return None


def _endings(name: str, environment: Mapping[str, str]) -> list[str]:
    known = (*_PROGRAMS, *_SCRIPTS)
    if ntpath.splitext(name)[1].lower() in known:
        return [""]
    wanted = [one.lower() for one in variable(environment, "PATHEXT").split(";")]
    return [one for one in known if one in wanted] or list(known)


def is_script(program: str) -> bool:
    """Whether it is one that cmd.exe runs."""
    return ntpath.splitext(program.rstrip(". "))[1].lower() in _SCRIPTS


def windows_start(arguments: Sequence[str], environment: Mapping[str, str]) -> ProgramStart:
    """How the program that these arguments name starts in this environment. Raises `OSError`.

    CreateProcess would look for it in the current directory, too.
    """
    found = find_program(arguments[0], environment, os.path.isfile)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, "there is no such program on PATH", arguments[0])
    return program_start([found, *arguments[1:]], environment)


def program_start(arguments: Sequence[str], environment: Mapping[str, str]) -> ProgramStart:
    """How a program starts with its arguments. Raises `UnsafeArgument`."""
    if not is_script(arguments[0]):
        return ProgramStart(tuple(arguments), {})
    for one in arguments:
        if _UNSAFE.search(one):
            raise UnsafeArgument(
                f"the argument {one!r} cannot be given to {ntpath.basename(arguments[0])} safely: cmd.exe, which runs"
                ' .cmd and .bat files, takes `"`, `%`, `!` and line ends for its own. Name the program behind the file'
                " as the command instead: an .exe, or node with the path of its script"
            )
    line = " ".join(map(_quoted, arguments))
    if len(line) > _MAX_CHARS:
        raise UnsafeArgument(f"the arguments of {ntpath.basename(arguments[0])} are longer than cmd.exe takes")
    shell = variable(environment, "ComSpec")
    if not ntpath.isabs(shell):
        shell = ntpath.join(variable(environment, "SystemRoot") or "C:\\Windows", "System32", "cmd.exe")
    # Popen puts a backslash before the quotation marks in an argument, and cmd.exe knows no such thing. So the line
    # comes by a variable, which cmd.exe replaces before it reads the line.
    command = (shell, "/d", "/v:off", "/s", "/c", f"%{_COMMAND_VARIABLE}%")
    return ProgramStart(command, {_COMMAND_VARIABLE: line})


def _quoted(argument: str) -> str:
    # A backslash before the closing mark would be taken for an escape by the program that gets it in the end.
    backslashes = argument[len(argument.rstrip("\\")) :]
    return f'"{argument}{backslashes}"'
