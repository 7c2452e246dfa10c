"""Whose calls share a process of an upstream, and whose never do. WSP-1."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.upstreams.config.entry import StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.connection_pool import MAX_FIRST, MAX_INSTANCES, MAX_OF_ONE, ConnectionPool
from goat_mcp.upstreams.eras import Era, UpstreamEras
from goat_mcp.upstreams.supervisor import Supervisor
from tests.e2e.upstream_launch import ERAS, child
from tests.upstreams.fleet import Fleet, fleet

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]


async def process_of(running: Fleet, principal: str, session: str) -> int:
    result = await running.call("mcp__up__folder", principal=principal, session_key=session)
    return int(result.text.split()[-1])


@pytest.mark.parametrize("era", ERAS)
async def test_sessions_of_a_principal_share_a_process_and_principals_never_do(tmp_path: Path, era: str) -> None:
    async with fleet(tmp_path, {"up": child("asking", ERAS[era])}) as running:
        mine = [await process_of(running, "me", session) for session in ("one", "two")]
        theirs = await process_of(running, "somebody", "three")
        again = await process_of(running, "me", "one")

    assert len({*mine, again}) == 1
    assert theirs not in mine


@pytest.mark.parametrize("era", ERAS)
async def test_where_the_entry_says_so_each_session_of_older_clients_has_its_own(tmp_path: Path, era: str) -> None:
    async with fleet(tmp_path, {"up": child("asking", ERAS[era], scope="session")}) as running:
        pids = [await process_of(running, "me", session) for session in ("one", "two", "one")]

    assert pids[0] == pids[2]
    assert (pids[0] == pids[1]) == (era == "new")


class _Side:
    """What a client of the stateless era is to them: it can be asked, and has no session."""

    capabilities: Mapping[str, Any] = {"elicitation": {"form": {}}}
    is_stateless = True


class _Older(_Side):
    is_stateless = False


class _Idle:
    is_free = False
    is_in_other_workspace = True
    moves = 0

    async def run(self) -> None: ...

    def want(self) -> None:
        self.is_free = False

    def relocate(self) -> bool:
        self.moves += 1
        return True

    def release(self) -> None: ...

    def restart(self) -> None: ...


def asked_by(principal: str, session: str = "") -> ToolContext:
    """A call of somebody whom the upstream may ask: it has a connection for itself."""
    return ToolContext(call_id="c", principal=principal, session_key=session or principal, client=cast("Any", _Side()))


@contextmanager
def using(made: ConnectionPool, ctx: ToolContext) -> Generator[Supervisor]:
    """The connection that a call has, while it has it."""
    connection = made.enter(ctx, None)
    try:
        yield connection.supervisor
    finally:
        made.leave(connection)


def pool(*, speaks_both: bool = False) -> ConnectionPool:
    config = UpstreamConfig(name="up", server="up", target=StdioLaunch("up"))
    eras = UpstreamEras(config, cast("Any", None))
    eras.speaks = {Era.HANDSHAKE: True, Era.STATELESS: speaks_both}
    made = ConnectionPool(config, _idle, lambda can: dict(can), lambda: True, lambda _: False, eras)
    made._group = cast("Any", _Tasks())  # pyright: ignore[reportPrivateUsage]  # nothing is to be run
    return made


def listed_for(made: ConnectionPool, ctx: ToolContext) -> Any:
    """What this client's list has started."""
    leader: Any = made.leader.supervisor
    leader.is_free = True
    made.want(ctx)
    return leader


def test_what_was_claimed_before_its_era_was_known_is_used_on_by_whoever_it_is_for() -> None:
    made = pool()
    of_listing = listed_for(made, asked_by("one"))

    made.leader.era.current = Era.HANDSHAKE

    with using(made, asked_by("one")) as used:
        assert used is of_listing
    with using(made, asked_by("two")) as used:
        assert used is not of_listing


def test_clients_of_two_eras_share_no_connection_of_an_upstream_that_speaks_both() -> None:  # ERA-2b
    made = pool(speaks_both=True)
    older = ToolContext(call_id="c", principal="one", session_key="one")
    older = older.changed(client=cast("Any", _Older()))

    with using(made, asked_by("one")) as of_newer, using(made, older) as of_older:
        assert of_newer is not of_older
    for ctx, known in ((asked_by("one"), of_newer), (older, of_older)):
        with using(made, ctx) as again:
            assert again is known


def test_clients_of_two_eras_share_one_where_the_upstream_speaks_one_of_them() -> None:  # ERA-2b
    made = pool()
    older = ToolContext(call_id="c", principal="one", session_key="one").changed(client=cast("Any", _Older()))

    with using(made, asked_by("one")) as of_newer:
        pass
    with using(made, older) as of_older:
        pass

    assert of_newer is of_older


def test_what_was_only_listed_for_one_goes_to_the_first_who_calls() -> None:
    made = pool()
    of_listing = listed_for(made, ToolContext(call_id="c", principal="one", session_key="one"))

    with using(made, asked_by("one")) as used:
        assert used is of_listing
    with using(made, ToolContext(call_id="c", principal="one", session_key="one")) as used:
        assert used is not of_listing


def test_one_principal_never_has_all_connections_of_an_upstream() -> None:
    made = pool()

    with ExitStack() as under_way:
        for _ in range(MAX_OF_ONE):
            under_way.enter_context(using(made, asked_by("one")))
        with pytest.raises(ToolError, match="works for 24 calls of yours") as busy:
            under_way.enter_context(using(made, asked_by("one")))
        for _ in range(MAX_INSTANCES - MAX_OF_ONE):
            under_way.enter_context(using(made, asked_by("two")))
    with using(made, asked_by("one")):
        pass

    assert busy.value.code is ErrorCode.BUSY


def test_who_has_no_connection_gets_one_although_a_few_have_taken_all() -> None:
    made = pool()
    few = ["one"] * MAX_OF_ONE + ["two"] * (MAX_INSTANCES - MAX_OF_ONE)

    with ExitStack() as under_way:
        taken = [under_way.enter_context(using(made, asked_by(one))) for one in few]
        with pytest.raises(ToolError, match="works for 32 clients") as busy, using(made, asked_by("two")):
            pass
        more = [under_way.enter_context(using(made, asked_by(f"p{number}"))) for number in range(MAX_FIRST)]
        with pytest.raises(ToolError, match="works for 64 clients"), using(made, asked_by("one of very many")):
            pass
        with pytest.raises(ToolError, match="each with its own"), using(made, asked_by("p0")):
            pass

    assert busy.value.code is ErrorCode.BUSY
    assert len({id(one) for one in (*taken, *more)}) == MAX_INSTANCES + MAX_FIRST
    # As many as usual are left, and are used again.
    with ExitStack() as under_way:
        again = [under_way.enter_context(using(made, asked_by(f"q{number}"))) for number in range(MAX_INSTANCES)]
    assert {id(one) for one in again} < {id(one) for one in (*taken, *more)}


def test_an_unused_connection_is_taken_from_whoever_has_most() -> None:
    made = pool()

    with using(made, asked_by("few")) as theirs:
        pass
    with ExitStack() as under_way:
        for _ in range(MAX_OF_ONE):
            under_way.enter_context(using(made, asked_by("many")))
    with ExitStack() as under_way:
        for number in range(MAX_INSTANCES - MAX_OF_ONE):
            under_way.enter_context(using(made, asked_by(f"p{number}")))
        with using(made, asked_by("few")) as again:
            pass

    assert again is theirs


def test_a_process_in_use_is_moved_when_its_calls_are_done_and_those_that_come_meanwhile_have_another() -> None:
    """WSP-2: nothing that is under way is ended because the workspace has become another."""
    made = pool()
    ctx = ToolContext(call_id="c")

    with ExitStack() as first, ExitStack() as second:
        used = cast("_Idle", first.enter_context(using(made, ctx)))
        second.enter_context(using(made, ctx))
        leader_moved = made.workspace_changed()
        with using(made, ctx) as other:
            pass
        second.close()
        before = used.moves
        first.close()

    assert (leader_moved, before, used.moves) == (False, 0, 1)
    assert other is not used
    with using(made, ctx) as after:
        assert after in (used, other)


def _idle(declared: object, workspace: object, account: object, is_leader: bool, era: object) -> Any:
    return _Idle()


class _Tasks:
    def start_soon(self, run: object, *what: object) -> None: ...
