"""Whether a button that somebody pressed counts: for whom, on which message, for which record; and the decision."""

from __future__ import annotations

import anyio.to_thread

from goat_mcp.calls.approvals.notices import Notices
from goat_mcp.calls.approvals.record import DecidedBefore
from goat_mcp.calls.approvals.scopes import ONCE
from goat_mcp.core.errors import ToolError
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.gateway.approvals.notify.channel import ButtonPress, HandlePress, Messenger
from goat_mcp.gateway.approvals.notify.message import digest_of
from goat_mcp.gateway.approvals.queue import ApprovalQueue
from goat_mcp.state.database import Warn

NOT_YOU = "Only the person who is configured can decide here."
NO_REQUEST = "This button belongs to nothing that waits."
NOT_HERE = "It can be approved at the desk only."
_NAME_CHARS = 40


def press_handler(messenger: Messenger, queue: ApprovalQueue, notices: Notices, warn: Warn) -> HandlePress:
    """Presses on messages of this messenger."""

    async def handle_press(press: ButtonPress) -> str:
        if (press.user, press.place) != (messenger.user, messenger.place):
            warn("approval.notify: a button was pressed by somebody else", channel=messenger.name, user=press.user[:40])
            return NOT_YOU
        sent = await anyio.to_thread.run_sync(notices.find, press.approval, messenger.key)
        if sent is None or (sent.message, sent.digest) != (press.message, press.digest):
            return NO_REQUEST
        if press.approves and not sent.may_approve:
            return NOT_HERE
        by = f"{messenger.name}: {make_visible(press.user_name)[:_NAME_CHARS] or press.user}"
        try:
            found = await anyio.to_thread.run_sync(queue.store.find, press.approval)
            if digest_of(found) != press.digest:
                return NO_REQUEST
            if press.approves:
                decided = await queue.approve(press.approval, scope=ONCE, by=by)
            else:
                decided = await queue.deny(press.approval, by=by)
        except DecidedBefore as before:
            return before.message
        except ToolError as failed:
            warn("approval.notify: a decision failed", channel=messenger.name, problem=failed.message)
            return f"That did not work: {failed.message}"
        return decided.done

    return handle_press
