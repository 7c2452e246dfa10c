"""A write is all or nothing, keeps what belongs to the file, and never replaces what the caller has not seen."""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import stat
import struct
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from goat_mcp.core import posix
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.workspace import AnyVersion, FileVersion, Workspace, WrittenFile
from tests.files.workspace.conftest import Ground, names_in

NOBODY = 65534


def version_of(ground: Ground, asked: str) -> FileVersion:
    with ground.workspace.open_file(ground.workspace.resolve(asked)) as file:
        return file.version(file.read())


def write(ground: Ground, asked: str, data: bytes, expect: FileVersion | AnyVersion | None) -> WrittenFile:
    return ground.workspace.write_file(ground.workspace.resolve(asked), data, expect=expect)


def refused_write(
    ground: Ground, asked: str, expect: FileVersion | AnyVersion | None, data: bytes = b"new"
) -> ToolError:
    with pytest.raises(ToolError) as refused:
        write(ground, asked, data, expect)
    assert ground.leftovers() == []
    return refused.value


def test_a_new_file_comes_with_its_folders_and_its_version(ground: Ground) -> None:
    written = write(ground, "@a/b/c.txt", b"text", None)

    path = ground.top / "a" / "b" / "c.txt"
    assert path.read_bytes() == b"text"
    assert (written.real_path, written.created) == (path, True)
    assert written.version == FileVersion(hashlib.sha256(b"text").hexdigest(), 4, path.stat().st_mtime_ns)
    assert names_in(path.parent) == ["c.txt"]
    assert names_in(ground.locks) == []


def test_a_seen_file_is_replaced(ground: Ground) -> None:
    (ground.top / "a").write_bytes(b"old")

    written = write(ground, "@a", b"new", version_of(ground, "@a"))

    assert (ground.top / "a").read_bytes() == b"new"
    assert (written.real_path, written.created) == (ground.top / "a", False)
    assert written.version == version_of(ground, "@a")
    assert names_in(ground.top) == ["a"]


def test_a_file_that_must_be_new_does_not_replace_one(ground: Ground) -> None:
    (ground.top / "a").write_bytes(b"old")

    assert refused_write(ground, "@a", None).code == ErrorCode.STALE
    assert (ground.top / "a").read_bytes() == b"old"


def test_a_file_that_appears_while_a_new_one_is_written_stays(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", meanwhile(lambda: (ground.top / "a").write_bytes(b"theirs")))

    assert refused_write(ground, "@a", None).code == ErrorCode.STALE
    assert (ground.top / "a").read_bytes() == b"theirs"


def become_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def become_a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("other")


CHANGES: dict[str, Callable[[Path], object]] = {
    "same size": lambda path: path.write_bytes(b"0ld"),
    "longer": lambda path: path.write_bytes(b"longer"),
    "deleted": lambda path: path.unlink(),
    "moved": lambda path: path.rename(path.with_name("moved")),
    "a folder now": become_a_folder,
    "a link now": become_a_link,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_file_that_changed_since_it_was_seen_is_not_replaced(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, change: str, when: str
) -> None:
    path = ground.top / "a"
    path.write_bytes(b"old")
    (ground.top / "other").write_bytes(b"other")
    seen = version_of(ground, "@a")
    if when == "before":
        CHANGES[change](path)
    else:
        monkeypatch.setattr(os, "fsync", meanwhile(lambda: CHANGES[change](path)))
    error = refused_write(ground, "@a", seen)

    assert error.code in (ErrorCode.STALE, ErrorCode.DIRECTORY)
    assert (ground.top / "other").read_bytes() == b"other"
    assert not path.is_file() or path.read_bytes() != b"new"


def test_a_file_known_to_be_stale_costs_no_write(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    (ground.top / "a").write_bytes(b"old")
    seen = version_of(ground, "@a")
    (ground.top / "a").write_bytes(b"0ld")
    monkeypatch.setattr(os, "write", lambda *_: pytest.fail("written"))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType] # any call is the failure

    assert refused_write(ground, "@a", seen).code == ErrorCode.STALE


def test_a_file_that_was_only_touched_is_replaced(ground: Ground) -> None:
    (ground.top / "a").write_bytes(b"old")
    seen = version_of(ground, "@a")

    os.utime(ground.top / "a", ns=(1, 1))
    (ground.top / "a").chmod(0o600)
    write(ground, "@a", b"new", seen)

    assert (ground.top / "a").read_bytes() == b"new"


def test_a_settled_file_is_not_read_again(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    (ground.top / "a").write_bytes(b"old")
    for wait in ("SETTLED_NS", "FINELY_SETTLED_NS"):
        monkeypatch.setattr(f"goat_mcp.files.workspace.opened_file.{wait}", -1_000_000_000)
    seen = version_of(ground, "@a")
    monkeypatch.setattr("goat_mcp.files.workspace.writing.hash_of", lambda fd: pytest.fail("read again"))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType] # any call is the failure

    write(ground, "@a", b"new", seen)

    assert seen.identity is not None
    assert (ground.top / "a").read_bytes() == b"new"


def test_a_file_that_was_just_changed_is_not_trusted_by_its_times(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goat_mcp.files.workspace.opened_file.FINELY_SETTLED_NS", 60_000_000_000)
    path = ground.top / "a"
    path.write_bytes(b"old")
    seen = version_of(ground, "@a")
    times = path.stat()

    with path.open("r+b") as file:
        file.write(b"0ld")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    assert seen.identity is None
    assert refused_write(ground, "@a", seen).code == ErrorCode.STALE


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o4711, 0o444])
def test_the_mode_is_kept(ground: Ground, mode: int) -> None:
    path = ground.top / "run.sh"
    path.write_bytes(b"old")
    path.chmod(mode)

    write(ground, "@run.sh", b"new", version_of(ground, "@run.sh"))

    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_is_as_wide_as_the_umask_allows(ground: Ground, mask: int) -> None:
    before = os.umask(mask)
    try:
        write(ground, "@new/a", b"x", None)
    finally:
        os.umask(before)

    assert stat.S_IMODE((ground.top / "new" / "a").stat().st_mode) == 0o666 & ~mask
    assert stat.S_IMODE((ground.top / "new").stat().st_mode) == 0o777 & ~mask


def test_nobody_else_can_read_a_file_while_it_is_written(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    (ground.top / "a").write_bytes(b"old")
    (ground.top / "a").chmod(0o644)
    modes: list[int] = []
    create = os.write

    def note_mode(fd: int, data: bytes) -> int:
        modes.append(stat.S_IMODE(os.fstat(fd).st_mode))
        return create(fd, data)

    monkeypatch.setattr(os, "write", note_mode)
    write(ground, "@a", b"new", version_of(ground, "@a"))

    assert set(modes) == {0o600}


@pytest.mark.linux_only("Python has extended attributes on Linux alone")
def test_owner_and_extended_attributes_are_kept(ground: Ground) -> None:
    path = ground.top / "a"
    path.write_bytes(b"old")
    give_to_nobody(path)
    owner = (path.stat().st_uid, path.stat().st_gid)
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError as problem:
        pytest.skip(f"no extended attributes here: {problem}")

    write(ground, "@a", b"new", version_of(ground, "@a"))

    assert (path.stat().st_uid, path.stat().st_gid) == owner
    assert os.getxattr(path, "user.note") == b"kept"


@pytest.mark.linux_only("access lists as attributes of a file")
def test_a_folders_default_rights_do_not_widen_a_files(ground: Ground) -> None:
    path = ground.top / "a"
    path.write_bytes(b"old")
    path.chmod(0o660)
    user, group, everyone, nobody, mask = 0x01, 0x04, 0x20, 0x02, 0x10
    entries = [(user, 7, -1), (nobody, 6, NOBODY), (group, 7, -1), (mask, 7, -1), (everyone, 0, -1)]
    rights = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(ground.top, "system.posix_acl_default", rights)
    except OSError as problem:
        pytest.skip(f"no access control lists here: {problem}")

    write(ground, "@a", b"new", version_of(ground, "@a"))

    assert "system.posix_acl_access" not in os.listxattr(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o660


def test_a_link_inside_stays_a_link_and_its_target_changes(ground: Ground) -> None:
    (ground.top / "sub").mkdir()
    (ground.top / "sub" / "a").write_bytes(b"old")
    (ground.top / "link").symlink_to("sub/a")

    written = write(ground, "@link", b"new", version_of(ground, "@link"))

    assert written.real_path == ground.top / "sub" / "a"
    assert (ground.top / "link").readlink() == Path("sub/a")
    assert (ground.top / "sub" / "a").read_bytes() == b"new"


def test_a_file_with_other_names_is_refused(ground: Ground) -> None:
    os.link(ground.out / "secret.txt", ground.top / "hl")

    error = refused_write(ground, "@hl", AnyVersion())

    assert error.code == ErrorCode.HARD_LINKED
    assert "2 hard links" in error.message


def test_a_folder_is_not_overwritten(ground: Ground) -> None:
    (ground.top / "folder").mkdir()

    for asked in ("@folder", "@"):
        assert refused_write(ground, asked, AnyVersion()).code == ErrorCode.DIRECTORY


def test_a_file_on_the_way_is_no_folder(ground: Ground) -> None:
    (ground.top / "a").write_bytes(b"old")

    assert refused_write(ground, "@a/b/c", None).code == ErrorCode.NOT_A_DIRECTORY


def test_large_data_has_the_version_of_its_bytes(ground: Ground) -> None:
    data = os.urandom(5 * 1024 * 1024)

    written = write(ground, "@big", data, None)

    assert (ground.top / "big").read_bytes() == data
    assert written.version.sha256 == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("step", ["write", "fsync", "fchmod", "rename"])
def test_after_a_failure_the_old_file_stands_and_nothing_is_left(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = ground.top / "a"
    path.write_bytes(b"old")
    os.utime(path, ns=(10**18, 10**18))
    seen = version_of(ground, "@a")
    before = path.stat()

    with monkeypatch.context() as patch:
        patch.setattr(posix if step == "fchmod" else os, step, failing(errno.ENOSPC))
        error = refused_write(ground, "@a", seen)
        new = None if step == "rename" else refused_write(ground, "@new/folder/b", None)

    assert error.code == ErrorCode.IO
    assert error.message == f"no space left on device: {path}"
    assert new is None or new.code == ErrorCode.IO
    assert path.read_bytes() == b"old"
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    assert names_in(ground.top) == ["a"]
    assert names_in(ground.locks) == []


def test_a_full_disk_keeps_the_old_file(ground: Ground) -> None:
    (ground.top / "a").write_bytes(b"old")
    seen = version_of(ground, "@a")

    with at_most_bytes_per_file(100_000):
        error = refused_write(ground, "@a", seen, b"x" * 200_000)

    assert error.code == ErrorCode.IO
    assert (ground.top / "a").read_bytes() == b"old"
    assert names_in(ground.top) == ["a"]


def test_a_file_in_a_read_only_folder_is_written_in_place(ground: Ground) -> None:
    folder, path = ground.top / "folder", ground.top / "folder" / "a"
    folder.mkdir()
    path.write_bytes(b"a longer old text")
    path.chmod(0o666)
    inode = path.stat().st_ino
    folder.chmod(0o555)
    seen = version_of(ground, "@folder/a")

    with as_nobody():
        written = write(ground, "@folder/a", b"new", seen)

    assert (path.read_bytes(), path.stat().st_ino) == (b"new", inode)
    assert written.version == version_of(ground, "@folder/a")
    folder.chmod(0o755)


@pytest.mark.linux_only("elsewhere no room can be reserved: the old bytes are put back")
def test_a_full_disk_keeps_a_file_that_is_written_in_place(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, path = ground.top / "folder", ground.top / "folder" / "a"
    folder.mkdir()
    path.write_bytes(b"old")
    path.chmod(0o666)
    give_to_nobody(path)
    os.utime(path, ns=(10**18, 10**18))
    folder.chmod(0o555)
    seen = version_of(ground, "@folder/a")

    with as_nobody(), at_most_bytes_per_file(100_000), monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda *_: pytest.fail("a byte was changed"))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType] # any call is the failure
        error = refused_write(ground, "@folder/a", seen, b"x" * 200_000)

    assert error.code == ErrorCode.IO
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (b"old", 10**18)
    folder.chmod(0o755)


def test_old_bytes_come_back_when_writing_in_place_breaks_off(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, path = ground.top / "folder", ground.top / "folder" / "a"
    folder.mkdir()
    path.write_bytes(b"the old text")
    give_to_nobody(path)
    path.chmod(0o666)
    os.utime(path, ns=(10**18, 10**18))
    folder.chmod(0o555)
    seen = version_of(ground, "@folder/a")

    with as_nobody(), monkeypatch.context() as patch:
        patch.setattr(os, "write", breaking_off_after(3))
        error = refused_write(ground, "@folder/a", seen, b"NEW")

    assert error.code == ErrorCode.IO
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (b"the old text", 10**18)
    folder.chmod(0o755)


def test_a_file_nobody_may_write_says_so(ground: Ground) -> None:
    folder = ground.top / "folder"
    folder.mkdir()
    (folder / "a").write_bytes(b"old")
    folder.chmod(0o555)

    with as_nobody():
        error = refused_write(ground, "@folder/a", AnyVersion())

    assert (error.code, error.message) == (ErrorCode.IO, f"permission denied: {folder / 'a'}")
    folder.chmod(0o755)


def test_a_file_that_is_a_mount_of_its_own_is_written_in_place(ground: Ground) -> None:
    (ground.top / "a").write_bytes(b"below")
    (ground.top / "source").write_bytes(b"old")
    mount = subprocess.run(
        ["mount", "--bind", str(ground.top / "source"), str(ground.top / "a")], capture_output=True, check=False
    )
    if mount.returncode != 0:
        pytest.skip("cannot mount here")
    try:
        write(ground, "@a", b"new", version_of(ground, "@a"))
        assert names_in(ground.top) == ["a", "source"]
    finally:
        subprocess.run(["umount", str(ground.top / "a")], check=True)

    assert (ground.top / "source").read_bytes() == b"new"
    assert (ground.top / "a").read_bytes() == b"below"


def test_a_real_full_disk_keeps_the_old_file(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "x", str(disk)], capture_output=True, check=False)
    if mount.returncode != 0:
        pytest.skip("cannot mount here")
    try:
        workspace = Workspace(disk, lock_folder=tmp_path / "locks")
        (disk / "a").write_bytes(b"o" * 700_000)
        with pytest.raises(ToolError) as refused:
            workspace.write_file(workspace.resolve("@a"), b"n" * 700_000, expect=AnyVersion())
        content, left = (disk / "a").read_bytes(), names_in(disk)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)  # the root is still open

    assert refused.value.code == ErrorCode.IO
    assert (content, left) == (b"o" * 700_000, ["a"])


def test_a_whole_file_beyond_memory_is_refused(ground: Ground) -> None:
    with (ground.top / "sparse").open("wb") as file:
        file.truncate(20 * 1024**3)

    with ground.workspace.open_file(ground.workspace.resolve("@sparse")) as opened, pytest.raises(ToolError) as refused:
        opened.read()

    assert refused.value.code == ErrorCode.TOO_LARGE


def meanwhile(act: Callable[[], object]) -> Callable[[int], None]:
    """An `os.fsync` that lets something else happen the first time it is called."""
    sync, done = os.fsync, [False]

    def fsync(fd: int) -> None:
        if not done[0]:
            done[0] = True
            act()
        sync(fd)

    return fsync


def failing(code: int) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


def breaking_off_after(count: int) -> Callable[[int, bytes], int]:
    """An `os.write` whose second call, after `count` bytes, finds the disk full; then it works again."""
    write, calls = os.write, [0]

    def broken(fd: int, data: bytes) -> int:
        calls[0] += 1
        if calls[0] == 1:
            return write(fd, data[: count - 1])
        if calls[0] == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, data)

    return broken


def give_to_nobody(path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)


@contextmanager
def at_most_bytes_per_file(count: int) -> Generator[None]:
    """The nearest to a full disk that needs no disk: longer files fail with EFBIG."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def as_nobody() -> Generator[None]:
    """Permissions do not hold for root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
