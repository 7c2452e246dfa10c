"""Which requests of one connection wait for their answer. Cancelling them is the SDK's business."""

from __future__ import annotations

import anyio
import mcp_types as types

from goat_mcp.server.stdio.frame_validation import Fault


class OpenRequests:
    """Refuses a second request under an id that is still open: its sender could not tell the answers apart (PR-12)."""

    def __init__(self) -> None:
        self._ids: dict[str, types.RequestId] = {}
        self._none_open = anyio.Event()

    def arrives(self, message: types.JSONRPCMessage) -> Fault | None:
        """Note a message of the client; the fault of one that must not be passed on."""
        if isinstance(message, types.JSONRPCRequest):
            return self.opens(message.id)
        if isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            # What was cancelled is never answered.
            self._forget(str((message.params or {}).get("requestId")))
        return None

    def opens(self, request_id: types.RequestId) -> Fault | None:
        """Note a request; its fault, if that id is taken."""
        key = str(request_id)  # the SDK takes 1 and "1" for the same request, too
        if key in self._ids:
            reason = "this id belongs to a request that has not been answered yet"
            return Fault(types.INVALID_REQUEST, reason, request_id)
        self._ids[key] = request_id
        return None

    def leaves(self, message: types.JSONRPCMessage) -> None:
        """Note a message of ours: an answer closes its request."""
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self.closes(message.id)

    def closes(self, request_id: types.RequestId | None) -> None:
        """Note the answer to a request."""
        self._forget(str(request_id))

    async def all_closed(self, within_s: float) -> list[types.RequestId]:
        """Wait until none is open. Returns those that are, once the time is up."""
        with anyio.move_on_after(within_s):
            while self._ids:
                self._none_open = anyio.Event()
                await self._none_open.wait()
        return list(self._ids.values())

    def _forget(self, key: str) -> None:
        self._ids.pop(key, None)
        if not self._ids:
            self._none_open.set()
