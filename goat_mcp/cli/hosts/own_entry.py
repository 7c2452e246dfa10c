"""The entry that starts goat-mcp from a host: made, found among others, and changed."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from goat_mcp.cli.hosts.host import Host, entry_fields
from goat_mcp.cli.hosts.own_program import own_program
from goat_mcp.cli.hosts.wsl_entry import through_wsl, wsl_launch
from goat_mcp.core.errors import ToolError
from goat_mcp.core.json_values import items, mapping
from goat_mcp.processes.wsl import local_path, wsl_paths
from goat_mcp.state.directory import own_upstreams_file
from goat_mcp.upstreams.config.goat_launch import UPSTREAMS_VARIABLE, is_goat, upstream_files_of

OWN_NAME = "goat"
_UPSTREAMS_FLAG = "--upstreams"
_WORKSPACE_FLAG = "--workspace"
_WORKSPACE_VARIABLE = "GOAT_MCP_WORKSPACE"
_SERVE = "serve"


@dataclass(frozen=True)
class ServeOptions:
    """What the entry hands to `serve`. What is empty is not in it."""

    workspace: Sequence[Path] = ()
    mode: str = ""
    preset: Sequence[str] = ()
    profile: str = ""

    def words(self) -> list[str]:
        return [word for flag, values in self.by_flag().items() for value in values for word in (flag, value)]

    def by_flag(self) -> dict[str, list[str]]:
        """The values of each flag. The flags are always all there, and in this order."""
        return {
            _WORKSPACE_FLAG: [str(path) for path in self.workspace],
            "--mode": [self.mode] if self.mode else [],
            "--preset": list(self.preset),
            "--profile": [self.profile] if self.profile else [],
        }


NO_OPTIONS = ServeOptions()


def own_launch(upstreams: Path | None, options: ServeOptions = NO_OPTIONS) -> tuple[str, list[str]]:
    """Program and arguments. `upstreams`: the file to name, None if it is found without."""
    named = [*options.words(), *([] if upstreams is None else [_UPSTREAMS_FLAG, str(upstreams)])]
    program, first = own_program()
    return program, [*first, _SERVE, *named]


def own_entry(host: Host, launch: tuple[str, list[str]], env: Mapping[str, str]) -> dict[str, Any]:
    """The entry in the notation of `host`."""
    command, args = launch
    words = {host.command_line: [command, *args]} if host.command_line else {host.command_key: command, "args": args}
    variables = {host.env_key: dict(env)} if env else {}
    return {**host.own_entry, **words, **variables}


def own_names(host: Host, entries: Mapping[str, Any]) -> list[str]:
    """The entries that start goat-mcp already."""
    return [name for name, entry in entries.items() if is_goat(*launch_of(host, entry))]


def first_of(names: Sequence[str]) -> str:
    """Of several entries of ours the one that gets options."""
    return OWN_NAME if OWN_NAME in names else names[0]


def launch_of(host: Host, entry: Any) -> tuple[str, list[str]]:
    """Program and arguments of an entry; empty if it has none."""
    fields = entry_fields(entry)
    command, args = fields.get("command", fields.get("cmd")), fields.get("args")
    if inner := mapping(command):
        command, args = inner.get("path"), inner.get("args")
    words = items(command) or [command, *items(args)]
    texts = [word for word in words if isinstance(word, str)]
    return (texts[0], texts[1:]) if texts else ("", [])


def other_upstreams(host: Host, entry: Any, upstreams: Path) -> str:
    """What this entry of goat-mcp's reads in the place of `upstreams`, in words; empty if it reads that file."""
    if elsewhere := another_goat(host, entry):
        return f"the upstreams of {elsewhere}"
    _, args = launch_of(host, entry)
    named = list(upstream_files_of(args))
    if isinstance(variable := _variables(host, entry).get(UPSTREAMS_VARIABLE), str):
        named.append(variable)
    if not named and any(arg.partition("=")[0] == "--config" for arg in args):
        return "the upstreams that its --config names"
    places = [Path(name).expanduser() for name in named] or [own_upstreams_file()]
    wanted = upstreams.resolve()
    return "" if any(place.resolve() == wanted for place in places) else str(places[0])


def another_goat(host: Host, entry: Any) -> str:
    """If an entry of ours on Windows starts a goat-mcp that is not in this distribution: which one. Else empty."""
    if not host.is_on_windows:
        return ""
    launch = wsl_launch(*launch_of(host, entry))
    if launch is None:
        return "the goat-mcp of Windows itself"
    ours = wsl_paths().distribution.lower()
    return (
        ""
        if not ours or launch.distribution.lower() in ("", ours)
        else f"the goat-mcp in the distribution {launch.distribution} of WSL"
    )


def _variables(host: Host, entry: Any) -> Mapping[str, Any]:
    """Those that reach goat-mcp: `wsl.exe` hands on none of the host's, but starts `/usr/bin/env`."""
    launch = wsl_launch(*launch_of(host, entry)) if host.is_on_windows else None
    return mapping(mapping(entry).get(host.env_key)) if launch is None else launch.env


def changed_entry(host: Host, entry: Any, options: ServeOptions) -> dict[str, Any]:
    """An entry of ours with other options. What else it says stays; a command that is gone is replaced by today's."""
    command, args = launch_of(host, entry)
    if missing_part(host, command, args):
        rest = args[args.index(_SERVE) + 1 :] if _SERVE in args else []
        before = wsl_launch(command, args)
        command, start = own_launch(None)
        if host.is_on_windows:
            command, start = through_wsl(host, command, start, {} if before is None else before.env)
        args = [*start, *rest]
    at = args.index(_SERVE) if _SERVE in args else len(args)
    given = options.by_flag()
    there, rest = _options_in(args[at + 1 :], given.keys())
    words = [word for flag in given for value in given[flag] or there[flag] for word in (flag, value)]
    return _relaunched(entry, command, [*args[:at], _SERVE, *words, *rest])


def _options_in(args: Sequence[str], flags: Iterable[str]) -> tuple[dict[str, list[str]], list[str]]:
    """The values of these flags, and the words that are left."""
    found = {flag: list[str]() for flag in flags}
    rest: list[str] = []
    words = iter(args)
    for word in words:
        flag, has_value, value = word.partition("=")
        flag = _WORKSPACE_FLAG if flag == "-w" else flag
        if flag not in found:
            rest.append(word)
        elif has_value or (value := next(words, "")):
            found[flag].append(value)
    return found, rest


def _relaunched(entry: Any, command: str, args: Sequence[str]) -> dict[str, Any]:
    """The entry with another command line, in the notation that it has."""
    fields = dict(entry_fields(entry))
    key = "command" if "command" in fields else "cmd"
    if inner := mapping(fields[key]):
        return {**fields, key: {**inner, "path": command, "args": list(args)}}
    if isinstance(fields[key], list):
        return {**fields, key: [command, *args]}
    return {**fields, key: command, "args": list(args)}


def missing_part(host: Host, command: str, args: Sequence[str]) -> str:
    """What of a command line is not there: the program, or the file that `uvx --from` would start. Empty if all is.

    The program is looked for as by a host that has the PATH of this process. Of a host on Windows, what it starts in
    this distribution is looked at, and a program of Windows that is named by its whole path.
    """
    if host.is_on_windows:
        launch = wsl_launch(command, args)
        if launch is None:
            return "" if _is_there(command) else command
        if launch.distribution.lower() != wsl_paths().distribution.lower():
            return ""  # nobody can look into another one
        command, args = launch.command, launch.args
    if shutil.which(command) is None:
        return command
    files = [Path(value) for flag, value in pairwise(args) if flag == "--from"]
    return next((str(file) for file in files if file.is_absolute() and not file.exists()), "")


def _is_there(program: str) -> bool:
    """Whether a program of Windows may be started from there: its PATH is not known."""
    try:
        path = local_path(program)
    except ToolError:
        return True
    return path == program or Path(path).exists()


def names_workspace(host: Host, entry: Any) -> bool:
    """Whether the entry says where its file tools may work: with a flag, a variable, a file of settings or a folder."""
    _, args = launch_of(host, entry)
    flags = {arg.partition("=")[0] for arg in args}
    variable = _variables(host, entry).get(_WORKSPACE_VARIABLE)
    return bool(flags & {_WORKSPACE_FLAG, "-w", "--config"} or variable or mapping(entry).get("cwd"))


def named_workspaces(host: Host, entry: Any) -> list[str]:
    """The directories that the entry names with the flag, as they are spelled there."""
    _, args = launch_of(host, entry)
    given, _ = _options_in(args, (_WORKSPACE_FLAG,))
    return given[_WORKSPACE_FLAG]
