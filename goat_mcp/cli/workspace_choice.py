"""The workspace that `goat-mcp install` writes into a host's entry: checked, asked for on a terminal, explained."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from goat_mcp.cli.hosts.host import WorkspaceSource
from goat_mcp.cli.hosts.own_entry import ServeOptions, names_workspace, own_names
from goat_mcp.cli.hosts.sources import Source
from goat_mcp.cli.terminal import confirmed, escaped, say
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.files.workspace.roots import Root
from goat_mcp.processes import wsl

_SOME_NAMES = 1000
"""Of a folder with more, no name is suggested."""


def is_answered() -> bool:
    """Whether a person can be asked: what is asked goes to stderr, the answer comes from stdin."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def checked_workspaces(names: Sequence[str], *, may_ask: bool) -> tuple[Path, ...]:
    """Absolute paths, each once. Raises `ToolError` for one that is no directory, or too wide and not confirmed."""
    found = tuple(dict.fromkeys(_directory(name) for name in names))
    for path in found:
        if is_too_wide(path) and not (may_ask and _is_confirmed(path)):
            raise ToolError(
                ErrorCode.INPUT,
                f"{path} as the workspace gives the tools everything that is yours",
                "Nothing was written. Name a project's directory. (On a terminal you can say yes twice.)",
            )
    return found


def is_too_wide(path: Path) -> bool:
    """Whether it is `/`, the home directory, or holds that; in WSL also a Windows user's whole profile."""
    return Path.home().is_relative_to(path) or wsl.is_too_wide(path)


def asked_workspaces(sources: Sequence[Source], project: Path | None) -> tuple[Path, ...]:
    """What the person at the terminal answers. Nothing if the hosts name it themselves, and the person leaves it so."""
    title = sources[0].host.title if len(sources) == 1 else "these hosts"
    here = project or Path.cwd()
    default = "" if all(_is_named_by_host(source) for source in sources) or is_too_wide(here) else str(here)
    say(f"Workspace for {title}: the directory in which file tools may read and change files.", err=True)
    if not default:
        say(f"Press Enter for none. {_by_host(sources[0])}", err=True)
    while True:
        answer: str = click.prompt("Workspace", default=default, show_default=bool(default), err=True)
        if not answer.strip():
            return ()
        try:
            return checked_workspaces([answer.strip()], may_ask=True)
        except ToolError as problem:
            say(f"{problem.message}. {problem.suggestion}", err=True)


def has_workspace(source: Source) -> bool:
    """Whether the host's entry of ours names one already."""
    entries = source.file.entries
    return any(names_workspace(source.host, entries[name]) for name in own_names(source.host, entries))


def workspace_note(source: Source, options: ServeOptions) -> str:
    """Which workspace goat-mcp will have when this host starts it, or what will happen without one."""
    if options.workspace:
        return f"Workspace: {', '.join(str(path) for path in options.workspace)}"
    if has_workspace(source):
        return ""
    return _by_host(source)


def _by_host(source: Source) -> str:
    host = source.host
    command = f"goat-mcp install {host.name}"
    if host.workspace is WorkspaceSource.ROOTS:
        in_wsl = f" {host.in_wsl}" if host.in_wsl and host.is_on_windows else ""
        return f"{host.title} names the folders that are open in it: they are the workspace.{in_wsl}"
    if host.workspace is WorkspaceSource.START_DIRECTORY:
        return (
            f"{host.title} starts goat-mcp in your project's directory: that is the workspace, unless it is / or your "
            f"home directory. {command} --workspace DIR names one for good."
        )
    for_one = (
        f"\nFor one project: {command} --project DIR --workspace DIR" if host.project and not source.project else ""
    )
    more = f" --project {source.project}" if source.project else ""
    return (
        f"{host.title} names no workspace: file tools will answer E_NO_WORKSPACE until you run: "
        f"{command}{more} --workspace DIR{for_one}"
    )


def _is_named_by_host(source: Source) -> bool:
    return source.host.workspace is not WorkspaceSource.NONE


def _is_confirmed(path: Path) -> bool:
    what = "a directory with your home directory in it"
    if path == Path.home():
        what = "your home directory"
    elif wsl.is_too_wide(path):
        what = "a drive or a whole profile of Windows"
    return confirmed(f"{escaped(str(path))} is {what}: tools could read and change everything there. Use it?") and (
        confirmed(f"Really all of {escaped(str(path))}?")
    )


def _directory(name: str) -> Path:
    if not name.strip():  # most often a variable of the shell that is not set
        raise ToolError(ErrorCode.INPUT, "the name of the workspace is empty", "Nothing was written. Name a directory.")
    path = Path(os.path.abspath(Path(wsl.local_path(name)).expanduser()))  # noqa: PTH100  # links stay as they are spelled
    if not os.path.isdir(path):  # noqa: PTH112  # `Path.is_dir` raises for what may not be looked at
        raise ToolError(
            ErrorCode.INPUT,
            f"workspace {path} is not a directory",
            f"Nothing was written. {_near(path)}".strip(),
        )
    Root(path, writable=True)  # raises for what belongs to the kernel
    return path


def _near(path: Path) -> str:
    try:
        folders = [entry.name for entry in os.scandir(path.parent) if entry.is_dir()]
    except OSError:
        return "Name an existing directory."
    hint = did_you_mean(path.name, folders) if len(folders) <= _SOME_NAMES else ""
    return f"In {path.parent}: {hint}" if hint else "Name an existing directory."
