"""The servers that stand in the user's files of upstreams: found by name, and their entries edited in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.names import UPSTREAM_PREFIX, InvalidName, clean_server_name
from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.settings.json_text import NotJson, edited_json, read_json
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import own_upstreams_file
from goat_mcp.state.file_edit import Change, change_of, text_of

_ROOT = "mcpServers"


@dataclass(frozen=True)
class ServersFile:
    """One file of upstreams. What is edited is its text; `was` is what was read."""

    path: Path
    text: str
    was: str

    @property
    def entries(self) -> Mapping[str, Any]:
        """The servers by name. Raises `ToolError(CONFIG)`."""
        try:
            found = read_json(self.text, with_comments=False).get(_ROOT, {})
        except NotJson as why:
            raise self._broken(str(why)) from None
        if not isinstance(found, dict):
            raise self._broken(f"{_ROOT} is not an object of servers")
        return cast("dict[str, Any]", found)

    def with_entry(self, name: str, entry: Mapping[str, Any]) -> ServersFile:
        """With this entry behind the others, or in place of the one of that name."""
        old = [one for one in self.entries if one == name]
        return self._edited((_ROOT,), remove=old, add={name: entry})

    def without(self, name: str) -> ServersFile:
        return self._edited((_ROOT,), remove=(name,), add={})

    def switched(self, name: str, *, on: bool) -> ServersFile:
        """With the entry used, or not."""
        entry = self.entries[name]
        if not isinstance(entry, dict):
            raise self._broken(f"{name} is not an object")
        is_off = cast("dict[str, Any]", entry).get("disabled") is True
        if is_off is not on:
            return self
        return self._edited((_ROOT, name), remove=("disabled",), add={} if on else {"disabled": True})

    @property
    def change(self) -> Change:
        return change_of(self.path, self.was, self.text)

    def _edited(self, root: Sequence[str], *, remove: Sequence[str], add: Mapping[str, Any]) -> ServersFile:
        try:
            text = edited_json(self.text, root, remove=remove, add=add, with_comments=False)
        except NotJson as why:
            raise self._broken(str(why)) from None
        return ServersFile(self.path, text, self.was)

    def _broken(self, why: str) -> ToolError:
        return ToolError(ErrorCode.CONFIG, f"{self.path}: {why}", "Nothing was changed. Fix the file and try again.")


def read_servers(path: Path) -> ServersFile:
    text = text_of(path)
    return ServersFile(path, text, text)


def users_files(settings: Settings) -> list[Path]:
    """The files of upstreams that count, but for those of a project: the user trusts these as they are."""
    files = [*settings.upstreams, *([settings.default_upstreams] if settings.default_upstreams is not None else [])]
    return [file for file in files if file not in settings.contents]


def file_to_write(settings: Settings, named: Path | None) -> Path:
    """Where a new server goes. Raises `ToolError` if a server in the user's own file would be used by nobody."""
    if named is not None:
        return named.expanduser().absolute()
    own, files = own_upstreams_file(), users_files(settings)
    if own.resolve() in [file.resolve() for file in files]:
        return own
    raise ToolError(
        ErrorCode.CONFIG,
        f"your settings name their own files of upstreams, and {own} is not one of them",
        f"Nothing was changed. Name the file: --into {files[0]}" if files else f"Add {own} to `upstreams` first.",
    )


@dataclass(frozen=True)
class OwnServer:
    """One entry: its name, and the file it stands in."""

    name: str
    file: ServersFile


def servers_in(paths: Sequence[Path]) -> list[OwnServer]:
    """All servers of these files. Raises `ToolError` for a file that cannot be read."""
    return [OwnServer(name, file) for file in map(read_servers, paths) for name in file.entries]


def servers_called(asked: str, known: Sequence[OwnServer]) -> list[OwnServer]:
    """Those that a user means: by name, by the name in tool names, or as `mcp__NAME`."""
    exact = [one for one in known if one.name == asked]
    return exact or [one for one in known if asked.removeprefix(UPSTREAM_PREFIX) in (one.name, server_part(one.name))]


def server_part(name: str) -> str:
    """The part that names of its tools have of it; empty if it can have none."""
    try:
        return clean_server_name(name)
    except InvalidName:
        return ""


def no_server(asked: str, known: Sequence[str]) -> ToolError:
    hint = did_you_mean(asked, known) or (f"there are {', '.join(known)}" if known else "there is none yet")
    return ToolError(ErrorCode.NOT_FOUND, f"no server is called {asked!r:.100}; {hint}", "See: goat-mcp list")


def servers_to_change(names: Sequence[str], files: Sequence[Path]) -> list[OwnServer]:
    """One for each name, each once. Raises `ToolError` for a name that none has, or more than one."""
    known = servers_in(files)
    found: list[OwnServer] = []
    for name in names:
        meant = servers_called(name, known)
        if not meant:
            raise no_server(name, [one.name for one in known])
        if len(meant) > 1:
            places = ", ".join(f"{one.name} in {one.file.path}" for one in meant)
            raise ToolError(ErrorCode.INPUT, f"{name!r:.100} may be {places}", "Name it as it stands in its file.")
        if meant[0] not in found:
            found.append(meant[0])
    return found
