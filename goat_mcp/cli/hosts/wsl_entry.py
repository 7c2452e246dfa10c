"""The command line with which a host on Windows starts us in WSL, and what such a command line says.

Source: Microsoft, "Basic commands for WSL": `wsl.exe [options] --exec COMMAND` starts without a shell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PureWindowsPath

from goat_mcp.cli.hosts.host import Host, WorkspaceSource
from goat_mcp.core.errors import ErrorCode, ToolError

WSL_PROGRAM = "C:\\Windows\\System32\\wsl.exe"
"""By its whole path: a host's PATH is its own."""
_ENV = "/usr/bin/env"
_WITH_VALUE = {"-d": "-d", "--distribution": "-d", "-u": "-u", "--user": "-u", "--cd": "--cd", "--shell-type": ""}
_NO_SHELL = ("-e", "--exec")


@dataclass(frozen=True)
class WslLaunch:
    """What `wsl.exe` starts. `distribution` is empty for the user's default one."""

    distribution: str
    command: str
    args: Sequence[str]
    env: Mapping[str, str]
    cd: str = ""
    user: str = ""
    has_shell: bool = False


def through_wsl(host: Host, command: str, args: Sequence[str], env: Mapping[str, str]) -> tuple[str, list[str]]:
    """Program and arguments for a host on Windows. Raises `ToolError` for a word that would not arrive.

    A host that starts its servers in the project's directory does so here: `wsl.exe` translates it. For others it is
    the home directory: what they start in means nothing.
    """
    if not host.distribution:
        raise ToolError(
            ErrorCode.CONFIG,
            "the name of this distribution is not known: WSL_DISTRO_NAME is not set, and wslpath does not say it",
            "Nothing was written. Set WSL_DISTRO_NAME to the name that `wsl.exe -l` lists.",
        )
    starts_in_project = host.workspace is WorkspaceSource.START_DIRECTORY
    variables = [_ENV, *(f"{name}={value}" for name, value in env.items())] if env else []
    words = [*variables, command, *args]
    if bad := next((word for word in words if not word or '"' in word or word.endswith("\\")), None):
        raise ToolError(
            ErrorCode.INPUT,
            f"wsl.exe would hand on {bad!r} as something else",
            "Nothing was written. Use a path without quotation marks and without a backslash at its end.",
        )
    where = [] if starts_in_project else ["--cd", "~"]
    return WSL_PROGRAM, ["-d", host.distribution, *where, "--exec", *words]


def wsl_launch(command: str, args: Sequence[str]) -> WslLaunch | None:
    """What a command line of Windows starts in WSL; None if it starts something else."""
    if PureWindowsPath(command).name.lower() not in ("wsl", "wsl.exe"):
        return None
    said = {"-d": "", "-u": "", "--cd": ""}
    words = list(args)
    while words and words[0] in _WITH_VALUE and len(words) > 1:
        said[_WITH_VALUE[words[0]]] = words[1]
        words = words[2:]
    has_shell = True
    if words and words[0] in (*_NO_SHELL, "--"):
        has_shell = words.pop(0) == "--"
    env: dict[str, str] = {}
    if words and words[0] in (_ENV, "env"):
        rest = words[1:]
        while rest and "=" in rest[0]:
            name, _, value = rest.pop(0).partition("=")
            env[name] = value
        words = rest
    if not words or words[0].startswith("-"):
        return None
    return WslLaunch(said["-d"], words[0], words[1:], env, said["--cd"], said["-u"], has_shell)
