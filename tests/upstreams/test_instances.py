"""Whose calls share a process of an upstream, and whose never do. WSP-1."""

from __future__ import annotations

from pathlib import Path

import pytest

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
