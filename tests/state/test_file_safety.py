"""A secret is read only from a file that nobody else could have read, written or replaced. R-CONF-2, PR-32."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from goat_mcp.state.file_safety import UnsafeFile, create_secret_file, read_secret_file, why_folder_unsafe, why_writable

STRANGER = 12345

pytestmark = pytest.mark.posix_only("owners and modes are POSIX's")


def secret(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / "secret"
    create_secret_file(file, "hush\n")
    return file


def refusal(file: Path) -> str:
    with pytest.raises(UnsafeFile) as caught:
        read_secret_file(file)
    assert "hush" not in str(caught.value)
    return str(caught.value)


def link(file: Path) -> None:
    file.rename(file.with_name("target"))
    file.symlink_to("target")


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


def listening(file: Path) -> None:
    file.unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(file))


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def mode(bits: int) -> Callable[[Path], object]:
    return lambda file: file.chmod(bits)


def holds(data: bytes) -> Callable[[Path], object]:
    return lambda file: file.write_bytes(data)


def given_away(file: Path) -> None:
    os.chown(file, STRANGER, -1)


def in_a_strangers_folder(file: Path) -> None:
    os.chown(file.parent, STRANGER, -1)


def in_a_folder_all_can_write(file: Path) -> None:
    file.parent.chmod(0o777)


def in_a_shared_folder(file: Path) -> None:
    file.parent.chmod(0o1777)


def below_a_folder_all_can_write(file: Path) -> None:
    file.parent.parent.chmod(0o777)


needs_root = pytest.mark.root_only("nobody else can give a file away")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        pytest.param(mode(0o644), "can be read by others (mode 0644)", id="PR-32-0644"),
        pytest.param(mode(0o640), "can be read by others (mode 0640)", id="PR-32-0640"),
        pytest.param(mode(0o602), "can be read by others (mode 0602)", id="PR-32-0602"),
        pytest.param(given_away, "belongs to another user (uid 12345)", id="PR-32-owner", marks=needs_root),
        pytest.param(link, "is a symbolic link", id="PR-32-link"),
        pytest.param(in_a_folder_all_can_write, "can be written by others (mode 0777)", id="PR-32-folder"),
        pytest.param(in_a_shared_folder, "can be written by others (mode 1777)", id="PR-32-sticky"),
        pytest.param(below_a_folder_all_can_write, "can be written by others (mode 0777)", id="PR-32-above"),
        pytest.param(in_a_strangers_folder, "belongs to another user", id="PR-32-folder-owner", marks=needs_root),
        pytest.param(pipe, "is not a regular file", id="pipe"),
        pytest.param(folder, "is not a regular file", id="folder"),
        pytest.param(listening, "cannot be opened", id="socket"),
        pytest.param(holds(b"\xff\xfe"), "is not UTF-8 text", id="not text"),
        pytest.param(holds(b"x" * 70_000), "is longer than 65536 bytes", id="huge"),
    ],
)
def test_one_fault_is_enough_to_refuse_it(tmp_path: Path, fault: Callable[[Path], object], said: str) -> None:
    file = secret(tmp_path / "above" / "folder")
    assert read_secret_file(file) == "hush\n"

    fault(file)

    assert said in refusal(file)


def test_a_new_one_is_private_from_its_first_byte_and_never_takes_another_files_place(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    before = os.umask(0)
    try:
        file = secret(tmp_path / "new" / "folder")
    finally:
        os.umask(before)

    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        create_secret_file(file, "other")
    dangling = tmp_path / "new" / "dangling"
    dangling.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        create_secret_file(dangling, "other")
    assert not (tmp_path / "elsewhere").exists()


def test_none_is_made_where_others_can_write(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)

    with pytest.raises(UnsafeFile, match="can be written by others"):
        create_secret_file(shared / "secret", "hush")

    assert list(shared.iterdir()) == []


def test_a_group_of_the_users_own_is_nobody_else(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    file.chmod(0o664)

    private = why_writable(file.stat())
    if os.geteuid() == 0:
        os.chown(file, -1, STRANGER)

    assert private == "" or os.geteuid() != 0
    if os.geteuid() == 0:
        assert why_writable(file.stat()) == "can be written by others (mode 0664)"


def test_a_folder_is_judged_where_it_really_is(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "inside").mkdir(mode=0o700)
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to("open/inside")

    assert "can be written by others" in why_folder_unsafe(tmp_path / "link")
