"""A request of the page to the processes that serve now, and what they answer."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.to_thread

from goat_mcp.gateway.status.process_files import ProcessFiles
from goat_mcp.gateway.status.requests import RequestKind, UserRequest
from goat_mcp.server.ui.parts import UiParts

LOOK_S = 0.05
NOT_YET = "starting"


async def answers_to(
    parts: UiParts, kind: RequestKind, name: str, *, within_s: float, first: str = ""
) -> list[dict[str, Any]]:
    """The answers once all have answered, one is in the state `first`, or the time is over. Nobody serves: none.

    Raises `OSError`.
    """
    documents = await anyio.to_thread.run_sync(ProcessFiles(parts.state).running)
    if not documents:
        return []
    request = await anyio.to_thread.run_sync(UserRequest, parts.state, kind, name)
    pids = {one["pid"] for one in documents}
    answers: list[dict[str, Any]] = []
    try:
        with anyio.move_on_after(within_s):
            while True:
                answers = await anyio.to_thread.run_sync(request.answers)
                settled = [one for one in answers if one.get("state") != NOT_YET]
                if pids <= {one.get("pid") for one in settled} or any(one["state"] == first for one in settled):
                    break
                await anyio.sleep(LOOK_S)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(request.end)
    return answers
