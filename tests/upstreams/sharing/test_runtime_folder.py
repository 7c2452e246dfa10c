"""Who owns the socket's name, and in which folder: several at a time, stale sockets, folders of others, long paths."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from goat_mcp.upstreams.faults import NotShared
from goat_mcp.upstreams.sharing.broker_start import broker_connection
from goat_mcp.upstreams.sharing.runtime_folder import connected, owned_socket, peer_of, runtime_folder

pytestmark = pytest.mark.linux_only("a socket must say who is at its other end")


def test_one_owns_a_name_and_the_next_gets_it_when_that_has_gone(tmp_path: Path) -> None:
    first = owned_socket(tmp_path, "name")
    assert first is not None
    assert owned_socket(tmp_path, "name") is None

    first.release()

    assert list(tmp_path.iterdir()) == []
    second = owned_socket(tmp_path, "name")
    assert second is not None
    second.release()


def test_a_socket_that_a_killed_owner_has_left_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "name"))
    with pytest.raises(ConnectionRefusedError):
        connected(tmp_path, "name")

    owned = owned_socket(tmp_path, "name")

    assert owned is not None
    with connected(tmp_path, "name") as found:
        assert peer_of(found) == (os.getpid(), os.geteuid())
    owned.release()


def test_who_has_lost_the_socket_knows_it_and_leaves_the_next_owners_alone(tmp_path: Path) -> None:
    first = owned_socket(tmp_path, "name")
    assert first is not None
    assert first.is_found()

    for path in tmp_path.iterdir():
        path.unlink()
    second = owned_socket(tmp_path, "name")
    assert second is not None
    was_found = first.is_found()
    first.release()

    assert not was_found
    assert second.is_found()
    second.release()
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_is_too_long_for_a_socket_works(tmp_path: Path) -> None:
    folder = tmp_path / ("a" * 100) / ("b" * 100)
    folder.mkdir(parents=True)

    owned = owned_socket(folder, "name")

    assert owned is not None
    with connected(folder, "name") as found:
        assert peer_of(found)[0] == os.getpid()
    owned.release()


def test_only_the_user_can_use_the_socket_and_its_lock(tmp_path: Path) -> None:
    owned = owned_socket(tmp_path, "name")

    assert owned is not None
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    owned.release()


@pytest.mark.parametrize(
    ("mode", "is_taken"), [(0o700, True), (0o755, False), (0o770, False)], ids=["mine alone", "readable", "of a group"]
)
def test_the_runtime_folder_counts_if_it_is_the_users_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, is_taken: bool
) -> None:
    runtime, home = tmp_path / "runtime", tmp_path / "home"
    runtime.mkdir()
    runtime.chmod(mode)
    home.mkdir()

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("HOME", str(home))
    found = runtime_folder()

    assert found == (runtime / "goat-mcp" if is_taken else home / ".cache/goat-mcp/run")
    assert found.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("kind", ["open to others", "a link"])
def test_a_folder_that_is_not_the_users_alone_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    if kind == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        (runtime / "goat-mcp").symlink_to(tmp_path / "elsewhere")
    else:
        (runtime / "goat-mcp").mkdir()
        (runtime / "goat-mcp").chmod(0o777)

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))

    with pytest.raises(PermissionError, match="not this user's alone"):
        runtime_folder()


@pytest.mark.anyio
async def test_a_confined_session_shares_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def confined(process: str) -> str:
        return "it has no_new_privs"

    monkeypatch.setattr("goat_mcp.upstreams.sharing.broker_start.why_confined", confined)

    with pytest.raises(NotShared, match="no_new_privs"):
        await broker_connection(lambda folder, name: None)
