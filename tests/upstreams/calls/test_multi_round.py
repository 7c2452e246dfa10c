"""A request that is answered with questions, or needs a login, against a double of the upstream and of the client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.calling_client import ClientRequest, NotificationTarget, RequestNotSent, no_roots
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.upstreams.calls.attempts import MAX_ROUNDS, in_rounds, with_login
from goat_mcp.upstreams.faults import LoginRequired

pytestmark = pytest.mark.anyio

FORM = {"method": "elicitation/create", "params": {"message": "Which day?", "requestedSchema": {"type": "object"}}}


@dataclass(eq=False)
class Person:
    """A client that fills in every form."""

    asked: int = 0
    protocol_version: str = "2025-11-25"
    is_stateless: bool = False
    log_level: str = ""
    capabilities: Mapping[str, Any] = field(default_factory=lambda: {"elicitation": {"form": {}}})
    notices: NotificationTarget | None = None
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    known_roots: Sequence[Path] = ()

    @property
    def cancellation(self) -> Mapping[str, Any]:
        return {}

    async def roots(self) -> Sequence[Path]:
        return self.known_roots

    async def ask(self, requests: Mapping[str, ClientRequest]) -> Mapping[str, dict[str, Any]]:
        self.asked += 1
        return {key: {"action": "accept", "content": {"day": self.asked}} for key in requests}

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        raise AssertionError("nothing is told here")


@dataclass
class Curious:
    """An upstream of the stateless era that asks `times` times before it answers."""

    times: int
    sent: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    async def __call__(self, more: Mapping[str, Any]) -> dict[str, Any]:
        self.sent.append(dict(more))
        if len(self.sent) > self.times:
            return {"content": [], "resultType": "complete"}
        return {
            "resultType": "input_required",
            "inputRequests": {f"q{len(self.sent)}": FORM},
            "requestState": f"state {len(self.sent)}",
        }


async def rounds(upstream: Curious, person: Person) -> dict[str, Any]:
    return await in_rounds("u", upstream, person, allow=("elicitation",), roots=no_roots)


async def test_each_answer_goes_back_with_the_state_it_was_asked_with() -> None:  # ERA-4
    upstream, person = Curious(2), Person()

    result = await rounds(upstream, person)

    assert result == {"content": [], "resultType": "complete"}
    assert upstream.sent == [
        {},
        {"inputResponses": {"q1": {"action": "accept", "content": {"day": 1}}}, "requestState": "state 1"},
        {"inputResponses": {"q2": {"action": "accept", "content": {"day": 2}}}, "requestState": "state 2"},
    ]


async def test_ten_rounds_are_taken_and_an_eleventh_question_is_put_to_nobody() -> None:  # ERA-4
    patient, person = Curious(MAX_ROUNDS), Person()
    await rounds(patient, person)
    endless, pestered = Curious(100), Person()

    with pytest.raises(ToolError) as refused:
        await rounds(endless, pestered)

    assert MAX_ROUNDS == 10
    assert (person.asked, pestered.asked) == (10, 10)
    assert refused.value.code is ErrorCode.UPSTREAM
    assert refused.value.message == "upstream u asked 10 times without coming to an end"


async def test_of_a_question_that_is_put_to_nobody_no_client_is_said_to_have_refused_it() -> None:  # ERA-4
    class Tired(Person):
        async def ask(self, requests: Mapping[str, ClientRequest]) -> Mapping[str, dict[str, Any]]:
            raise RequestNotSent(-32600, "this call has asked its client 10 times already")

    with pytest.raises(ToolError) as refused:
        await rounds(Curious(1), Tired())

    told = "upstream u asks once more, which is put to nobody: this call has asked its client 10 times already"
    assert (refused.value.code, refused.value.message) == (ErrorCode.UPSTREAM, told)


# AUT-3: how often a login is offered for one request, and the time that is left after it.


def wanted(scopes: str = "") -> LoginRequired:
    return LoginRequired("it wants a login", "log in", facts={}, scopes=scopes)


@dataclass
class Guarded:
    """Wants these logins, one after the other, before it answers."""

    wants: list[str]
    offered: list[str] = field(default_factory=list[str])
    left_s: float = 0.0

    async def send(self, ctx: ToolContext) -> str:
        self.left_s = ctx.wait_left_s()
        if self.wants:
            raise wanted(self.wants.pop(0))
        return "done"

    async def offer(self, ctx: ToolContext, wanted: LoginRequired) -> None:
        self.offered.append(wanted.scopes)

    async def answer(self, ctx: ToolContext | None = None) -> str:
        try:
            return await with_login(self.offer, ctx or ToolContext(call_id="c"), self.send)
        except LoginRequired as unmet:
            return f"wants {unmet.scopes!r}"


@pytest.mark.parametrize(
    ("wants", "offered", "answer"),
    [
        ([], [], "done"),
        ([""], [""], "done"),
        (["", "write"], ["", "write"], "done"),
        (["", ""], [""], "wants ''"),
        (["", "a", "b", "c"], ["", "a"], "wants 'b'"),
    ],
)
async def test_a_login_is_offered_once_and_once_more_for_a_right_it_lacks(
    wants: list[str], offered: list[str], answer: str
) -> None:
    upstream = Guarded(wants)

    answered = await upstream.answer()

    assert (answered, upstream.offered) == (answer, offered)


@pytest.mark.parametrize(("hears", "has_time"), [(True, True), (False, False)])
async def test_the_time_of_a_login_is_not_the_requests_where_the_client_heard_of_it(
    hears: bool, has_time: bool
) -> None:
    upstream = Guarded([""])

    await upstream.answer(ToolContext(call_id="c", wants_progress=hears, started_at_s=-1e9))

    assert (upstream.left_s > 40) == has_time
