"""Paths that a host on Windows sends to a server in WSL."""

from __future__ import annotations

import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.wsl_paths import WslPaths

PATHS = WslPaths("Ubuntu")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (r"C:\Users\me\x", "/mnt/c/Users/me/x"),
        ("d:/a/b", "/mnt/d/a/b"),
        ("C:\\", "/mnt/c"),
        ("C:\\Users\\me\\", "/mnt/c/Users/me"),
        (r"C:\a\..\b", "/mnt/c/a/../b"),
        (r"C:\日本\x y.txt", "/mnt/c/日本/x y.txt"),
        (r"\\?\C:\very\long", "/mnt/c/very/long"),
        (r"\\wsl.localhost\Ubuntu\home\me\x", "/home/me/x"),
        (r"\\WSL$\ubuntu\home", "/home"),
        (r"\\?\UNC\wsl.localhost\Ubuntu\home", "/home"),
        (r"\\wsl.localhost\Ubuntu", "/"),
        ("/home/me", None),
        ("//wsl.localhost/Ubuntu/x", None),  # a path of Linux
        ("a.txt", None),
        ("~/x", None),
        ("@/x", None),
    ],
)
def test_a_path_of_windows_becomes_one_of_linux(text: str, path: str | None) -> None:
    assert PATHS.linux(text) == path


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("C:x", ErrorCode.PATH_RELATIVE),
        ("C:", ErrorCode.PATH_RELATIVE),
        (r"\Users\me", ErrorCode.PATH_RELATIVE),
        (r"\\?\GLOBALROOT\Device\x", ErrorCode.PATH_RELATIVE),
        (r"\\.\pipe\x", ErrorCode.PATH_RELATIVE),
        (r"\\server\share\x", ErrorCode.PATH_OUTSIDE),
        (r"\\?\UNC\server\share", ErrorCode.PATH_OUTSIDE),
        (r"\\wsl.localhost\Debian\home", ErrorCode.PATH_OUTSIDE),
        (r"\\wsl.localhost", ErrorCode.PATH_OUTSIDE),
        (r"C:\a.txt:stream", ErrorCode.INPUT),
        (r"C:\secret.", ErrorCode.INPUT),
        ("C:\\secret \\x", ErrorCode.INPUT),
        (r"C:\a\...\b", ErrorCode.INPUT),
        ("C:\\a\x01", ErrorCode.INPUT),
    ],
)
def test_what_leads_to_no_place_here_is_refused(text: str, code: ErrorCode) -> None:
    with pytest.raises(ToolError) as refused:
        PATHS.linux(text)

    assert refused.value.code is code


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///c:/Users/me/proj", "/mnt/c/Users/me/proj"),
        ("file:///c%3A/Users/Ada%20L", "/mnt/c/Users/Ada L"),
        ("file://localhost/C:/x", "/mnt/c/x"),
        ("file://wsl.localhost/Ubuntu/home/me", "/home/me"),
        ("file://wsl%24/Ubuntu/home/me", "/home/me"),
        ("file://wsl$/ubuntu/home/me", "/home/me"),
        ("file:////wsl.localhost/Ubuntu/home/me", "/home/me"),
        ("file:///home/me", "/home/me"),
        ("https://example.com/c:/x", None),
    ],
)
def test_an_address_of_windows_becomes_a_path_of_linux(uri: str, path: str | None) -> None:
    assert PATHS.linux_of_uri(uri) == path


@pytest.mark.parametrize("uri", ["file://server/share/x", "file://wsl.localhost/Debian/home", "file:///c:x"])
def test_an_address_that_is_not_here_is_refused(uri: str) -> None:
    with pytest.raises(ToolError):
        PATHS.linux_of_uri(uri)


def test_drives_can_be_mounted_elsewhere() -> None:
    assert WslPaths("Ubuntu", "").linux(r"C:\x") == "/c/x"
    assert WslPaths("Ubuntu", "/win").linux_of_uri("file:///c:/x") == "/win/c/x"


@pytest.mark.parametrize(
    ("path", "is_too_wide"),
    [
        ("/mnt", True),
        ("/mnt/c", True),
        ("/mnt/c/Users", True),
        ("/mnt/c/Users/me", True),
        ("/mnt/c/Users/me/proj", False),
        ("/mnt/c/WINDOWS/System32", True),
        ("/mnt/c/src", False),
        ("/mnt/d", True),
        ("/mnt/data/x", False),
        ("/mntx/c", False),
        ("/home/me", False),
    ],
)
def test_a_drive_the_system_and_a_whole_profile_are_no_project(path: str, is_too_wide: bool) -> None:
    assert PATHS.is_too_wide(path) is is_too_wide


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/mnt/c/Users/Ada L", r"C:\Users\Ada L"),
        ("/mnt/d", "D:\\"),
        ("/mnt/data/x", r"\\wsl.localhost\Ubuntu\mnt\data\x"),
        ("/home/me", r"\\wsl.localhost\Ubuntu\home\me"),
    ],
)
def test_a_path_of_linux_has_a_spelling_on_windows(path: str, text: str) -> None:
    assert PATHS.windows(path) == text and PATHS.linux(text) == path
