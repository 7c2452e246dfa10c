"""What every view of the page is made from. Each part comes from outside: the page fetches nothing itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property

from goat_mcp.core.redaction import Redactor
from goat_mcp.gateway.approvals.queue import ApprovalQueue
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.ui.changes import Changes
from goat_mcp.server.ui.hosts import Hosts
from goat_mcp.server.ui.login import LoginLinks, Sessions
from goat_mcp.server.ui.pages import Pages
from goat_mcp.state.database import Warn
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import no_warning


@dataclass(frozen=True)
class UiParts:
    """`gateway` is that of this process; a page that is served alone makes and starts it when it is first needed.

    `origin` is where the page is, `http://127.0.0.1:8765`. `hosts` is None if nobody may change them from here.
    """

    state: StateDirectory
    queue: ApprovalQueue
    origin: str
    gateway: Callable[[], Awaitable[Gateway]]
    public_origin: str = ""
    """Where people come from elsewhere, `https://mcp.example.com`: a load balancer has that name."""
    hosts: Hosts | None = None
    redactor: Redactor = field(default_factory=Redactor)
    warn: Warn = no_warning
    unexpected: Callable[[str, str, BaseException], None] | None = None
    """Logs a bug: its id, where, and what it is."""

    @cached_property
    def changes(self) -> Changes:
        return Changes(self.state)

    @cached_property
    def pages(self) -> Pages:
        return Pages()

    @cached_property
    def sessions(self) -> Sessions:
        return Sessions()

    @cached_property
    def links(self) -> LoginLinks:
        return LoginLinks(self.state, self.origin, [self.public_origin] if self.public_origin else [])

    def log_bug(self, id: str, where: str, bug: BaseException) -> None:
        if self.unexpected is not None:
            self.unexpected(id, where, bug)
        else:
            self.warn("page failed", where=where, id=id, problem=type(bug).__name__)
