"""Whose calls share a process of an upstream, and whose never do. WSP-1."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.upstreams.config.entry import StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.instances import MAX_INSTANCES, MAX_OF_ONE, Instances
from tests.e2e.test_upstreams_that_ask import ERAS, child
from tests.upstreams.fleet import Fleet, fleet

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]


async def process_of(running: Fleet, principal: str, session: str) -> int:
    result = await running.call("mcp__up__folder", principal=principal, session_key=session)
    return int(result.text.split()[-1])


@pytest.mark.parametrize("era", ERAS)
async def test_sessions_of_a_principal_share_a_process_and_principals_never_do(tmp_path: Path, era: str) -> None:
    async with fleet(tmp_path, {"up": child(era)}) as running:
        mine = [await process_of(running, "me", session) for session in ("one", "two")]
        theirs = await process_of(running, "somebody", "three")
        again = await process_of(running, "me", "one")

    assert len({*mine, again}) == 1
    assert theirs not in mine


@pytest.mark.parametrize("era", ERAS)
async def test_where_the_entry_says_so_each_session_of_older_clients_has_its_own(tmp_path: Path, era: str) -> None:
    async with fleet(tmp_path, {"up": child(era, scope="session")}) as running:
        pids = [await process_of(running, "me", session) for session in ("one", "two", "one")]

    assert pids[0] == pids[2]
    assert (pids[0] == pids[1]) == (era == "new")


class _Side:
    """What a client of the stateless era is to them: it can be asked, and has no session."""

    capabilities: Mapping[str, Any] = {"elicitation": {"form": {}}}
    is_stateless = True


class _Idle:
    is_stateless = False
    is_free = True

    async def run(self) -> None: ...


def test_one_principal_never_has_all_connections_of_an_upstream() -> None:
    config = UpstreamConfig(name="up", server="up", target=StdioLaunch("up"))
    made = Instances(config, _idle, lambda can: dict(can), _Asks(), lambda _: False)
    made._group = cast("Any", _Tasks())  # pyright: ignore[reportPrivateUsage]  # nothing is to be run

    def call(principal: str) -> ToolContext:
        return ToolContext(call_id="c", principal=principal, session_key=principal, client=cast("Any", _Side()))

    with ExitStack() as under_way:
        for _ in range(MAX_OF_ONE):
            under_way.enter_context(made.use(call("one")))
        with pytest.raises(ToolError, match="works for 24 calls of yours") as busy:
            under_way.enter_context(made.use(call("one")))
        for _ in range(MAX_INSTANCES - MAX_OF_ONE):
            under_way.enter_context(made.use(call("two")))
    with made.use(call("one")):
        pass

    assert busy.value.code is ErrorCode.BUSY


def _idle(declared: object, workspace: object, is_leader: bool) -> Any:
    return _Idle()


class _Asks:
    def __bool__(self) -> bool:
        return True

    def learn(self) -> None: ...


class _Tasks:
    def start_soon(self, run: object) -> None: ...
