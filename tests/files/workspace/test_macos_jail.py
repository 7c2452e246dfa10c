"""The jail as macOS has it: no openat2, no O_PATH, a call that says where an open file is. On doubles of all three;
`conftest.py` runs every other test of the jail with them, too."""

from __future__ import annotations

import ctypes
import os
import unicodedata
from pathlib import Path

import pytest

from goat_mcp.core import platform, posix
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.workspace import AnyVersion, Workspace
from goat_mcp.files.workspace.beneath import Kernel
from goat_mcp.files.workspace.directory import PosixDirectory
from goat_mcp.files.workspace.roots import Root
from tests.files.workspace.conftest import Ground, names_in, open_as_on_macos
from tests.files.workspace.test_writing import as_nobody

pytestmark = pytest.mark.posix_only("about directory descriptors")


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    open_as_on_macos(monkeypatch)
    return Kernel(without_openat2=True)


def answer(patch: pytest.MonkeyPatch, of: Path, path: str) -> None:
    """F_GETPATH of this file gives this path."""
    plain, wanted = posix.fcntl, of.stat().st_ino

    def where_it_is(fd: int, command: int, argument: bytes) -> bytes:
        if os.fstat(fd).st_ino == wanted:
            return path.encode().ljust(1024, b"\0")
        return plain(fd, command, argument)

    patch.setattr(posix, "fcntl", where_it_is)


def test_what_is_moved_out_while_it_is_opened_is_not_read(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    (ground.top / "folder").mkdir()
    (ground.top / "folder" / "file").write_text("x")
    plain = PosixDirectory.open

    def moved_first(self: PosixDirectory, name: str, flags: int, mode: int = 0o600) -> int:
        if name == "file" and (ground.top / "folder").exists():
            (ground.top / "folder").rename(ground.top.parent / "moved")
        return plain(self, name, flags, mode)

    monkeypatch.setattr(PosixDirectory, "open", moved_first)

    assert ground.refused_read("@folder/file").code == ErrorCode.NOT_FOUND


def test_nothing_is_written_to_a_folder_that_was_moved_out(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    (ground.top / "folder").mkdir()
    plain = PosixDirectory.stat

    def moved_first(self: PosixDirectory, name: str) -> os.stat_result:
        if name == "new":
            (ground.top / "folder").rename(ground.top.parent / "moved")
        return plain(self, name)

    monkeypatch.setattr(PosixDirectory, "stat", moved_first)

    with pytest.raises(ToolError) as refused:
        ground.workspace.write_file(ground.workspace.resolve("@folder/new"), b"x", expect=None)

    assert refused.value.code == ErrorCode.PATH_OUTSIDE
    assert names_in(ground.top.parent / "moved") == []


def test_a_file_is_known_as_the_disk_spells_it(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ground.top / "caf\u00e9"
    path.write_text("x")
    on_disk = unicodedata.normalize("NFD", str(path))
    answer(monkeypatch, path, on_disk)

    with ground.workspace.open_file(ground.workspace.resolve(str(path))) as file:
        assert str(file.real_path) == on_disk


def test_a_file_with_a_second_name_outside_can_be_read(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ground.top / "file"
    path.write_text("x")
    os.link(path, ground.top.parent / "second")
    answer(monkeypatch, path, str(ground.top.parent / "second"))

    assert ground.read("@file") == b"x"
    with ground.workspace.open_file(ground.workspace.resolve("@file")) as file:
        assert file.real_path == path


@pytest.mark.parametrize(
    "asked",
    [
        "/.vol/16777220/2/etc/passwd",
        "/.VOL/16777220/2",
        "/.nofollow/etc/passwd",
        "/.resolve/1/etc/passwd",
        "/DEV/null",
    ],
)
def test_names_that_the_kernel_of_macos_understands_itself_are_refused(
    tmp_path: Path, kernel: Kernel, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    monkeypatch.setattr(platform, "SYSTEM", "macos")
    workspace = Workspace(Path("/"), lock_folder=tmp_path / "locks", kernel=kernel)
    (tmp_path / "link").symlink_to(asked)

    for spelling in (asked, f"{tmp_path}/link"):
        with pytest.raises(ToolError) as refused:
            workspace.open_file(workspace.resolve(spelling))
        assert refused.value.code == ErrorCode.PATH_OUTSIDE


@pytest.mark.parametrize("fork", ["..namedfork/rsrc", "..NamedFork/data"])
def test_another_part_of_a_file_is_refused(ground: Ground, monkeypatch: pytest.MonkeyPatch, fork: str) -> None:
    monkeypatch.setattr(platform, "SYSTEM", "macos")
    (ground.top / "file").write_text("x")
    (ground.top / "link").symlink_to(f"file/{fork}")

    assert ground.refused_read(f"@file/{fork}").code == ErrorCode.PATH_OUTSIDE
    # Read name by name, a link leads through no file.
    assert ground.refused_read("@link").code == ErrorCode.NOT_FOUND


def test_a_root_below_private_is_known_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "SYSTEM", "macos")
    root = Root(Path("/private/tmp/ws"), writable=True)

    assert root.depth_of(("tmp", "ws", "file")) == 2
    assert root.depth_of(("private", "tmp", "ws", "file")) == 3
    assert root.depth_of(("tmp", "other")) == -1


@pytest.mark.linux_only("O_PATH stands for the O_SEARCH of a Mac")
@pytest.mark.root_only("it becomes another user")
def test_a_folder_that_may_be_entered_and_not_listed_needs_o_search(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    (ground.top / "folder").mkdir()
    (ground.top / "folder" / "file").write_text("x")
    for folder in (*ground.top.parents[:-2], ground.top):
        folder.chmod(0o755)
    (ground.top / "folder").chmod(0o711)
    ground.workspace.adopt_roots([ground.top])

    with as_nobody():
        refused = ground.refused_read("@folder/file")
        monkeypatch.setattr(posix, "O_SEARCH", os.O_PATH)  # Linux has no nearer kin
        read = ground.read("@folder/file")

    assert refused.code == ErrorCode.IO and "permission denied" in refused.message
    assert read == b"x"


class _Libc:
    """Copies what fcopyfile copies; says with what flags it was called."""

    def __init__(self) -> None:
        self.flags: list[int] = []

    def fcopyfile(self, source: int, target: int, state: None, flags: ctypes.c_uint32) -> int:
        self.flags.append(flags.value)
        for name in os.listxattr(source):
            os.setxattr(target, name, os.getxattr(source, name))
        return 0


@pytest.mark.linux_only("it sets extended attributes")
def test_access_lists_and_attributes_go_to_the_new_file_and_old_times_do_not(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ground.top / "script"
    path.write_text("old")
    path.chmod(0o750)
    os.utime(path, (1, 1))
    os.setxattr(path, "user.note", b"kept")
    libc = _Libc()
    monkeypatch.setattr(platform, "HAS_EXTENDED_ATTRIBUTES", False)
    monkeypatch.setattr(platform, "HAS_COPYFILE", True)
    assert not ground.kernel.has_openat2 and ground.workspace.stat(ground.workspace.resolve("@script"))  # has its libc
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: libc)  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]

    ground.workspace.write_file(ground.workspace.resolve("@script"), b"new", expect=AnyVersion())

    found = path.stat()
    assert (path.read_text(), os.getxattr(path, "user.note"), found.st_mode & 0o777) == ("new", b"kept", 0o750)
    assert found.st_mtime > 1 and libc.flags == [0b101]  # COPYFILE_ACL and COPYFILE_XATTR


def test_a_file_whose_attributes_cannot_be_copied_is_written(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    (ground.top / "file").write_text("old")
    monkeypatch.setattr(platform, "HAS_COPYFILE", True)

    ground.workspace.write_file(ground.workspace.resolve("@file"), b"new", expect=AnyVersion())

    assert (ground.top / "file").read_text() == "new"
