"""What an upstream says to people meanwhile is shown with nothing hidden in it: questions, log messages, progress."""

from __future__ import annotations

from typing import Any

import pytest

from goat_mcp.core.calling_client import ClientRequest, RequestNotSent, no_roots
from goat_mcp.core.context import ToolContext
from goat_mcp.files.documents.visible_text import hides_something
from goat_mcp.upstreams.call_timeout import CallClock
from goat_mcp.upstreams.progress import ProgressRelay
from goat_mcp.upstreams.transports.callers import Callers
from goat_mcp.upstreams.transports.server_requests import labelled
from tests.upstreams.listing.definition_texts import HIDING
from tests.upstreams.transports.test_callers import Listener

pytestmark = pytest.mark.anyio


def form(**of_a: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": {"type": "string", **of_a}}}


@pytest.mark.parametrize("text", HIDING.values(), ids=HIDING)
async def test_f13_12_hidden_in_messages_is_shown_in_logs_and_progress(text: str) -> None:
    client = Listener()
    callers = Callers("up", {}, allow=(), roots=no_roots)
    reported: list[str | None] = []

    async def progress(done: float, total: float | None = None, message: str | None = None, **_: object) -> None:
        reported.append(message)

    said = {"level": "error", "logger": text, "data": {"a": [text], text: 1}, "_meta": {"x": text}}
    with callers.one(ToolContext(call_id="c", client=client), CallClock(60, 60)):
        callers.notified("notifications/message", said)
        await callers.flush(client)
    await ProgressRelay(progress).report(1, None, text)

    ((_, heard),) = client.heard
    assert heard["level"] == "error"
    assert not hides_something(dict(heard))
    assert not hides_something(reported)


@pytest.mark.parametrize("text", HIDING.values(), ids=HIDING)
def test_f13_12_hidden_in_messages_is_shown_in_questions(text: str) -> None:
    schema = {**form(title=text, description=text, enum=["x"], enumNames=[text]), "$comment": text}
    asked = {"message": text, "requestedSchema": schema, "x-unknown": [text]}

    shown = labelled("up", ClientRequest("elicitation/create", asked)).params

    assert shown["message"].startswith("up: ")
    assert not hides_something(dict(shown))


@pytest.mark.parametrize(
    "params",
    [
        {"requestedSchema": form(enum=["a\u200b"])},
        {"requestedSchema": form(default="a\u200b")},
        {"requestedSchema": {"type": "object", "properties": {"a\u200b": {"type": "string"}}}},
        {"requestedSchema": {"type": "object", "required": ["a\u200b"]}},
        {"mode": "url", "url": "https://x.example/\u202e"},
        {"mode": "url", "url": "https://x.example/", "elicitationId": "a\U000e0041"},
    ],
)
def test_f13_12_hidden_in_messages_puts_a_question_to_nobody_if_it_is_data(params: dict[str, Any]) -> None:
    with pytest.raises(RequestNotSent, match="invisible"):
        labelled("up", ClientRequest("elicitation/create", {"message": "?", **params}))
