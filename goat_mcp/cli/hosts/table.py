"""The hosts we know, by name, and what the keys of their entries mean."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from goat_mcp.cli.hosts.editors import EDITORS
from goat_mcp.cli.hosts.host import ON_WINDOWS, Host, HostEnvironment, Key
from goat_mcp.cli.hosts.terminal_agents import TERMINAL_AGENTS
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.suggestions import did_you_mean

_COMMON: Mapping[str, Key] = {
    "command": Key.SAME,
    "args": Key.SAME,
    "cwd": Key.SAME,
    "env": Key.ENV,
    "url": Key.URL,
    "headers": Key.HEADERS,
    "type": Key.TYPE,
    "transport": Key.TYPE,
    "disabled": Key.SAME,
    "enabled": Key.ENABLED,
    "serverUrl": Key.URL,
    "httpUrl": Key.URL,
    "autoApprove": Key.APPROVAL,
    "alwaysAllow": Key.APPROVAL,
    "trust": Key.APPROVAL,
    "disabledTools": Key.TOOLS_HIDDEN,
    "excludeTools": Key.TOOLS_HIDDEN,
    "includeTools": Key.TOOLS_SHOWN,
    "oauth": Key.LOGIN,
    "auth": Key.LOGIN,
    "name": Key.MEANINGLESS,
    "description": Key.MEANINGLESS,
}
"""Keys that mean the same wherever they are used: users copy entries from one host's file to another's."""

_ORDER = ("claude-desktop", "claude-code", "cursor", "vscode", "codex", "gemini", "windsurf", "zed")
_ROWS = {host.name: host for host in (*EDITORS, *TERMINAL_AGENTS)}
HOSTS: Mapping[str, Host] = {name: _ROWS[name] for name in (*_ORDER, *sorted(_ROWS.keys() - set(_ORDER)))}


DESKTOP_HOSTS = frozenset(host.name for host in EDITORS)


def hosts_in(environment: HostEnvironment, project: Path | None = None) -> list[Host]:
    """All that can be looked for from here: in WSL those on Windows as well, but for the files of a project."""
    if environment.around is None or environment.wsl is None or project is not None:
        return [*HOSTS.values()]
    return [*HOSTS.values(), *(host.on_windows(environment.wsl.distribution) for host in HOSTS.values())]


def written_host(name: str) -> Host:
    """The host of this exact name, as we have noted it down. Raises `KeyError`."""
    host = HOSTS[name.removesuffix(ON_WINDOWS)]
    return host.on_windows() if name.endswith(ON_WINDOWS) else host


def key_of(host: Host, name: str) -> Key | None:
    """What a key of this host's entries means; None for an unknown one."""
    return host.keys.get(name) or _COMMON.get(name)


def known_hosts(*, pasted: bool = True) -> str:
    """For the help of commands. `pasted`: with the hosts that take an entry in a dialog and have no file."""
    return f"HOST is one of {', '.join(name for name, host in HOSTS.items() if pasted or not host.paste_into)}."


def host_named(name: str) -> Host:
    """Raises `ToolError(INPUT)` for one that is not in the table, with the nearest one named."""
    cleaned = name.lower().replace("_", "-").replace(" ", "-")
    found = HOSTS.get(cleaned.removesuffix(ON_WINDOWS))
    if found is None:
        near = did_you_mean(name, HOSTS)
        hint = f"; {near}" if near else ""
        raise ToolError(ErrorCode.INPUT, f"{name!r} is no host we know{hint}", f"Known: {', '.join(HOSTS)}.")
    return found.on_windows() if cleaned.endswith(ON_WINDOWS) else found
