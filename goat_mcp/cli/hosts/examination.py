"""The files of hosts as `doctor` looks at them: how many there are, and which cannot be read."""

from __future__ import annotations

from dataclasses import dataclass, field

from goat_mcp.cli.hosts.host import HostEnvironment
from goat_mcp.cli.hosts.sources import sources_of
from goat_mcp.cli.hosts.table import HOSTS
from goat_mcp.core.errors import ToolError


@dataclass
class ExaminedHosts:
    """`problems` are the file, what is wrong with it, and what to do."""

    count: int = 0
    problems: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])


def host_files_examined() -> ExaminedHosts:
    """Those of this user, of all hosts that we know."""
    environment = HostEnvironment.this()
    found = ExaminedHosts()
    for host in HOSTS.values():
        try:
            for source in sources_of(host, environment):
                if source.file.data is not None:
                    found.count += 1
                    _ = source.file.entries
        except ToolError as broken:
            path = environment.path(host.user) if host.user is not None else None
            found.problems.append((str(path or host.title), broken.message, broken.suggestion))
    return found
