"""The programs on this machine that can start goat-mcp, for the page. `cli/page_hosts.py` knows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Step = Literal["connect", "disconnect"]


@dataclass(frozen=True)
class HostHere:
    """One host that seems to be used on this machine. `problem`: why its file, or our entry in it, does not work.

    `workspace` says which folder goat-mcp works in when this host starts it. `other_servers` is how many servers the
    host starts besides goat-mcp.
    """

    name: str
    title: str
    file: str
    connected: bool
    problem: str = ""
    workspace: str = ""
    other_servers: int = 0


@dataclass(frozen=True)
class HostChange:
    """What a step would do to the file of a host. `diff` is without secrets, and empty if nothing changes.

    `digest` stands for the file before and after: only this very change is written. `after` says what the person does
    then, such as to restart the host.
    """

    title: str
    file: str
    diff: str
    digest: str
    workspace: str = ""
    after: str = ""


class Hosts(Protocol):
    """Blocking: these read and write files of other programs."""

    def here(self) -> Sequence[HostHere]:
        """The hosts found on this machine, those that start goat-mcp first."""
        ...

    def plan(self, step: Step, host: str, workspace: str = "") -> HostChange:
        """Write nothing. Raises `ToolError`, e.g. for an unknown host or a workspace that is refused."""
        ...

    def carry_out(self, step: Step, host: str, workspace: str, digest: str) -> HostChange:
        """Write what was planned. Raises `ToolError(STALE)` if the file has been changed since."""
        ...
