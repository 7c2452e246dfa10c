"""Environments on Windows: which variables a child needs, and that their names compare without case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

NEEDED = frozenset(
    {
        "ALLUSERSPROFILE",
        "APPDATA",
        "COMMONPROGRAMFILES",
        "COMPUTERNAME",
        "COMSPEC",
        "HOMEDRIVE",
        "HOMEPATH",
        "LOCALAPPDATA",
        "NUMBER_OF_PROCESSORS",
        "OS",
        "PATH",
        "PATHEXT",
        "PROCESSOR_ARCHITECTURE",
        "PROGRAMDATA",
        "PROGRAMFILES",
        "PROGRAMFILES(X86)",
        "PROGRAMW6432",
        "PUBLIC",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "TMP",
        "USERDOMAIN",
        "USERNAME",
        "USERPROFILE",
        "WINDIR",
    }
)
"""Without SYSTEMROOT a program finds no sockets, without others not the files of its user. None holds a secret."""


def overlaid(first: Mapping[str, str], second: Mapping[str, str]) -> dict[str, str]:
    """Both, where the second wins. `Path` replaces `PATH`: a process with both would take either."""
    replaced = {name.upper() for name in second}
    return {**{name: value for name, value in first.items() if name.upper() not in replaced}, **second}


def variable(environment: Mapping[str, str], name: str) -> str:
    """The value of a variable; empty if there is none."""
    wanted = name.upper()
    return next((value for one, value in environment.items() if one.upper() == wanted), "")


def kept(source: Mapping[str, str], names: Iterable[str] = NEEDED) -> dict[str, str]:
    """Those of these names, as they are written in the source."""
    upper = {name.upper() for name in names}
    return {name: value for name, value in source.items() if name.upper() in upper}
