"""Which files hold the servers that a user means: a host's own, a project's, or one that is named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goat_mcp.cli.hosts.host import ConfigLocation, Host, HostEnvironment
from goat_mcp.cli.hosts.host_file import HostFile, read_host_file
from goat_mcp.cli.hosts.table import HOSTS
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.json_values import mapping, mappings


@dataclass(frozen=True)
class Source:
    """Servers of one host. `project`: the directory they are for; None if they are for all."""

    file: HostFile
    project: Path | None = None

    @property
    def host(self) -> Host:
        return self.file.host

    @property
    def inputs(self) -> Sequence[Mapping[str, Any]]:
        """What VS Code asks its user for."""
        return mappings(self.file.tree.get("inputs"))

    @property
    def projects(self) -> list[str]:
        """The directories that have servers of their own in this file."""
        if not self.host.per_project or self.project is not None:
            return []
        top, _, last = self.host.per_project
        return [folder for folder, entry in mapping(self.file.tree.get(top)).items() if mapping(entry).get(last)]


def sources_of(host: Host, environment: HostEnvironment, project: Path | None = None) -> Iterator[Source]:
    """The files of one host, those of a project if one is named. They need not be there."""
    user = environment.user_file(host)
    if project is None:
        if user is not None:
            yield Source(read_host_file(host, user))
        return
    if host.project:
        yield Source(read_host_file(host, project / host.project), project)
    if host.per_project and user is not None and not host.is_on_windows:  # it spells the project another way
        root = [str(project) if key == "*" else key for key in host.per_project]
        yield Source(read_host_file(host, user, root), project)


def one_source(host: Host, environment: HostEnvironment, project: Path | None) -> Source:
    """The file that is written for a host. Raises `ToolError(INPUT)` if it has none of that kind."""
    found = next(sources_of(host, environment, project), None)
    if found is None:
        kind = "for a project" if project is not None else "that goat-mcp can edit"
        raise ToolError(ErrorCode.INPUT, f"{host.title} has no file {kind}", _where_else(host, project))
    return found


def _where_else(host: Host, project: Path | None) -> str:
    if host.paste_into:
        return f"Its servers are in {host.paste_into}; paste there what `goat-mcp install --print {host.name}` prints."
    if project is None and host.project:
        return f"It has one for a project ({host.project}): add --project DIR."
    return "Leave out --project." if project is not None else "See the host's own settings."


@dataclass(frozen=True)
class Unreadable:
    """A host whose file cannot be read."""

    host: Host
    path: Path | None
    problem: ToolError

    @property
    def why(self) -> str:
        """The problem without the names of the host and the file, for a place that shows them already."""
        return self.problem.message.removeprefix(f"{self.host.title}'s file ").removeprefix(f"{self.path}: ")


def readable_sources(
    hosts: Iterable[Host], environment: HostEnvironment, project: Path | None = None
) -> tuple[list[Source], list[Unreadable]]:
    """The files of several hosts, and those that cannot be read. Those that are not there are among the first."""
    found: list[Source] = []
    broken: list[Unreadable] = []
    for host in hosts:
        try:
            for source in sources_of(host, environment, project):
                path = source.file.path
                try:
                    _ = source.file.entries
                    found.append(source)
                except ToolError as problem:
                    broken.append(Unreadable(host, path, problem))
        except ToolError as problem:
            broken.append(Unreadable(host, environment.user_file(host), problem))
    return found, broken


def is_here(source: Source, environment: HostEnvironment) -> bool:
    """Whether the host seems to be used on this computer: its file is there, or a folder of its own for it."""
    account = environment.of(source.host)
    shared = {account.path(place) for place in _SHARED_FOLDERS}
    folder = source.file.path.parent
    return source.file.data is not None or (source.project is None and folder.is_dir() and folder not in shared)


_SHARED_FOLDERS = (
    ConfigLocation(any="{home}"),
    ConfigLocation(any="{home}/.gemini"),
    ConfigLocation(any="{config}"),
    ConfigLocation(any="{support}"),
    ConfigLocation(any="{appdata}"),
)


def source_from(file: Path, host: Host | None, project: Path | None) -> Source:
    """A file that the user names. Without a host, its name and its content tell the notation."""
    found = read_host_file(host or _host_like(file), file.absolute())
    if found.data is None:
        raise ToolError(ErrorCode.NOT_FOUND, f"there is no {file}", "Name an existing file with --from.")
    return Source(found, project)


def _host_like(file: Path) -> Host:
    if file.suffix == ".toml":
        return HOSTS["codex"]
    if file.suffix in (".yaml", ".yml"):
        found = HOSTS["goose"]
        return HOSTS["continue"] if "mcpServers" in read_host_file(found, file).tree else found
    if file.name == "claude_desktop_config.json":
        return HOSTS["claude-desktop"]
    tree = read_host_file(HOSTS["vscode"], file).tree
    named = (host for host in (HOSTS["vscode"], HOSTS["zed"], HOSTS["opencode"]) if host.root[0] in tree)
    folders = (host for host in HOSTS.values() if host.project and file.as_posix().endswith("/" + host.project))
    if "mcpServers" not in tree:
        return next(named, HOSTS["claude-code"])
    return next(folders, HOSTS["claude-code"])
