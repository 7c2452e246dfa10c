"""Floods of one principal, and of clients without a token: everybody else still gets in (R-HTTP-4b)."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.server.http.connections import possible_connections
from tests.server.http_thread import (
    BROAD,
    LISTEN,
    NARROW,
    OPERATORS,
    PING,
    RawServer,
    is_ended,
    raw_server,
    read_all,
    read_until,
    wait_until_ended,
)

LATE_S = 10.0
"""How long after its time something may happen on a busy machine."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[RawServer]:
    with raw_server(tmp_path_factory.mktemp("shutting-out")) as server:
        yield server


@pytest.fixture
def small(tmp_path: Path) -> Generator[RawServer]:
    """On a Unix socket; 8 sessions and 16 connections in all, of which one principal may hold 6 and 12."""
    limits: dict[str, Any] = {"sessions": 8, "connections": 16, "header_deadline_s": 1.5}
    with raw_server(tmp_path, f"unix:{tmp_path}/private/s", **limits) as server:
        yield server


@pytest.fixture
def held() -> Generator[ExitStack]:
    with ExitStack() as connections:
        yield connections


def listening(server: RawServer, held: ExitStack, token: str) -> socket.socket:
    """A stream on which nothing comes after its first event."""
    connection = held.enter_context(server.connect())
    connection.sendall(server.post(token, LISTEN, closes=False))
    assert b"notifications/subscriptions/acknowledged" in read_until(connection, b"}\r\n\r\n\r\n")
    return connection


def test_f13_09_sessions_of_one_profile_leave_room_for_others(server: RawServer) -> None:
    """Two paths are one principal: that of the token."""
    opened = [server.open_session(NARROW, path)[1] for path in ["/mcp", "/mcp/broad"] * 60]
    of_operator = [server.open_session(OPERATORS) for _ in range(30)]
    of_broad = [server.open_session(BROAD) for _ in range(5)]

    assert {status for status, _ in of_operator + of_broad} == {200}
    assert {server.ping_session(OPERATORS, session_id) for _, session_id in of_operator} == {200}
    assert {server.ping_session(BROAD, session_id) for _, session_id in of_broad} == {200}
    statuses = [server.ping_session(NARROW, session_id) for session_id in opened]
    kept = statuses.count(200)
    assert kept == 65
    assert statuses == [404] * (120 - kept) + [200] * kept, "the idlest goes first"


def test_f13_09_sessions_in_use_are_closed_for_nobody_who_has_as_many(small: RawServer, held: ExitStack) -> None:
    streams: list[socket.socket] = []
    for _ in range(6):
        _, session_id = small.open_session(NARROW)
        stream = held.enter_context(small.connect())
        session: dict[str, Any] = {"MCP_Protocol_Version": "2025-11-25", "Mcp_Session_Id": session_id}
        stream.sendall(small.head(NARROW, "GET /mcp HTTP/1.1", **session) + b"\r\n")
        assert b"200 OK" in read_until(stream, b"\r\n\r\n")
        streams.append(stream)

    refused = small.open_session(NARROW)[0]
    opened = [small.open_session(OPERATORS)[0] for _ in range(3)]
    junk = [small.exchange(small.in_session(BROAD, None, {**PING, "method": "x"}))[0] for _ in range(20)]

    assert refused == 503
    assert opened == [200] * 3
    assert junk == [400] * 20, "what opens no session takes no room for long"
    assert [is_ended(stream) for stream in streams].count(True) <= 2
    assert not is_ended(streams[-1])


def test_f13_09_silent_connections_shut_nobody_out(server: RawServer, held: ExitStack) -> None:
    """Nor does who showed a token once and is silent then. A stream is as silent, and stays."""
    stream = listening(server, held, OPERATORS)
    kept = held.enter_context(server.connect())
    kept.sendall(server.post(NARROW, PING, closes=False))
    assert b"200 OK" in read_until(kept, b"\r\n\r\n")
    silent = [held.enter_context(server.connect()) for _ in range(520)]
    begun_s = time.monotonic()
    halves = [b"P", server.head(OPERATORS, "POST /mcp HTTP/1.1"), server.post(None, PING)[:-1]]
    for number, half in enumerate(halves * 10):
        held.enter_context(server.connect()).sendall(half)
        silent[-1 - number].sendall(half)

    statuses = [server.status(token) for token in (OPERATORS, NARROW, BROAD) * 5]

    assert statuses == [200] * 15
    assert time.monotonic() - begun_s < LATE_S
    wait_until_ended([*silent, kept], 5 + LATE_S)
    assert not is_ended(stream)


def test_f13_09_silent_connections_come_again_and_again(server: RawServer) -> None:
    """Each newcomer makes the oldest one go, faster than a deadline would."""
    stop = threading.Event()

    def flood() -> None:
        silent: list[socket.socket] = []
        while not stop.is_set():
            silent.append(server.connect())
            if len(silent) > 600:
                silent.pop(0).close()
        for connection in silent:
            connection.close()

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        statuses = [server.status(OPERATORS) for _ in range(20)]
    finally:
        stop.set()
        thread.join()

    assert statuses == [200] * 20


@pytest.mark.parametrize("token", [None, "x" * 40, NARROW[:-1] + "x"], ids=["none", "any", "nearly"])
def test_f13_09_wrong_tokens_have_one_try_for_each_connection(server: RawServer, token: str | None) -> None:
    with server.connect() as connection:
        connection.sendall(server.post(token, PING, closes=False) * 20)
        status, answers = read_all(connection)

    assert (status, answers.count(b"HTTP/1.1")) == (401, 1)


def test_f13_09_a_token_that_was_shown_once_is_shown_with_each_request(server: RawServer) -> None:
    with server.connect() as connection:
        connection.sendall(server.post(NARROW, PING, closes=False) + server.post(None, PING, closes=False) * 3)
        _, answers = read_all(connection)

    assert (answers.count(b"HTTP/1.1 200"), answers.count(b"HTTP/1.1")) == (1, 2)


def test_f13_09_a_connection_may_change_its_principal(small: RawServer) -> None:
    """It counts for whom it was last used."""
    for _ in range(20):
        with small.connect() as connection:
            for token in (NARROW, OPERATORS, BROAD):
                connection.sendall(small.post(token, PING, closes=token == BROAD))
            assert read_all(connection)[1].count(b"HTTP/1.1 200") == 3


def test_f13_09_connections_of_one_profile_leave_room_for_others(small: RawServer, held: ExitStack) -> None:
    """Streams, which nobody closes for being silent."""
    streams = [listening(small, held, NARROW) for _ in range(12)]

    refused = small.status(NARROW)
    of_operator = [listening(small, held, OPERATORS) for _ in range(8)]
    others = [small.status(token) for token in (OPERATORS, BROAD, BROAD)]

    assert refused == 503
    assert others[1:] == [200, 200]
    wait_until_ended(streams[:4], LATE_S)
    assert [is_ended(stream) for stream in streams].count(False) >= 7
    assert [is_ended(stream) for stream in of_operator].count(False) >= 7


def test_f13_09_idle_connections_of_one_profile_make_room(small: RawServer, held: ExitStack) -> None:
    """The idlest goes first, for their own principal as well."""
    kept: list[socket.socket] = []
    for _ in range(30):
        connection = held.enter_context(small.connect())
        connection.sendall(small.post(NARROW, PING, closes=False))
        assert b"200 OK" in read_until(connection, b"\r\n\r\n")
        kept.append(connection)

    wait_until_ended(kept[:18], LATE_S)
    assert {small.status(token) for token in (OPERATORS, NARROW, BROAD)} == {200}


def test_f13_09_silent_connections_on_a_unix_socket(small: RawServer, held: ExitStack) -> None:
    silent = [held.enter_context(small.connect()) for _ in range(60)]

    assert {small.status(token) for token in (OPERATORS, NARROW, BROAD) * 5} == {200}
    wait_until_ended(silent, 1.5 + LATE_S)


def test_a_single_principal_may_hold_every_connection(tmp_path: Path, held: ExitStack) -> None:
    with raw_server(tmp_path, connections=16, has_profiles=False) as server:
        for _ in range(16):
            listening(server, held, OPERATORS)

        assert server.status(OPERATORS) == 503
        assert server.status(None) == 401


@pytest.mark.linux_only("the limit is read as Linux has it")
def test_connections_leave_half_of_the_file_descriptors_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    def few(_: int) -> tuple[int, int]:
        return 256, 4096

    monkeypatch.setattr(resource, "getrlimit", few)

    assert (possible_connections(512), possible_connections(100)) == (128, 100)
