"""The approvals of one principal, as its own client may see them. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from goat_mcp.calls.approvals.record import Approval
from goat_mcp.core.lazy import Lazy
from goat_mcp.core.redaction import Redactor
from goat_mcp.gateway.status.process_files import ProcessFiles
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.telemetry import Telemetry

if TYPE_CHECKING:  # loaded with the first look
    from goat_mcp.gateway.approvals.queue import ApprovalQueue

_ENDED_SHOWN = 5


class ApprovalsOfPrincipal:
    """Over the state directory: it sees what other processes ask and decide."""

    def __init__(self, state: StateDirectory, redactor: Redactor, telemetry: Telemetry) -> None:
        self._state = state
        self._redactor = redactor
        self._warn = telemetry.warning
        self._processes = ProcessFiles(state)
        self._queue = Lazy(self._made)

    def _made(self) -> ApprovalQueue:
        # It brings what knows plans, definitions and logins: the first call of another tool does without.
        from goat_mcp.gateway.approvals.user_queue import approval_queue

        return approval_queue(self._state, redactor=self._redactor, warn=self._warn)

    async def of(self, principal: str) -> Sequence[Approval]:
        queue = self._queue()
        await queue.waiting()  # brings what waits elsewhere into the queue
        return await anyio.to_thread.run_sync(lambda: queue.store.of(principal, ended=_ENDED_SHOWN))

    async def page(self) -> str:
        return await anyio.to_thread.run_sync(self._page)

    def _page(self) -> str:
        documents = self._processes.running()
        return next((address for document in documents if (address := _address(document))), "")


def _address(document: dict[str, Any]) -> str:
    page: Any = document.get("page")
    return page if isinstance(page, str) else ""
