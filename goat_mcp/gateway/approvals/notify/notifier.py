"""Sends what waits to each channel, changes the messages when it is decided, and reads the answers.

Runs beside the calls of a serving process, and delays none. Failures are reported, and nothing else follows from them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from functools import partial

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from goat_mcp.calls.approvals.notices import Notices
from goat_mcp.calls.approvals.record import Approval, Kind
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.redaction import Redactor
from goat_mcp.core.token_bucket import TokenBucket
from goat_mcp.gateway.approvals.notify.button_presses import press_handler
from goat_mcp.gateway.approvals.notify.channel import FOLDER, Channel, Messenger
from goat_mcp.gateway.approvals.notify.message import Message, message_about
from goat_mcp.gateway.approvals.queue import ApprovalQueue
from goat_mcp.state.database import Warn
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.file_lock import try_lock
from goat_mcp.state.own_file import open_own

LOOK_S = 0.5
LOOK_AGAIN_S = 2.0
"""So often is asked what waits in stores of its own, if nobody has put anything into the queue."""
AT_ONCE = 10
PER_S = 1 / 6
"""More than so many messages at once help nobody; the others follow one by one, if they still wait then."""
SEND_AGAIN_AFTER_S = (2.0, 10.0, 30.0)
READ_PAUSE_S = 0.2
"""A server that does not wait for presses would be asked all the time."""
LONGEST_PAUSE_S = 60.0
DONE_WITHIN_S = 3.0
_TEMPORARY = frozenset({ErrorCode.NETWORK, ErrorCode.RATE})

Report = Callable[[str, str], None]
"""What is wrong with a channel, by its place in the settings; "" if nothing is."""


class Notifier:
    """`channels` are by their place in the settings, `messengers` those among them whose messages have buttons."""

    def __init__(
        self,
        channels: Sequence[tuple[str, Channel]],
        messengers: Sequence[tuple[str, Messenger]],
        *,
        queue: ApprovalQueue,
        notices: Notices,
        state: StateDirectory,
        redactor: Redactor,
        after_s: float,
        report: Report,
        warn: Warn,
    ) -> None:
        self._channels = channels
        self._messengers = messengers
        self._with_buttons = {place for place, _ in messengers}
        self._queue = queue
        self._notices = notices
        self._state = state
        self._redactor = redactor
        self._after_s = after_s
        self._report = report
        self._warn = warn
        self._buckets = {place: TokenBucket(PER_S, AT_ONCE) for place, _ in channels}
        self._begun: set[tuple[str, str]] = set()
        self._mark: object = None
        self._next_s = 0.0

    async def run(self) -> None:
        """Until cancelled."""
        async with anyio.create_task_group() as group:
            for place, messenger in self._messengers:
                group.start_soon(self._listen, place, messenger)
            while True:
                try:
                    await self._look(group)
                except (ToolError, OSError) as failed:
                    self._report("approval.notify", _words(failed))
                await anyio.sleep(LOOK_S)

    async def _look(self, group: TaskGroup) -> None:
        mark = await anyio.to_thread.run_sync(self._queue.store.mark)
        if mark == self._mark and time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + LOOK_AGAIN_S
        waiting = await self._queue.waiting()
        self._mark = await anyio.to_thread.run_sync(self._queue.store.mark)
        ids = {approval.id for approval in waiting}
        self._begun = {(id, place) for id, place in self._begun if id in ids}
        for approval in waiting:
            left_s = approval.at_s + self._after_s - time.time()
            if left_s > 0:
                self._next_s = min(self._next_s, time.monotonic() + left_s)
            else:
                await self._send_everywhere(approval, group)
        await self._settle(ids)
        self._report("approval.notify", "")

    async def _send_everywhere(self, approval: Approval, group: TaskGroup) -> None:
        for place, channel in self._channels:
            if (approval.id, place) in self._begun or not self._buckets[place].take():
                continue
            self._begun.add((approval.id, place))
            message = message_about(approval, self._redactor)
            claim = partial(self._notices.claim, approval.id, channel.key, message.digest, message.may_approve)
            if await anyio.to_thread.run_sync(claim):
                group.start_soon(self._send, place, channel, message)

    async def _send(self, place: str, channel: Channel, message: Message) -> None:
        id = message.approval.id
        for pause_s in (*SEND_AGAIN_AFTER_S, None):
            try:
                sent = await channel.send(message)
            except ToolError as failed:
                self._report(place, failed.message)
                may_try_again = place in self._with_buttons and failed.code in _TEMPORARY
                if pause_s is None or not may_try_again:
                    await self._keep(partial(self._notices.failed, id, channel.key))
                    return
                await anyio.sleep(pause_s)
                if (id, place) not in self._begun:
                    return  # nobody waits for it any more
            else:
                self._report(place, "")
                await self._keep(partial(self._notices.sent, id, channel.key, sent))
                return

    async def _keep(self, change: Callable[[], None]) -> None:
        try:
            await anyio.to_thread.run_sync(change)
        except ToolError as failed:
            self._report("approval.notify", failed.message)

    async def _settle(self, waiting: Collection[str]) -> None:
        """Say in each message what became of it, whoever decided, and in whichever process."""
        for place, messenger in self._messengers:
            for sent in await anyio.to_thread.run_sync(self._notices.open, messenger.key):
                if sent.approval in waiting:
                    continue
                approval = await self._find(sent.approval)
                if approval is not None and _may_wait_again(approval):
                    continue
                settle = partial(self._notices.settle, sent.approval, messenger.key)
                if not await anyio.to_thread.run_sync(settle) or approval is None:
                    continue
                try:
                    await messenger.edit(sent.message, message_about(approval, self._redactor).ended(approval))
                except ToolError as failed:
                    self._report(place, failed.message)

    async def _find(self, id: str) -> Approval | None:
        try:
            return await anyio.to_thread.run_sync(self._queue.store.find, id)
        except ToolError as failed:
            if failed.code is not ErrorCode.NOT_FOUND:
                raise
            return None

    async def _listen(self, place: str, messenger: Messenger) -> None:
        """While a message has buttons, and in one process of the user only."""
        handle_press = press_handler(messenger, self._queue, self._notices, self._warn)
        pause_s = LOOK_S
        while True:
            try:
                if await self._has_open(messenger):
                    with self._reading(messenger) as is_ours:
                        while is_ours and await self._has_open(messenger):
                            await messenger.read_answers(handle_press)
                            pause_s = LOOK_S
                            await anyio.sleep(READ_PAUSE_S)
            except (ToolError, OSError) as failed:
                self._report(place, _words(failed))
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            finally:
                with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                    await messenger.stop_reading()
            await anyio.sleep(pause_s)

    async def _has_open(self, messenger: Messenger) -> bool:
        return bool(await anyio.to_thread.run_sync(self._notices.open, messenger.key))

    @contextmanager
    def _reading(self, messenger: Messenger) -> Generator[bool]:
        """Whether this process may read the answers now: no other one does. Raises `OSError`, `ToolError`."""
        path = self._state.folder(FOLDER) / f"{messenger.account}.lock"
        descriptor = open_own(path, os.O_RDWR | os.O_CREAT)
        try:
            yield try_lock(descriptor)
        finally:
            os.close(descriptor)  # gives the lock back


def _may_wait_again(approval: Approval) -> bool:
    """What was approved is being done just now; if that fails, it waits again."""
    if approval.request.kind is Kind.CALL or approval.decided_at_s is None or approval.used_at_s is not None:
        return False
    return time.time() - approval.decided_at_s < DONE_WITHIN_S


def _words(failed: ToolError | OSError) -> str:
    return failed.message if isinstance(failed, ToolError) else str(failed)
