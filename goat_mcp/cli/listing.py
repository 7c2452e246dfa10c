"""The catalog for commands that show it: the servers behind it are started side by side, heard one by one as they
answer, and stopped again. Nothing is called."""

from __future__ import annotations

import shlex
import time
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import click

from goat_mcp.cli.flags import say_notices
from goat_mcp.cli.terminal import say
from goat_mcp.cli.waiting import Waiting, waiting_for
from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.upstreams.patience import OF_A_PERSON, Patience
from goat_mcp.upstreams.status import ReasonCode, UpstreamState, UpstreamStatus

if TYPE_CHECKING:  # a command's machinery is loaded when it runs
    from goat_mcp.gateway.gateway import Gateway
    from goat_mcp.settings.settings import Settings

QUIET = {"log_level": "error"}
"""Settings of commands that say themselves what would be logged."""
_STDERR_ENDS = "; its stderr ends: "
STILL_STARTING = "still starting"


@dataclass(frozen=True)
class Server:
    """One server as it was when the command stopped waiting. `took_s` is how long it took to answer; None if it did
    not, or was not asked because its tools are known from an earlier run."""

    status: UpstreamStatus
    took_s: float | None = None
    is_asked: bool = True

    @property
    def name(self) -> str:
        return self.status.name

    @property
    def state(self) -> str:
        """In words."""
        status = self.status
        if status.state is UpstreamState.REFUSED:
            return "off" if status.reason_code == ReasonCode.DISABLED else "not used"
        if not self.is_asked:
            return "not started"
        if self.took_s is None:
            return "still listing" if status.state is UpstreamState.READY else STILL_STARTING
        if status.reason_code == ReasonCode.AUTH_REQUIRED:
            return "wants a login"
        if status.state is not UpstreamState.READY:
            return "failed"
        return "does not list" if status.reason_code == ReasonCode.LIST_FAILED else "ready"

    @property
    def is_late(self) -> bool:
        """Whether it was asked and has not answered yet."""
        return self.is_asked and self.took_s is None and self.status.state is not UpstreamState.REFUSED

    @property
    def note(self) -> str:
        """What is wrong and what to do, on one line; empty if all is well."""
        detail, _, stderr = self.status.detail.partition(_STDERR_ENDS)
        last = (stderr.strip().splitlines() or [""])[-1].strip()
        parts = [" ".join(detail.split()), last]
        if self.is_late:
            parts.append(f"wait for it with: goat-mcp list --server {shlex.quote(self.name)}")
        if self.status.tool_count and self.status.state is not UpstreamState.READY:
            parts.append("its tools are as an earlier run saw them")
        return "; ".join(part for part in parts if part)

    def document(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "name": self.name,
            "state": self.state,
            "reason_code": str(self.status.reason_code),
            "detail": self.status.detail,
            "tools": self.status.tool_count,
            "seconds": None if self.took_s is None else round(self.took_s, 3),
        }


@dataclass(frozen=True)
class Listing:
    """What is known when the command stops waiting. The gateway has stopped by now: its catalog can be read."""

    gateway: Gateway
    servers: tuple[Server, ...]
    problems: list[dict[str, Any]]

    def print_problems(self, *, without: Collection[str] = ()) -> None:
        """A line on stderr for each upstream or name that something is wrong with, but for those that were shown."""
        for problem in self.problems:
            if problem["name"] not in without:
                detail = f"{problem['name']}: {problem['reason_code']}: {problem['detail']}"
                say(detail, err=True)


class View(Protocol):
    """What is on the screen meanwhile."""

    def began(self, names: Collection[str]) -> None:
        """These are started."""

    def answered(self, server: Server) -> None: ...

    def ended(self, servers: Sequence[Server]) -> None:
        """Nobody waits any more. These are all servers, also those that did not answer and those that are not used."""


class _WaitingView:
    """The names of those that have not answered, in the line of what is waited for."""

    def __init__(self, line: Waiting) -> None:
        self._line = line
        self._pending: list[str] = []

    def began(self, names: Collection[str]) -> None:
        self._pending = list(names)
        self._say()

    def answered(self, server: Server) -> None:
        self._pending.remove(server.name)
        self._say()

    def ended(self, servers: Sequence[Server]) -> None:
        self._line.update("stopping the servers")

    def _say(self) -> None:
        if self._pending:
            self._line.update(f"starting {', '.join(self._pending)}")


@contextmanager
def waiting_view() -> Generator[View]:
    """The line on stderr of a terminal that names who has not answered yet."""
    with waiting_for("starting the servers") as line:
        yield _WaitingView(line)


def complete_catalog(settings: Settings, *, about: str | None = None) -> Listing:
    """The catalog with what every server lists. Those that are known from an earlier run are not started.

    If `about` is the name of a server or of a server's tool, no other server is started.
    """
    gateway = opened(settings)
    with waiting_view() as view:
        return listing(gateway, view, only=None if about is None else _server_of(gateway, about))


def opened(settings: Settings) -> Gateway:
    """A gateway of these settings for a command that looks and calls nothing. Says what of the files has no effect."""
    from goat_mcp.calls.permissions.mode import Approval
    from goat_mcp.gateway.gateway import Gateway

    say_notices(settings)
    return Gateway(settings, approval=Approval.DENY)


def _server_of(gateway: Gateway, name: str) -> str | None:
    """The server that is called so, or whose tools' names begin as this one does; None if that is unclear."""
    for config in gateway.upstreams.configs:
        if name in (config.name, config.server) or (config.prefix and name.startswith(config.prefix)):
            return config.name
    return None


def listing(
    gateway: Gateway, view: View, *, only: str | None = None, again: bool = False, patience: Patience = OF_A_PERSON
) -> Listing:
    """Start the servers and let them list; `again`: also those that are known from an earlier run. `only` is the name
    of the only one.
    """
    return anyio.run(_listing, gateway, view, None if only is None else [only], again, patience)


async def _listing(
    gateway: Gateway, view: View, names: Collection[str] | None, again: bool, patience: Patience
) -> Listing:
    took: dict[str, float] = {}
    begun_s = time.monotonic()

    def safe(status: UpstreamStatus) -> UpstreamStatus:
        """What a server wrote on stderr may hold its secrets."""
        return replace(status, detail=gateway.redactor.text(status.detail))

    def heard(status: UpstreamStatus, _: float) -> None:
        # The time of a person at a terminal: from the start of the command's work.
        took[status.name] = time.monotonic() - begun_s
        view.answered(Server(safe(status), took[status.name]))

    async with gateway.running():
        asked = gateway.upstreams.names_to_list(names, again=again)
        view.began(asked)
        await gateway.upstreams.each_listed(heard, patience, names=names, again=again)
        servers = tuple(
            Server(safe(status), took.get(status.name), is_asked=not status.server or status.name in asked)
            for status in gateway.upstreams.status()
            if names is None or status.name in names
        )
        problems = gateway.problems()
        view.ended(servers)
    return Listing(gateway, servers, problems)


def known_server(gateway: Gateway, name: str) -> str:
    """The name of the upstream that is meant by it. Raises `click.UsageError` if there is none."""
    statuses = gateway.upstreams.status()
    for status in statuses:
        if name in (status.name, status.server):
            return status.name
    known = [status.name for status in statuses]
    there = f"there are {', '.join(known)}" if known else "no upstream is configured"
    raise click.UsageError(f"no upstream is called {name!r}; {did_you_mean(name, known) or there}")
