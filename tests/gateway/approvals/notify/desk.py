"""A queue, and notifiers of one or several processes over it."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from goat_mcp.calls.approvals.notices import Notices
from goat_mcp.calls.approvals.options import NotifyEntry
from goat_mcp.calls.approvals.record import Approval, Kind, Request
from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.calls.permissions.mode import Approval as WhoAnswers
from goat_mcp.core.redaction import Redactor
from goat_mcp.gateway.approvals.notify.build import configured_channels
from goat_mcp.gateway.approvals.notify.channel import Channel, Messenger
from goat_mcp.gateway.approvals.notify.notifier import Notifier
from goat_mcp.gateway.approvals.queue import ApprovalQueue
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory

WAIT_S = 10.0


class Desk:
    """`problems` are by channel, as they are now; `warnings` all that were logged."""

    def __init__(self, folder: Path, state: StateDirectory | None = None) -> None:
        self.state = state or StateDirectory(folder / "state")
        self.store = ApprovalStore(self.state)
        self.queue = ApprovalQueue(self.state, self.store)
        self.notices = Notices(self.state)
        self.problems: dict[str, str] = {}
        self.reported: list[tuple[str, str]] = []
        self.warnings: list[tuple[str, dict[str, Any]]] = []

    def add(self, subject: str = "s1", **members: Any) -> Approval:
        """A call that waits."""
        given: dict[str, Any] = {
            "kind": Kind.CALL,
            "title": "Allow Bash?",
            "principal": "local",
            "tool": "Bash",
            "client": "claude-code 2.1",
            "arguments": (("command", "git push origin main"),),
            "risk": "high",
            "expires_at_s": time.time() + 600,
        }
        return self.store.add(Request(subject=subject, **(given | members)))

    def channels(self, *entries: dict[str, Any]) -> Sequence[tuple[str, Channel]]:
        """Those that the settings make of these entries."""
        settings = Settings.model_validate({"approval": {"notify": list(entries)}})
        services = Gateway(settings, approval=WhoAnswers.HOST, state=self.state).services
        return configured_channels([NotifyEntry.model_validate(entry) for entry in entries], services).channels

    def notifier(self, *entries: dict[str, Any], after_s: float = 0.0) -> Notifier:
        settings = Settings.model_validate({"approval": {"notify": list(entries)}})
        services = Gateway(settings, approval=WhoAnswers.HOST, state=self.state).services
        found = configured_channels(settings.approval.notify, services)
        return self.over(found.channels, found.messengers, after_s=after_s)

    def over(
        self,
        channels: Sequence[tuple[str, Channel]],
        messengers: Sequence[tuple[str, Messenger]] = (),
        *,
        after_s: float = 0.0,
    ) -> Notifier:
        return Notifier(
            channels,
            messengers,
            queue=self.queue,
            notices=self.notices,
            state=self.state,
            redactor=Redactor(),
            after_s=after_s,
            report=self._report,
            warn=lambda event, **fields: self.warnings.append((event, fields)),
        )

    def _report(self, place: str, problem: str) -> None:
        if problem:
            self.problems[place] = problem
            self.reported.append((place, problem))
        else:
            self.problems.pop(place, None)


@asynccontextmanager
async def running(*notifiers: Notifier) -> AsyncGenerator[None]:
    async with anyio.create_task_group() as group:
        for notifier in notifiers:
            group.start_soon(notifier.run)
        try:
            yield
        finally:
            group.cancel_scope.cancel()


async def until(is_so: Callable[[], object]) -> None:
    with anyio.fail_after(WAIT_S):
        while not is_so():  # noqa: ASYNC110  # what others write reports no event
            await anyio.sleep(0.01)
