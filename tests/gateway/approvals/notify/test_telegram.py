"""Approvals by Telegram: what the message says, whose button counts, and for what."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from goat_mcp.calls.approvals.record import Approval, Status
from goat_mcp.core import platform
from goat_mcp.gateway.approvals.notify import notifier
from goat_mcp.gateway.approvals.notify.button_presses import NO_REQUEST, NOT_HERE, NOT_YOU
from goat_mcp.gateway.approvals.notify.message import digest_of
from tests.gateway.approvals.notify.desk import Desk, running, until
from tests.manifests.telegram.bot_api import CHAT, TOKEN, BotApi
from tests.web.messaging.wire_server import Said, WireServer, answering

pytestmark = pytest.mark.anyio

USER = 77


@dataclass
class Phone:
    desk: Desk
    api: BotApi
    wire: WireServer
    entry: dict[str, Any]

    async def message(self, approval: Approval) -> int:
        """The number of the message about it, once it is sent."""
        await until(lambda: self.desk.notices.find(approval.id, f"telegram {CHAT} {USER}"))
        sent = self.desk.notices.find(approval.id, f"telegram {CHAT} {USER}")
        assert sent is not None
        return int(sent.message)

    async def press(self, number: int, data: str, *, user: int = USER, chat: int = CHAT) -> str:
        """What is answered to who pressed."""
        id = self.api.press(number, data, user=user, chat=chat)
        await until(lambda: id in self.api.replies)
        return self.api.replies[id]

    def status(self, approval: Approval) -> Status:
        return self.desk.store.find(approval.id).status


@asynccontextmanager
async def phone(desk: Desk, api: BotApi | None = None) -> AsyncGenerator[Phone]:
    api = api or BotApi()
    async with answering(api.answer) as wire:
        entry = {"telegram": {"token": TOKEN, "chat": CHAT, "user": USER, "base_url": wire.url}}
        yield Phone(desk, api, wire, entry)


def button(approval: Approval, letter: str = "a") -> str:
    return f"{letter}:{approval.id}:{digest_of(approval)}"


async def test_a_press_approves_once_and_the_message_says_who_did(desk: Desk) -> None:
    approval = desk.add()
    async with phone(desk) as telegram, running(desk.notifier(telegram.entry)):
        number = await telegram.message(approval)
        asked, buttons = telegram.api.messages[number], telegram.api.buttons[number]
        said = await telegram.press(number, buttons[0]["callback_data"])
        await until(lambda: not telegram.api.buttons[number])

    decided = desk.store.find(approval.id)
    assert [one["text"] for one in buttons] == ["Approve once", "Deny"]
    assert "Allow Bash?" in asked and "command: git push origin main" in asked and "Risk: high" in asked
    assert f"{approval.short_id}, digest {digest_of(approval)}, expires in" in asked
    assert f"goat-mcp approve {approval.short_id}" in asked
    assert (decided.status, decided.decided_by) == (Status.APPROVED, "telegram: Heidi")
    assert decided.verdict is not None and (decided.verdict.scope, decided.verdict.rules) == ("once", ())
    assert said == "Allow Bash?: approved (once); it runs when the client sends the call again"
    assert "\n\nApproved (once) by telegram: Heidi, " in telegram.api.messages[number]


async def test_a_press_denies(desk: Desk) -> None:
    approval = desk.add()
    async with phone(desk) as telegram, running(desk.notifier(telegram.entry)):
        number = await telegram.message(approval)
        await telegram.press(number, button(approval, "d"))

    assert telegram.status(approval) is Status.DENIED


@pytest.mark.parametrize(("user", "chat"), [(78, CHAT), (USER, -100777), (78, -100777)])
async def test_nobody_else_and_nowhere_else_decides(desk: Desk, user: int, chat: int) -> None:
    approval = desk.add()
    async with phone(desk) as telegram, running(desk.notifier(telegram.entry)):
        number = await telegram.message(approval)
        said = await telegram.press(number, button(approval), user=user, chat=chat)

        assert (said, telegram.status(approval)) == (NOT_YOU, Status.WAITING)
        assert telegram.api.buttons[number]  # the person who may can still decide
    assert [event for event, _ in desk.warnings] == ["approval.notify: a button was pressed by somebody else"]


async def test_a_button_counts_for_its_own_record_message_and_digest_only(desk: Desk) -> None:
    mine, other = desk.add("s1"), desk.add("s2", arguments=(("command", "rm -rf build"),))
    async with phone(desk) as telegram, running(desk.notifier(telegram.entry)):
        number, of_other = await telegram.message(mine), await telegram.message(other)
        forged = [
            (number, button(other)),  # another record's button on this message
            (of_other, button(mine)),
            (number, f"a:{mine.id}:{digest_of(other)}"),
            (number, f"a:{'0' * 32}:{digest_of(mine)}"),
        ]
        said = [await telegram.press(at, data) for at, data in forged]
        strange = [await telegram.press(number, data) for data in ("", "a:x:y", f"a:{mine.id[:8]}:{digest_of(mine)}")]

        assert said == [NO_REQUEST] * 4
        assert set(strange) == {"This button is not goat-mcp's."}
        assert (telegram.status(mine), telegram.status(other)) == (Status.WAITING, Status.WAITING)


async def test_a_replayed_press_decides_nothing_again(desk: Desk) -> None:
    approval, later = desk.add("s1"), desk.add("s2")
    async with phone(desk) as telegram, running(desk.notifier(telegram.entry)):
        number = await telegram.message(approval)
        await telegram.message(later)
        await telegram.press(number, button(approval, "d"))
        said = await telegram.press(number, button(approval, "a"))

    assert "was denied before, by telegram: Heidi" in said
    assert telegram.status(approval) is Status.DENIED


async def test_after_its_time_a_press_comes_too_late_and_the_message_says_so(desk: Desk) -> None:
    approval = desk.add("s1", expires_at_s=time.time() + 1.0)
    desk.add("s2")  # which keeps somebody reading
    async with phone(desk) as telegram, running(desk.notifier(telegram.entry)):
        number = await telegram.message(approval)
        await until(lambda: not telegram.api.buttons[number])
        said = await telegram.press(number, button(approval))

        assert telegram.api.messages[number].endswith("Expired: nobody decided")
    assert "has expired" in said
    assert telegram.status(approval) is Status.EXPIRED


async def test_if_somebody_is_faster_the_message_says_who(desk: Desk) -> None:
    approval = desk.add()
    async with phone(desk) as telegram, running(desk.notifier(telegram.entry)):
        number = await telegram.message(approval)
        await desk.queue.deny(approval.id, by="terminal", reason="not now")
        await until(lambda: not telegram.api.buttons[number])

    assert "Denied by terminal" in telegram.api.messages[number]
    assert telegram.api.messages[number].endswith(": not now")


async def test_what_does_not_fit_is_denied_from_outside_or_approved_at_the_desk(desk: Desk) -> None:
    approval = desk.add(arguments=(("command", "echo 🐐; " * 2000),))
    async with phone(desk) as telegram, running(desk.notifier(telegram.entry)):
        number = await telegram.message(approval)
        said = await telegram.press(number, button(approval))  # which the message does not have

        assert [one["text"] for one in telegram.api.buttons[number]] == ["Deny"]
        assert "more characters: goat-mcp approvals]" in telegram.api.messages[number]
        assert "\nApprove it at the desk only: " in telegram.api.messages[number]
        assert (said, telegram.status(approval)) == (NOT_HERE, Status.WAITING)


async def test_two_processes_send_once_and_one_of_them_reads(desk: Desk) -> None:
    first, second = desk.add("s1"), desk.add("s2")
    async with phone(desk) as telegram:
        polls = 0
        at_once = 0

        async def answer(asked: Any) -> Said:
            nonlocal polls, at_once
            if not asked.path.endswith("getUpdates"):
                return telegram.api.answer(asked)
            polls += 1
            assert polls == 1, "Telegram answers 409 if two read at a time"
            at_once = max(at_once, polls)
            await anyio.sleep(0.05)
            polls -= 1
            return telegram.api.answer(asked)

        telegram.wire.answer = answer
        async with running(desk.notifier(telegram.entry), desk.notifier(telegram.entry)):
            numbers = [await telegram.message(one) for one in (first, second)]
            await telegram.press(numbers[0], button(first))
            await telegram.press(numbers[1], button(second, "d"))
            await until(lambda: not any(telegram.api.buttons.values()))

    assert at_once == 1
    assert len(telegram.api.sent) == 2
    assert telegram.api.methods.count("editMessageText") == 2
    assert (telegram.status(first), telegram.status(second)) == (Status.APPROVED, Status.DENIED)


async def test_what_was_read_is_not_read_again_by_the_next_process(desk: Desk) -> None:
    approval, other = desk.add("s1"), desk.add("s2")
    async with phone(desk) as telegram:
        async with running(desk.notifier(telegram.entry)):
            await telegram.press(await telegram.message(approval), button(approval))
            await until((desk.state.path / "notify" / "telegram-987654321.json").exists)
        async with running(desk.notifier(telegram.entry)):
            await telegram.press(await telegram.message(other), button(other))

        polls = [asked.fields for asked in telegram.wire.asked if asked.path.endswith("getUpdates")]
        assert polls[0].get("offset") is None
        assert polls[-1]["offset"] >= 501
        assert all(poll["allowed_updates"] == ["callback_query"] for poll in polls)
    files = {path.name: path.stat().st_mode & 0o777 for path in (desk.state.path / "notify").iterdir()}
    assert files.keys() == {"telegram-987654321.json", "telegram-987654321.lock"}
    assert not platform.HAS_FILE_MODES or set(files.values()) == {0o600}


async def test_nothing_is_read_while_nothing_waits(desk: Desk) -> None:
    async with phone(desk) as telegram, running(desk.notifier(telegram.entry)):
        approval = desk.add()
        number = await telegram.message(approval)
        await telegram.press(number, button(approval))
        await until(lambda: not telegram.api.buttons[number])
        await anyio.sleep(0.2)  # a poll that is under way ends
        count = telegram.api.methods.count("getUpdates")
        await anyio.sleep(0.3)

        assert telegram.api.methods.count("getUpdates") == count


async def test_a_wrong_token_is_reported_once_and_holds_up_nothing(desk: Desk) -> None:
    approval = desk.add()
    async with phone(desk) as telegram:
        telegram.entry["telegram"]["token"] = "1:wrong-token"
        async with running(desk.notifier(telegram.entry)):
            await until(lambda: desk.problems)
            await desk.queue.approve(approval.id, by="terminal")

    assert desk.problems == {"approval.notify.0 (telegram)": "Telegram refused sendMessage: Unauthorized"}
    assert len(desk.reported) == 1
    assert telegram.api.sent == []


async def test_a_server_that_is_away_for_a_while_gets_the_message_later(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifier, "SEND_AGAIN_AFTER_S", (0.05, 0.05, 5.0))
    approval = desk.add()
    async with phone(desk) as telegram:
        good = telegram.wire.answer
        telegram.wire.answer = lambda asked: Said(b"<html>bad gateway", "502 Bad Gateway")
        async with running(desk.notifier(telegram.entry)):
            await until(lambda: desk.problems)
            telegram.wire.answer = good
            await telegram.message(approval)
            await until(lambda: not desk.problems)


async def test_a_huge_or_broken_answer_decides_nothing(desk: Desk) -> None:
    approval = desk.add()
    async with phone(desk) as telegram:
        number = 0
        huge = json.dumps({"ok": True, "result": [{"update_id": 1, "pad": "x" * 6_000_000}]}).encode()
        bodies = [huge, b'{"ok": true, "result": {"update_id": 1}}', b'{"ok": true, "result": [1, null, {}]}']

        def answer(asked: Any) -> Said:
            if asked.path.endswith("getUpdates") and bodies:
                return Said(bodies.pop(0))
            return telegram.api.answer(asked)

        telegram.wire.answer = answer
        async with running(desk.notifier(telegram.entry)):
            number = await telegram.message(approval)
            await until(lambda: not bodies)
            assert telegram.status(approval) is Status.WAITING
            await telegram.press(number, button(approval))

    assert telegram.status(approval) is Status.APPROVED
    assert any("no JSON object" in problem for _, problem in desk.reported)


async def test_no_secret_and_no_hidden_character_reaches_telegram(desk: Desk) -> None:
    approval = desk.add(arguments=(("command", "curl -H 'Authorization: Bearer abcdef123456' \u202ex\x1b[0m"),))
    async with phone(desk) as telegram, running(desk.notifier(telegram.entry)):
        text = telegram.api.messages[await telegram.message(approval)]

    assert "abcdef123456" not in text and "[redacted]" in text
    assert "\u202e" not in text and "\\u202e" in text and "\\x1b" in text
    assert telegram.api.sent[0]["link_preview_options"] == {"is_disabled": True}
    assert "parse_mode" not in telegram.api.sent[0]
