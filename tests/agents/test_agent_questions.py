"""What an agent asks the person behind the call that started it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from goat_mcp.agents.agent_task import AgentTask
from goat_mcp.core.elicitation import Answer, Form, Reply

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("is_attended", [True, False])
async def test_its_question_does_not_say_that_the_call_has_done_nothing(tmp_path: Path, is_attended: bool) -> None:
    """Another process would start the whole agent again with the answer, and do again what it has done."""
    asked: list[Form] = []

    async def ask(form: Form) -> Answer:
        asked.append(form)
        return Answer(Reply.ACCEPTED)

    def create_file(stem: str) -> tuple[Path, int]:
        path = tmp_path / stem
        return path, os.open(path, os.O_CREAT | os.O_WRONLY)

    task = AgentTask("a", "an agent", create_file)
    task.is_attended = is_attended
    answer = await task.elicit_while_attended(ask)(Form("May it?", (), opens_call=True))

    assert asked == ([Form("May it?", ())] if is_attended else [])
    assert answer.reply is (Reply.ACCEPTED if is_attended else Reply.UNAVAILABLE)
