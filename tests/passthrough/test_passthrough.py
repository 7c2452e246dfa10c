"""Each row of the table in docs/peers.md, for goat-mcp: a client sees what the server behind it does (REL-1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.fixture.one_era import HANDSHAKE, STATELESS
from tests.passthrough.checks import CELLS, CHECKS, UNDEFINED, problem
from tests.passthrough.documented import AGENTGATEWAY
from tests.passthrough.gateways import goat, upstream


@pytest.mark.anyio
@pytest.mark.parametrize(("row", "client", "server"), CELLS)
async def test_what_a_server_does_reaches_the_client(tmp_path: Path, row: str, client: str, server: str) -> None:
    assert await problem(goat(tmp_path / "goat", server), client, CHECKS[row]) == ""


@pytest.mark.anyio
@pytest.mark.parametrize("row", CHECKS)
async def test_the_server_does_it_by_itself(row: str) -> None:
    assert await problem(upstream(STATELESS), STATELESS, CHECKS[row]) == ""


@pytest.mark.anyio
@pytest.mark.parametrize("row", sorted({row for row, *_ in UNDEFINED}))
async def test_a_handshake_does_not_show_an_extension_of_the_server(row: str) -> None:
    """Why those pairs are no cells."""
    assert await problem(upstream(HANDSHAKE), HANDSHAKE, CHECKS[row]) == "not declared: []"


def test_each_row_says_what_is_documented_of_agentgateway() -> None:
    assert [*AGENTGATEWAY] == [*CHECKS]


@pytest.mark.anyio
async def test_a_check_fails_if_nothing_passes() -> None:
    assert await problem(upstream(HANDSHAKE), STATELESS, CHECKS["tools"])
