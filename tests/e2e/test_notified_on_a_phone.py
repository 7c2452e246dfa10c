"""Real servers with the same bot: each record is one message, one of them reads the answers, each is decided once."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import anyio
import anyio.to_thread
import pytest

from goat_mcp.calls.approvals.record import Kind, Request, Status
from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.state.directory import StateDirectory
from tests.e2e.goat import Launch, connected, http_goat
from tests.gateway.approvals.notify.desk import until
from tests.manifests.telegram.bot_api import CHAT, TOKEN, BotApi
from tests.web.messaging.wire_server import Asked, Said, answering, json_said

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

USER = 77
RECORDS = 8


class OneReader:
    """A bot whose updates one process at a time may read; Telegram answers a second one with 409."""

    def __init__(self) -> None:
        self.api = BotApi()
        self.reading = 0
        self.conflicts = 0

    async def answer(self, asked: Asked) -> Said:
        if not asked.path.endswith("getUpdates"):
            return self.api.answer(asked)
        if self.reading:
            self.conflicts += 1
            return json_said({"ok": False, "error_code": 409, "description": "Conflict"}, "409 Conflict")
        self.reading += 1
        try:
            await asyncio.sleep(0.1)  # long polling
            return self.api.answer(asked)
        finally:
            self.reading -= 1


async def test_two_servers_send_each_record_once_and_share_the_answers(launch: Launch) -> None:
    bot = OneReader()
    store = ApprovalStore(StateDirectory(launch.folder / "state"))
    async with answering(bot.answer) as wire:
        started = with_phone(launch, wire.url)
        async with connected(started, "legacy") as client:
            await client.list_tools()
            with http_goat(started):
                ids = [store.add(_request(number)).id for number in range(RECORDS)]
                await until(lambda: len(bot.api.sent) == RECORDS)
                for number, buttons in list(bot.api.buttons.items()):
                    data = buttons[number % 2]["callback_data"]  # some are approved, some denied
                    bot.api.press(number, data, user=USER)
                    bot.api.press(number, data, user=USER + 1)
                with anyio.fail_after(30):
                    await until(lambda: not any(bot.api.buttons.values()))
                found = [store.find(id) for id in ids]

    statuses = [one.status for one in found]
    assert {one.decided_by for one in found} == {"telegram: Heidi"}
    assert (statuses.count(Status.APPROVED), statuses.count(Status.DENIED)) == (RECORDS / 2, RECORDS / 2)
    assert len(bot.api.sent) == RECORDS
    assert bot.conflicts == 0
    assert bot.api.methods.count("editMessageText") == RECORDS


async def test_if_the_server_that_reads_is_killed_another_one_reads_on(launch: Launch) -> None:
    bot = OneReader()
    store = ApprovalStore(StateDirectory(launch.folder / "state"))
    async with answering(bot.answer) as wire:
        started = with_phone(launch, wire.url)
        with http_goat(started) as first:
            id = store.add(_request(1)).id
            await until(lambda: "getUpdates" in bot.api.methods)
            async with connected(started, "legacy") as client:
                await client.list_tools()
                first.process.kill()
                await anyio.to_thread.run_sync(first.process.wait)
                ((number, (approve, _)),) = bot.api.buttons.items()
                bot.api.press(number, approve["callback_data"], user=USER)
                with anyio.fail_after(30):
                    await until(lambda: not bot.api.buttons[number])

    found = store.find(id)
    assert (found.status, found.decided_by) == (Status.APPROVED, "telegram: Heidi")
    assert len(bot.api.sent) == 1


def with_phone(launch: Launch, url: str) -> Launch:
    chat = {"token": "${env:BOT_TOKEN}", "chat": CHAT, "user": USER, "base_url": url}
    approval = {"notify": [{"telegram": chat}], "notify_after_s": 0}
    return replace(launch, options=("--set", f"approval={json.dumps(approval)}"), variables={"BOT_TOKEN": TOKEN})


def _request(number: int) -> Request:
    arguments: tuple[tuple[str, str], ...] = (("command", f"echo {number}"),)
    members: dict[str, Any] = {"title": "Bash", "principal": "local", "tool": "Bash", "arguments": arguments}
    return Request(kind=Kind.CALL, subject=f"s{number}", **members)
