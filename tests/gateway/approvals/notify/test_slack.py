"""Approvals by Slack: buttons, answered in Socket Mode; whose click counts, and for what."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from wsproto.events import TextMessage

from goat_mcp.calls.approvals.record import Approval, Status
from goat_mcp.gateway.approvals.notify import slack as slack_channel
from goat_mcp.gateway.approvals.notify.message import digest_of
from tests.gateway.approvals.notify.desk import Desk, running, until
from tests.gateway.approvals.notify.slack_double import CHANNEL, SlackWorkspace, slack_workspace

pytestmark = pytest.mark.anyio

USER = "U777"
KEY = f"slack {CHANNEL} {USER}"


class Phone:
    def __init__(self, desk: Desk, slack: SlackWorkspace, entry: dict[str, Any]) -> None:
        self.desk = desk
        self.slack = slack
        self.entry = {"slack": {**entry, "user": USER}}

    async def message(self, approval: Approval) -> str:
        """Its `ts`, once it is sent and somebody listens."""
        await until(lambda: self.desk.notices.find(approval.id, KEY) and self.slack.connections)
        sent = self.desk.notices.find(approval.id, KEY)
        assert sent is not None
        return sent.message

    def status(self, approval: Approval) -> Status:
        return self.desk.store.find(approval.id).status


@asynccontextmanager
async def phone(desk: Desk) -> AsyncGenerator[Phone]:
    async with slack_workspace() as (slack, entry):
        yield Phone(desk, slack, entry)


def action(approval: Approval, name: str = "goat_mcp_approve") -> dict[str, Any]:
    return {"action_id": name, "value": f"{approval.id}:{digest_of(approval)}"}


async def test_a_click_approves_once_and_the_message_says_who_did(desk: Desk) -> None:
    approval = desk.add(arguments=(("command", "echo <!channel> & *x*"),))
    async with phone(desk) as on, running(desk.notifier(on.entry)):
        ts = await on.message(approval)
        buttons, shown = on.slack.buttons(ts), on.slack.shown(ts)
        await on.slack.press(ts, buttons[0], user=USER)
        await until(lambda: not on.slack.buttons(ts))
        connection = on.slack.connections[-1] if on.slack.connections else None
        ended = on.slack.shown(ts)

    decided = desk.store.find(approval.id)
    assert (decided.status, decided.decided_by) == (Status.APPROVED, "slack: heidi")
    assert [one["text"]["text"] for one in buttons] == ["Approve once", "Deny"]
    assert "command: echo <!channel> & *x*" in shown and f"digest {digest_of(approval)}" in shown
    assert "Approved (once) by slack: heidi" in ended
    assert "<!channel>" not in on.slack.messages[0]["text"]
    assert connection is None or (connection.acknowledged == [f"e{ts}"] and connection.pongs == 1)


async def test_a_click_denies(desk: Desk) -> None:
    approval = desk.add()
    async with phone(desk) as on, running(desk.notifier(on.entry)):
        ts = await on.message(approval)
        await on.slack.press(ts, on.slack.buttons(ts)[1], user=USER)
        await until(lambda: on.status(approval) is not Status.WAITING)

    assert on.status(approval) is Status.DENIED


async def test_only_the_configured_person_in_the_channel_decides_and_only_by_its_own_button(desk: Desk) -> None:
    approval, other = desk.add("s1"), desk.add("s2", arguments=(("command", "ls"),))
    async with phone(desk) as on, running(desk.notifier(on.entry)):
        ts, of_other = await on.message(approval), await on.message(other)
        await on.slack.press(ts, action(approval), user="U778")
        await on.slack.press(ts, action(approval), user=USER, channel="C999")
        await on.slack.press(ts, action(other), user=USER)
        await on.slack.press(ts, {**action(approval), "value": f"{approval.id}:{digest_of(other)}"}, user=USER)
        await on.slack.press(ts, {**action(approval), "action_id": "approve_all"}, user=USER)
        await on.slack.connections[-1].say(TextMessage(data="no JSON"), TextMessage(data='{"type": "interactive"}'))
        # Read in order: once this counts, those before it did not.
        await on.slack.press(of_other, action(other, "goat_mcp_deny"), user=USER)
        await until(lambda: on.status(other) is Status.DENIED)

        assert on.status(approval) is Status.WAITING
    assert len(desk.warnings) == 2


async def test_a_connection_that_slack_ends_is_opened_again(desk: Desk) -> None:
    approval = desk.add()
    async with phone(desk) as on, running(desk.notifier(on.entry)):
        ts = await on.message(approval)
        await on.slack.connections[-1].say(TextMessage(data=json.dumps({"type": "disconnect", "reason": "refresh"})))
        await until(lambda: on.slack.opened == 2 and on.slack.connections)
        on.slack.connections[-1].writer.transport.abort()
        await until(lambda: on.slack.opened == 3 and on.slack.connections)
        await on.slack.press(ts, action(approval), user=USER)
        await until(lambda: on.status(approval) is Status.APPROVED)


async def test_a_connection_without_a_sign_of_life_is_opened_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slack_channel, "LISTEN_S", 0.05)
    monkeypatch.setattr(slack_channel, "SILENT_S", 0.1)
    approval = desk.add()
    async with phone(desk) as on, running(desk.notifier(on.entry)):
        await on.message(approval)
        await until(lambda: on.slack.opened >= 2)


async def test_socket_mode_leads_to_slack_only(desk: Desk) -> None:
    desk.add()
    async with phone(desk) as on:
        on.slack.url = "wss://slack.com.evil.example/link?ticket=t1"
        async with running(desk.notifier(on.entry)):
            await until(lambda: desk.problems)

    assert desk.problems == {
        "approval.notify.0 (slack)": "Slack named a place for Socket Mode that is not Slack's",
    }


async def test_two_processes_have_one_connection_between_them(desk: Desk) -> None:
    approval = desk.add()
    async with phone(desk) as on:
        async with running(desk.notifier(on.entry), desk.notifier(on.entry)):
            await on.message(approval)
            await anyio.sleep(0.2)

            assert len(on.slack.connections) == 1
        assert on.slack.methods.count("chat.postMessage") == 1


async def test_without_the_extra_the_message_has_no_buttons_and_the_status_says_why(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slack_channel, "can_open", lambda: False)
    approval = desk.add()
    async with phone(desk) as on, running(desk.notifier(on.entry)):
        await until(lambda: desk.problems)

        assert on.slack.buttons(on.slack.messages[0]["ts"]) == []
        assert f"goat-mcp approve {approval.short_id}" in on.slack.shown(on.slack.messages[0]["ts"])
    assert "goat-mcp[slack]" in desk.problems["approval.notify.0 (slack)"]
