"""A call of a client that cannot be asked waits for an answer from a phone, and runs once."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.core.redaction import Redactor
from goat_mcp.core.result import ToolResult
from goat_mcp.gateway.approvals.notify.message import message_about
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.run import notify_people
from goat_mcp.settings.settings import Settings
from tests.gateway.approvals.notify.desk import Desk, until
from tests.gateway.approvals.notify.test_telegram import phone

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("letter", ["Approve once", "Deny"])
async def test_a_button_on_the_phone_lets_the_call_run_once_or_not_at_all(
    desk: Desk, tmp_path: Path, letter: str
) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    results: list[ToolResult] = []
    shown = ""
    async with phone(desk) as telegram:
        approval = {"notify": [telegram.entry], "notify_after_s": 0, "wait_s": 60}
        settings = Settings.model_validate({"workspace": [str(root)], "approval": approval})
        gateway = Gateway(settings, approval=Approval.ELICIT, state=desk.state)
        gateway.first_list.set()

        async def call() -> None:
            ctx = ToolContext(call_id="c1", client_name="no-forms 1.0")
            results.append(await gateway.call("Write", {"file_path": str(root / "a.txt"), "content": "hello\n"}, ctx))

        async with gateway.running(), anyio.create_task_group() as group:
            group.start_soon(notify_people, gateway)
            group.start_soon(call)
            await until(lambda: telegram.api.sent)
            (number,) = telegram.api.messages
            shown = telegram.api.messages[number]
            (button,) = [one for one in telegram.api.buttons[number] if one["text"] == letter]
            await telegram.press(number, button["callback_data"])
            await until(lambda: results)
            await until(lambda: not telegram.api.buttons[number])
            group.cancel_scope.cancel()

    (record,) = desk.store.newest_first()
    assert "Allow Write?" in shown and "content: hello" in shown and "no-forms 1.0" in shown
    assert record.decided_by == "telegram: Heidi"
    if letter == "Deny":
        assert results[0].is_error and not (root / "a.txt").exists()
    else:
        assert (root / "a.txt").read_text() == "hello\n" and record.used_by == "c1"


async def test_what_the_record_of_a_call_cuts_cannot_be_approved_from_outside(desk: Desk, tmp_path: Path) -> None:
    settings = Settings.model_validate({"workspace": [str(tmp_path)], "approval": {"wait_s": 0}})
    gateway = Gateway(settings, approval=Approval.ELICIT, state=desk.state)
    arguments = {"file_path": str(tmp_path / "a.txt"), "content": "x" * 100_000}
    async with gateway.running():
        await gateway.call("Write", arguments, ToolContext(call_id="c1"))

    (record,) = desk.store.waiting()
    assert not message_about(record, Redactor()).may_approve
