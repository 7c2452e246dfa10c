"""The table of hosts in docs/moving-in.md, made from the one in the code."""

from __future__ import annotations

from pathlib import Path

from goat_mcp.cli.hosts.host import ConfigLocation, Host, HostEnvironment
from goat_mcp.cli.hosts.table import HOSTS

SYSTEMS = {
    "Linux": HostEnvironment("linux", Path("~"), {}),
    "macOS": HostEnvironment("macos", Path("~"), {}),
    "Windows": HostEnvironment("windows", Path("%USERPROFILE%"), {"APPDATA": "%APPDATA%"}),
}


def hosts_table() -> str:
    rows = ["| host | file of the user | of a project | after a change |", "| --- | --- | --- | --- |"]
    for host in HOSTS.values():
        cells = [f"`{host.name}`<br>{host.title}", _user_files(host), _project_file(host), host.after]
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)


def _user_files(host: Host) -> str:
    if host.paste_into:
        return f"none; paste what `goat-mcp install --print {host.name}` shows into {host.paste_into}"
    if host.user is None:
        return ""
    other = "" if host.elsewhere is None else f"<br>or, if only that is there, {_paths(host.elsewhere)}"
    return _paths(host.user) + other + _packaged(host, host.user)


def _packaged(host: Host, place: ConfigLocation) -> str:
    if not host.packaged:
        return ""
    below = str(SYSTEMS["Windows"].path(place)).removeprefix("%APPDATA%").replace("/", "\\")
    folder = f"%LOCALAPPDATA%\\Packages\\{host.packaged}\\LocalCache\\Roaming"
    return f"<br>or, if its package is installed, `{folder}{below}`"


def _paths(place: ConfigLocation) -> str:
    """One path if it is the same everywhere below the home directory, else one for each system."""
    found = {system: str(environment.path(place)) for system, environment in SYSTEMS.items()}
    windows = found["Windows"]
    found["Windows"] = windows.replace("/", "\\")
    if windows.replace("%USERPROFILE%", "~") == found["macOS"] == found["Linux"]:
        return f"`{found['Linux']}`"
    if found["Linux"] == found["macOS"]:
        found = {"Linux, macOS": found["Linux"], "Windows": found["Windows"]}
    return "<br>".join(f"{systems}: `{path}`" for systems, path in found.items())


def _project_file(host: Host) -> str:
    files = [f"`{host.project}`"] if host.project else []
    if host.per_project and host.user is not None:
        files.append(f"the project's entries in `{SYSTEMS['Linux'].path(host.user)}`")
    return ", and ".join(files) or ""
