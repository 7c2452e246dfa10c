"""The user at the other end of a connection within this machine."""

from __future__ import annotations

import socket

import pytest

from goat_mcp.core import platform, posix
from goat_mcp.server.http.socket_user import tcp_peer_user

pytestmark = pytest.mark.skipif(not platform.HAS_PROC, reason="needs /proc/net/tcp")


@pytest.mark.parametrize(
    ("family", "host", "reached_at"),
    [
        (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
        (socket.AF_INET6, "::1", "::1"),
        (socket.AF_INET, "127.0.0.1", "::ffff:127.0.0.1"),
    ],
)
def test_it_is_who_runs_the_other_end(family: socket.AddressFamily, host: str, reached_at: str) -> None:
    with socket.create_server((host, 0), family=family) as listener:
        port = listener.getsockname()[1]
        with socket.socket(socket.AF_INET6 if ":" in reached_at else socket.AF_INET) as client:
            client.connect((reached_at, port))
            server, peer = listener.accept()
            with server:
                assert tcp_peer_user(peer[:2], (host, port)) == posix.getuid()


def test_nothing_is_said_of_a_connection_that_is_not_there() -> None:
    assert tcp_peer_user(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
    assert tcp_peer_user(("client.example", 1), ("127.0.0.1", 2)) is None
