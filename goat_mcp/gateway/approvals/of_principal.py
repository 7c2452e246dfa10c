"""The approvals of one principal, as its own client may see them. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio.to_thread

from goat_mcp.calls.approvals.record import Approval
from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.gateway.status.process_files import ProcessFiles
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.telemetry import Telemetry

_ENDED_SHOWN = 5


class ApprovalsOfPrincipal:
    """Over the state directory: it sees what other processes ask and decide."""

    def __init__(self, state: StateDirectory, telemetry: Telemetry) -> None:
        self._store = ApprovalStore(state, telemetry.warning)
        self._processes = ProcessFiles(state)

    async def of(self, principal: str) -> Sequence[Approval]:
        return await anyio.to_thread.run_sync(lambda: self._store.of(principal, ended=_ENDED_SHOWN))

    async def page(self) -> str:
        return await anyio.to_thread.run_sync(self._page)

    def _page(self) -> str:
        documents = self._processes.running()
        return next((address for document in documents if (address := _address(document))), "")


def _address(document: dict[str, Any]) -> str:
    page: Any = document.get("page")
    return page if isinstance(page, str) else ""
