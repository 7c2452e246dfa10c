"""Where HTTP is served, and who may connect there."""

from __future__ import annotations

import errno
import os
import socket
import struct
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.server.http.connections import is_own_user
from goat_mcp.server.http.server import Address, HttpServer, parse_address
from goat_mcp.settings.settings import LimitSettings


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8765", Address("127.0.0.1", 8765)),
        ("localhost:0", Address("localhost", 0)),
        ("[::1]:80", Address("::1", 80)),
        ("unix:/run/goat.sock", Address(socket_path=Path("/run/goat.sock"))),
    ],
)
def test_an_address_is_read(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert address.is_loopback


@pytest.mark.parametrize(
    "text", ["8765", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999", "example.org:80", "0.0.0.0:80", ":80"]
)
def test_an_address_that_cannot_be_served_is_named(text: str) -> None:
    with pytest.raises(ToolError) as caught:
        parse_address(text)

    assert caught.value.code is ErrorCode.CONFIG
    assert repr(text) in caught.value.message


def test_an_address_of_another_machine_is_no_loopback() -> None:
    assert not parse_address("192.0.2.1:80").is_loopback


class FakeUnixSocket:
    family = getattr(socket, "AF_UNIX", None)

    def __init__(self, user: int) -> None:
        self._user = user

    def getsockopt(self, *_: Any) -> bytes:
        return struct.pack("3i", 1, self._user, 1)


@pytest.mark.linux_only("only Linux is asked for the peer's user")
def test_only_this_user_and_root_may_use_a_unix_socket() -> None:
    here, there = socket.socketpair()
    with here, there:
        assert is_own_user(here)
    assert is_own_user(FakeUnixSocket(os.getuid())) and is_own_user(FakeUnixSocket(0))
    assert not is_own_user(FakeUnixSocket(os.getuid() + 4242))


@pytest.mark.linux_only("only Linux is asked for the peer's user")
def test_a_peer_of_whom_the_system_says_nothing_is_nobody() -> None:
    """With an error in `connection_made` it would be served all the same, without a deadline."""

    class Gone(FakeUnixSocket):
        def getsockopt(self, *_: Any) -> bytes:
            raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")

    assert not is_own_user(Gone(os.getuid()))


def test_a_unix_socket_lies_in_a_private_folder_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "private" / "goat.sock"
    server = HttpServer(None, Address(socket_path=path), None, LimitSettings())  # type: ignore[arg-type]  # nothing is served here

    server.bind()

    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    server.close()
    assert not path.exists()


def test_a_unix_socket_in_a_folder_of_everybody_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    server = HttpServer(None, Address(socket_path=tmp_path / "goat.sock"), None, LimitSettings())  # type: ignore[arg-type]  # as above

    with pytest.raises(ToolError, match="can be entered by others"):
        server.bind()
