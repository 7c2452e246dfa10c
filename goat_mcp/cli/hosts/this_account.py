"""The account that we run in, in WSL with the same user's on Windows; and which of the two a host's name means."""

from __future__ import annotations

import os
from pathlib import Path

from goat_mcp.cli.hosts.host import Host, HostEnvironment
from goat_mcp.cli.hosts.sources import is_here, sources_of
from goat_mcp.cli.hosts.table import DESKTOP_HOSTS, host_named
from goat_mcp.core import platform
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes.wsl import Wsl, local_path, this_wsl

WINDOWS_HOME_VARIABLE = "GOAT_MCP_WINDOWS_HOME"
_HERE = "@linux"
_NOBODY = frozenset({"all users", "default", "default user", "public", "defaultuser0", "wdagutilityaccount"})
_OF_ALL_USERS = ("PATH", "PATHEXT", "SYSTEMROOT")


def this_account(windows_home: str | None = None) -> HostEnvironment:
    """`windows_home`: the folder of the Windows user, if somebody named it. Raises `ToolError` if that is none."""
    wsl = this_wsl()
    if wsl is None:
        return HostEnvironment(platform.SYSTEM, Path.home(), os.environ)
    around = _on_windows(wsl, windows_home or os.environ.get(WINDOWS_HOME_VARIABLE, ""))
    return HostEnvironment(platform.SYSTEM, Path.home(), os.environ, wsl.paths, around)


def _on_windows(wsl: Wsl, named: str) -> HostEnvironment | None:
    """By name, else as Windows answers, else the only one there is."""
    variables = wsl.windows_variables()
    says = _folder(variables.get("USERPROFILE", ""))
    if named:
        home = _folder(named)
        if home is None:
            raise ToolError(
                ErrorCode.INPUT, f"{named} is no folder of a Windows user", f"Name one, e.g. {wsl.drives}/c/Users/NAME."
            )
        if says is None or not home.samefile(says):
            variables = {name: variables[name] for name in _OF_ALL_USERS if name in variables}
    else:
        profiles = _profiles(wsl)
        home = says or (profiles[0] if len(profiles) == 1 else None)
    return None if home is None else HostEnvironment("windows", home, variables, wsl.paths)


def _folder(text: str) -> Path | None:
    try:
        path = Path(local_path(text))
        return path if path.is_absolute() and path.is_dir() else None
    except (ToolError, OSError):
        return None


def _profiles(wsl: Wsl) -> list[Path]:
    try:
        folders = sorted((wsl.drives / "c" / "Users").iterdir())
    except OSError:
        return []
    return [one for one in folders if one.name.lower() not in _NOBODY and not one.is_symlink() and one.is_dir()]


def chosen_host(name: str, environment: HostEnvironment, *, has_file: bool = True, in_project: bool = False) -> Host:
    """The host of this name. In WSL one that is not in this distribution, and is on Windows, means the one there.

    `NAME@windows` and `NAME@linux` mean the one and no other. `has_file`: the user's file will be needed;
    `in_project`: that of a project, which is here. Raises `ToolError`.
    """
    host = host_named(name.lower().removesuffix(_HERE))
    if environment.wsl is None:
        if host.is_on_windows:
            raise ToolError(
                ErrorCode.INPUT, f"{name}: this is not WSL, and there is no Windows around it", f"Name {host.kind}."
            )
        return host
    there = host.on_windows(environment.wsl.distribution)
    if not host.is_on_windows and (in_project or name.lower().endswith(_HERE) or _is_here(host, environment)):
        return host
    is_of_windows = host.is_on_windows or host.kind in DESKTOP_HOSTS
    if is_of_windows and environment.around is None and has_file and not in_project:
        raise windows_home_unknown()
    return there if is_of_windows or _is_here(there, environment) else host


def _is_here(host: Host, environment: HostEnvironment) -> bool:
    if host.is_on_windows and environment.around is None:
        return False
    return any(is_here(source, environment) for source in sources_of(host, environment))


def windows_home_unknown() -> ToolError:
    """Which Windows user is meant cannot be found out."""
    wsl = this_wsl()
    profiles = [] if wsl is None else _profiles(wsl)
    known = f" There are: {', '.join(map(str, profiles))}." if profiles else ""
    return ToolError(
        ErrorCode.NOT_FOUND,
        "the folder of the Windows user is not known: Windows does not answer (interop is off or broken)",
        f"Name it with --windows-home DIR or the variable {WINDOWS_HOME_VARIABLE}.{known}",
    )
