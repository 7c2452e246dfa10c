"""What Windows refuses, in words that a caller can act on. Errors are made by hand: this needs no Windows."""

import errno
from pathlib import Path

import pytest

from goat_mcp.core import platform
from goat_mcp.core.errors import ErrorCode
from goat_mcp.files.workspace.opened_file import FileIdentity
from goat_mcp.files.workspace.refusals import system_error
from goat_mcp.files.workspace.roots import default_roots
from goat_mcp.files.workspace.windows_directory import LinkRefused


def test_a_junction_is_named_as_what_it_is():
    problem = LinkRefused(errno.ELOOP, "a junction or a mount point, which is not followed on Windows", r"C:\ws\out")

    refused = system_error(problem, r"C:\ws\out\x", ())

    assert refused.code is ErrorCode.PATH_OUTSIDE
    assert refused.message == r"C:\ws\out is a junction or a mount point, which is not followed on Windows"


def test_a_name_that_means_another_file_says_which():
    problem = LinkRefused(errno.EXDEV, r"is really C:\ws\long-name", r"C:\ws\LONG-N~1")

    assert system_error(problem, "x", ()).message == r"C:\ws\LONG-N~1 is really C:\ws\long-name"


@pytest.mark.parametrize("number", [32, 33, 1224])
def test_a_file_that_another_program_keeps_to_itself_is_busy(number: int):
    problem = PermissionError(errno.EACCES, "sharing violation")
    setattr(problem, "winerror", number)  # noqa: B010  # only Windows' OSError has it

    refused = system_error(problem, r"C:\ws\f", ())

    assert refused.code is ErrorCode.BUSY
    assert refused.message == r"open in another program: C:\ws\f"


def test_times_prove_nothing_where_anybody_can_set_them_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "f"
    path.write_bytes(b"x")
    found, long_after_ns = path.stat(), path.stat().st_mtime_ns + 10**12

    assert FileIdentity.settled(found, long_after_ns) is not None
    monkeypatch.setattr(platform, "HAS_CHANGE_TIMES", False)

    assert FileIdentity.settled(found, long_after_ns) is None


def test_the_folder_of_windows_itself_is_no_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "System32").mkdir()
    monkeypatch.chdir(tmp_path / "System32")
    monkeypatch.setenv("SYSTEMROOT", str(tmp_path))
    before = default_roots()

    monkeypatch.setattr(platform, "SYSTEM", "windows")

    assert before == [tmp_path / "System32"]
    assert default_roots() == []
