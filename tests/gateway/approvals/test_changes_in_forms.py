"""A staged change that is decided in the form of its call is in the queue, and the first decision counts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from goat_mcp.calls.approvals.record import Approval as Record
from goat_mcp.calls.approvals.record import DecidedBefore, Status
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form, Reply
from goat_mcp.core.result import ToolResult
from goat_mcp.gateway.approvals.queue import ApprovalQueue
from goat_mcp.gateway.approvals.user_queue import approval_queue
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory

pytestmark = pytest.mark.anyio


@pytest.fixture
def queue(tmp_path: Path) -> ApprovalQueue:
    (tmp_path / "ws").mkdir()
    return approval_queue(StateDirectory(tmp_path / "state"))


async def write(folder: Path, decision: str, first: Callable[[], Awaitable[None]]) -> ToolResult:
    """A Write in review mode. Its form is answered with `decision`, after `first` has happened."""
    tree = {"workspace": [folder / "ws"], "permissions": {"allow": ["Write"]}, "files": {"review_mode": True}}
    gateway = Gateway(Settings.model_validate(tree), approval=Approval.ELICIT, state=StateDirectory(folder / "state"))

    async def person(form: Form) -> Answer:
        await first()
        return Answer(Reply.ACCEPTED, {"decision": decision})

    arguments = {"file_path": "@/a.txt", "content": "x\n"}
    return await gateway.call("Write", arguments, ToolContext(call_id="w", ask=person))


async def test_an_approval_in_the_form_is_in_the_queue(tmp_path: Path, queue: ApprovalQueue) -> None:
    seen: list[Record] = []

    async def look() -> None:
        seen.extend(await queue.waiting())

    result = await write(tmp_path, "approve", look)
    with pytest.raises(DecidedBefore) as second:
        await queue.deny(seen[0].id, by="page")

    assert "the user approved this change" in result.text and (tmp_path / "ws" / "a.txt").read_text() == "x\n"
    decided = queue.store.find(seen[0].id)
    assert (decided.status, decided.decided_by) == (Status.APPROVED, "form in call w")
    assert decided.used_at_s is not None and "by form in call w" in second.value.message


async def test_a_form_that_is_answered_after_the_page_says_who_decided(tmp_path: Path, queue: ApprovalQueue) -> None:
    async def deny() -> None:
        (found,) = await queue.waiting()
        await queue.deny(found.id, by="page")

    result = await write(tmp_path, "approve", deny)

    assert "could not be applied" in result.text and not (tmp_path / "ws" / "a.txt").exists()
    (decided,) = queue.store.newest_first()
    assert (decided.status, decided.decided_by) == (Status.DENIED, "page")
