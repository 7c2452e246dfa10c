"""What the Windows around a distribution of WSL answers, with a double of it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from goat_mcp.calls.permissions.patterns import parse_path_pattern
from goat_mcp.core import platform, posix
from goat_mcp.core.errors import ToolError
from goat_mcp.files.workspace.roots import default_roots
from goat_mcp.files.workspace.workspace import Workspace
from goat_mcp.files.workspace.writing import AnyVersion
from goat_mcp.processes import wsl
from goat_mcp.server.client_roots import local_folders
from tests.fake_wsl import DISTRIBUTION, FakeWindows, put_into_wsl


@pytest.fixture
def windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeWindows:
    return put_into_wsl(tmp_path, monkeypatch)


def ours() -> wsl.Wsl:
    found = wsl.this_wsl()
    assert found is not None
    return found


def test_outside_wsl_there_is_none() -> None:
    assert not platform.IN_WSL and wsl.this_wsl() is None
    assert wsl.local_path(r"C:\x") == r"C:\x" and not wsl.is_too_wide(Path("/mnt/c"))


def test_windows_says_who_its_user_is_and_which_distributions_there_are(windows: FakeWindows) -> None:
    windows.has_user()

    assert ours().windows_variables()["USERPROFILE"] == r"C:\Users\Ada L"
    assert ours().windows_variables()["PATH"].endswith("nodejs\\")
    assert ours().distributions() == [DISTRIBUTION, "Debian"]


def test_without_interop_windows_does_not_answer(windows: FakeWindows) -> None:
    program = windows.drives / "c" / "Windows" / "System32" / "cmd.exe"
    program.parent.mkdir(parents=True)
    program.write_bytes(b"MZ\x90\x00")
    program.chmod(0o755)

    assert ours().windows_variables() == {} and ours().distributions() == []


def test_sudo_leaves_the_name_of_the_distribution_out_and_it_is_found_all_the_same(
    windows: FakeWindows, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = windows.drives / "wslpath"
    program.write_text("#!/bin/sh\n[ \"$1 $2\" = '-w /' ] && printf '%s\\n' '\\\\wsl.localhost\\Debian\\'\n")
    program.chmod(0o755)
    monkeypatch.delenv("WSL_DISTRO_NAME")
    monkeypatch.setenv("PATH", f"{windows.drives}:{os.environ['PATH']}")

    assert wsl.wsl_paths().distribution == "Debian"


@pytest.mark.parametrize(
    ("text", "drives"),
    [("", "/mnt"), ("[automount]\nroot=/", ""), ('[automount]\nroot = "/w/"  # a', "/w"), ("broken", "/mnt")],
)
def test_the_drives_are_where_wsl_conf_says(
    windows: FakeWindows, text: str, drives: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wsl.CONFIG_FILE.write_text(text)

    assert wsl.wsl_paths().drives == drives


def test_file_tools_understand_paths_of_windows(windows: FakeWindows, tmp_path: Path) -> None:
    project = windows.profile / "proj"
    project.mkdir(parents=True)
    (tmp_path / "linux").mkdir()
    workspace = Workspace(project, tmp_path / "linux", lock_folder=tmp_path / "locks")
    asked = {
        "file:///c:/Users/Ada%20L/proj/c.txt": f"{project}/c.txt",
        r"C:\Users\Ada L\proj\a.txt": f"{project}/a.txt",
        rf"\\wsl.localhost\{DISTRIBUTION}{tmp_path}\linux\b.txt".replace("/", "\\"): f"{tmp_path}/linux/b.txt",
    }

    assert {path: str(workspace.resolve(path)) for path in asked} == asked
    for outside in (r"C:\Users\Ada L\proj\..\x", r"C:\Windows\x", r"\\wsl.localhost\Debian\x", r"D:\x", "C:x"):
        with pytest.raises(ToolError):
            workspace.resolve(outside)


def test_a_path_that_is_not_of_windows_asks_nobody(windows: FakeWindows, monkeypatch: pytest.MonkeyPatch) -> None:
    """A blocking `wslpath` for each relative path of a model would stop the server."""
    asked: list[str] = []
    monkeypatch.setattr(wsl, "wsl_paths", lambda: asked.append("wslpath"))

    assert [wsl.local_path(path) for path in ("src/a.py", "~/x", "/mnt/c/x", "")] == ["src/a.py", "~/x", "/mnt/c/x", ""]
    assert asked == []


def test_the_scheme_of_an_address_may_have_capital_letters(windows: FakeWindows) -> None:
    assert wsl.local_path("FILE:///C:/x") == f"{windows.drives}/c/x"


@pytest.mark.parametrize("rule", ["C:/Users/ada/conf/**", r"c:\Users\ada\conf\*.env", "C:/**"])
def test_a_rule_that_spells_a_path_as_windows_means_the_file_here(windows: FakeWindows, rule: str) -> None:
    secret = f"{windows.drives}/c/Users/ada/conf/a.env"

    assert parse_path_pattern(rule).matches(secret, ["/home/ada"])
    assert not parse_path_pattern(rule).matches(secret.replace("/c/", "/d/"), ["/home/ada"])


def test_elsewhere_a_path_of_windows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="not an absolute path"):
        Workspace(tmp_path, lock_folder=tmp_path / "locks").resolve(r"C:\x")


def test_roots_of_a_host_on_windows_are_folders_here(windows: FakeWindows) -> None:
    uris = (
        "file:///c%3A/Users/Ada%20L/proj",
        f"file://wsl.localhost/{DISTRIBUTION}/home/me",
        "file://wsl%24/Debian/home/me",
        "file://server/share",
        "file:///home/you",
        "file://[",
        "https://example.com/",
    )

    found = local_folders({"roots": [{"uri": uri} for uri in uris]})

    assert found == [windows.profile / "proj", Path("/home/me"), Path("/home/you")]


def test_elsewhere_such_roots_are_left_out() -> None:
    roots = [{"uri": "file://wsl.localhost/Ubuntu/home/me"}, {"uri": "file:///home/me"}]

    assert local_folders({"roots": roots}) == [Path("/home/me")]


def test_on_windows_itself_roots_are_paths_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "SYSTEM", "windows")
    uris = ("file:///c%3A/Users/me/proj", "file:///C:/x", "file://server/share/x", "file:///home/me")

    assert local_folders({"roots": [{"uri": uri} for uri in uris]}) == [Path("C:\\Users\\me\\proj"), Path("C:\\x")]


def test_where_a_host_on_windows_was_started_is_no_workspace_if_it_is_a_whole_profile(
    windows: FakeWindows, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = windows.profile / "proj"
    project.mkdir(parents=True)

    found: list[list[Path]] = []
    for folder in (windows.profile, project):
        monkeypatch.chdir(folder)
        found.append(default_roots())

    assert found == [[], [project]]


def test_a_short_name_of_windows_opens_nothing(
    windows: FakeWindows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule about `secret folder` does not know `SECRET~1`, and a drive of Windows opens both."""
    project = windows.drives / "c" / "proj~1"
    (project / "SECRET~1").mkdir(parents=True)
    (project / "SECRET~1" / "a.txt").write_text("x")
    (project / "listed~1").write_text("x")
    (project / "link").symlink_to("SECRET~1")
    listed = os.listdir

    def without_short_names(folder: Path) -> list[str]:
        return [name for name in listed(folder) if name not in ("SECRET~1", "proj~1")]

    monkeypatch.setattr(os, "listdir", without_short_names)
    workspace = Workspace(project, lock_folder=tmp_path / "locks")

    for asked in (r"C:\proj~1\SECRET~1\a.txt", f"{project}/link/a.txt"):
        with pytest.raises(ToolError, match="a short form of another name"):
            workspace.open_file(workspace.resolve(asked))
        with pytest.raises(ToolError, match="a short form of another name"):
            workspace.write_file(workspace.resolve(asked), b"y", expect=AnyVersion())
    with workspace.open_file(workspace.resolve(r"C:\proj~1\listed~1")) as file:
        assert file.real_path.name == "listed~1"
    workspace.write_file(workspace.resolve(r"C:\proj~1\new~1"), b"y", expect=None)


def test_files_are_written_on_a_drive_that_has_no_modes(
    windows: FakeWindows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`metadata` is not among the mount's options by default, and then `fchmod` fails."""
    project = windows.drives / "c" / "proj"
    project.mkdir()
    old = project / "old.txt"
    old.write_text("x")
    inode = old.stat().st_ino
    workspace = Workspace(project, lock_folder=tmp_path / "locks")

    def refused(fd: int, mode: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(posix, "fchmod", refused)
    workspace.write_file(workspace.resolve(r"C:\proj\new.txt"), b"y", expect=None)
    workspace.write_file(workspace.resolve(r"C:\proj\old.txt"), b"z", expect=AnyVersion())
    monkeypatch.setattr(platform, "IN_WSL", False)
    with pytest.raises(ToolError):
        workspace.write_file(workspace.resolve(f"{project}/other.txt"), b"y", expect=None)

    assert (project / "new.txt").read_bytes() == b"y"
    assert old.read_bytes() == b"z" and old.stat().st_ino != inode  # replaced in one step, not overwritten
