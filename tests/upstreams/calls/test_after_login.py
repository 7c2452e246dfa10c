"""How often a login is offered for one request, and the time that is left after it: AUT-3."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.upstreams.calls.connection_provider import after_login, nobody_to_log_in
from goat_mcp.upstreams.faults import LoginWanted

pytestmark = pytest.mark.anyio


def wanted(scopes: str = "") -> LoginWanted:
    return LoginWanted("it wants a login", "log in", facts={}, scopes=scopes)


@dataclass
class Upstream:
    """Wants these logins, one after the other, before it answers."""

    wants: list[str]
    offered: list[str] = field(default_factory=list[str])
    left_s: float = 0.0

    async def send(self, ctx: ToolContext) -> str:
        self.left_s = ctx.wait_left_s()
        if self.wants:
            raise wanted(self.wants.pop(0))
        return "done"

    async def offer(self, ctx: ToolContext, wanted: LoginWanted) -> None:
        self.offered.append(wanted.scopes)

    async def answer(self, ctx: ToolContext | None = None) -> str:
        try:
            return await after_login(self.offer, ctx or ToolContext(call_id="c"), self.send)
        except LoginWanted as unmet:
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
    upstream = Upstream(wants)

    answered = await upstream.answer()

    assert (answered, upstream.offered) == (answer, offered)


@pytest.mark.parametrize(("hears", "has_time"), [(True, True), (False, False)])
async def test_the_time_of_a_login_is_not_the_requests_where_the_client_heard_of_it(
    hears: bool, has_time: bool
) -> None:
    upstream = Upstream([""])

    await upstream.answer(ToolContext(call_id="c", wants_progress=hears, started_at_s=-1e9))

    assert (upstream.left_s > 40) == has_time


async def test_where_nobody_can_log_in_the_request_ends_as_it_did() -> None:
    upstream = Upstream([""])

    with pytest.raises(LoginWanted, match="it wants a login"):
        await after_login(nobody_to_log_in, ToolContext(call_id="c"), upstream.send)
