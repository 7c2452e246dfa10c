"""The entry that starts goat-mcp from a host: absolute, since hosts with windows do not have the shell's PATH."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from goat_mcp.cli.hosts.host import Host
from goat_mcp.state.directory import own_upstreams_file
from goat_mcp.upstreams.config.self_launch import UPSTREAMS_VARIABLE, is_goat, upstream_files_of

OWN_NAME = "goat"
_FLAG = "--upstreams"
_THROWN_AWAY = "archive-v0"
"""Where uv keeps the environments of `uvx`; it cleans them up."""


def own_launch(upstreams: Path | None) -> tuple[str, list[str]]:
    """Program and arguments. `upstreams`: the file to name, None where it is found without."""
    named = [] if upstreams is None else [_FLAG, str(upstreams)]
    uvx = shutil.which("uvx")
    if _THROWN_AWAY in Path(sys.prefix).parts and uvx:
        return uvx, ["goat-mcp", "serve", *named]
    script = Path(sys.executable).with_name("goat-mcp.exe" if sys.platform == "win32" else "goat-mcp")
    if script.is_file():
        return str(script), ["serve", *named]
    return sys.executable, ["-m", "goat_mcp", "serve", *named]


def own_entry(host: Host, launch: tuple[str, list[str]], env: Mapping[str, str]) -> dict[str, Any]:
    """The entry in the notation of `host`."""
    command, args = launch
    words = {host.command_line: [command, *args]} if host.command_line else {"command": command, "args": args}
    variables = {host.env_key: dict(env)} if env else {}
    return {**host.own_entry, **words, **variables}


def own_names(host: Host, entries: Mapping[str, Any]) -> list[str]:
    """The entries that start goat-mcp already."""
    return [name for name, entry in entries.items() if is_goat(*launch_of(host, entry))]


def launch_of(host: Host, entry: Any) -> tuple[str, list[str]]:
    """Program and arguments of an entry; empty where it has none."""
    fields = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    command, args = fields.get("command", fields.get("cmd")), fields.get("args")
    if isinstance(command, dict):
        inner = cast("dict[str, Any]", command)
        command, args = inner.get("path"), inner.get("args")
    words = [command, *(cast("list[Any]", args) if isinstance(args, list) else [])]
    if isinstance(command, list):
        words = cast("list[Any]", command)
    texts = [word for word in words if isinstance(word, str)]
    return (texts[0], texts[1:]) if texts else ("", [])


def other_upstreams(host: Host, entry: Any, upstreams: Path) -> str:
    """What this entry of goat-mcp's reads in the place of `upstreams`, in words; empty where it reads that file."""
    _, args = launch_of(host, entry)
    fields = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    env: Any = fields.get(host.env_key)
    named = list(upstream_files_of(args))
    if isinstance(env, dict) and isinstance(variable := cast("dict[str, Any]", env).get(UPSTREAMS_VARIABLE), str):
        named.append(variable)
    if not named and any(arg.partition("=")[0] == "--config" for arg in args):
        return "the upstreams that its --config names"
    places = [Path(name).expanduser() for name in named] or [own_upstreams_file()]
    wanted = upstreams.resolve()
    return "" if any(place.resolve() == wanted for place in places) else str(places[0])
