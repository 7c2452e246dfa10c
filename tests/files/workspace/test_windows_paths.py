"""Windows paths as text, which need no Windows: each hostile one is refused for the reason that is true of it."""

import ntpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.core import platform
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.workspace.windows_paths import DrivePath, as_in_rules, looks_short, parse_windows_path

GOOD = {
    r"C:\dir\file": r"C:\dir\file",
    "c:/dir/file": r"C:\dir\file",
    "c:/dir\\sub/file.txt": r"C:\dir\sub\file.txt",
    "C:\\": "C:\\",
    "z:/": "Z:\\",
    r"C:\\dir\\\file": r"C:\dir\file",
    r"C:\dir\.\file": r"C:\dir\file",
    r"C:\dir\sub\..\file": r"C:\dir\file",
    "C:\\dir\\": r"C:\dir",
    "file:///c:/dir%20x": r"C:\dir x",
    "FILE:///C:/dir": r"C:\dir",
    "file:///c%3A/Users/x": r"C:\Users\x",
    "file://localhost/c:/x": r"C:\x",
    "file:///c:/100%25/%C3%A4": r"C:\100%\ä",
    "file:///C:/C%23/what": r"C:\C#\what",
    r"C:\Program Files (x86)\Ünïcode\日本語.txt": r"C:\Program Files (x86)\Ünïcode\日本語.txt",
    r"C:\dir\.gitignore": r"C:\dir\.gitignore",
    r"C:\dir\ leading blank": r"C:\dir\ leading blank",
    r"C:\dir\a.b.c": r"C:\dir\a.b.c",
    r"C:\dir\NULL": r"C:\dir\NULL",
    r"C:\dir\console.log": r"C:\dir\console.log",
    r"C:\dir\COM10": r"C:\dir\COM10",
    r"C:\dir\auxiliary\com.txt": r"C:\dir\auxiliary\com.txt",
    r"C:\dir\backup~": r"C:\dir\backup~",
    r"C:\dir\~$report.docx": r"C:\dir\~$report.docx",
    r"C:\dir\longer-name~1.txt": r"C:\dir\longer-name~1.txt",
    r"C:\dir\%TEMP%\$x": r"C:\dir\%TEMP%\$x",
    r"C:\dir\[a]{b}!#&'()+,;=@^`": r"C:\dir\[a]{b}!#&'()+,;=@^`",
    "C:\\" + "n" * 255: "C:\\" + "n" * 255,
    "C:\\" + "\U0001f600" * 127: "C:\\" + "\U0001f600" * 127,
    r"C:\dir\$MFT": r"C:\dir\$MFT",
}

HOSTILE = {
    "relative to the current directory of its drive": ["C:foo", "C:", "c:..", "C:file.txt", "C:.", "file:///c:x"],
    "has no drive": ["\\foo", "/foo", "\\", "/", "/c/Users/x", "/etc/passwd", "/mnt/c/x", "\\Users", "file:///foo"],
    "on another computer": [
        "\\\\server\\share\\file",
        "//server/share",
        "\\/server/share",
        "/\\server\\share",
        "\\\\localhost\\C$\\x",
        "\\\\127.0.0.1\\c$\\x",
        "\\\\wsl$\\Ubuntu\\home",
        "\\\\wsl.localhost\\Ubuntu",
        "\\\\server@SSL\\DavWWWRoot\\x",
        "\\\\",
        "file:////server/share/x",
    ],
    "names another computer": ["file://server/share/x", "file://10.0.0.1/c:/x", "file://C:/x", "file://server"],
    "is a device path": [
        "\\\\?\\C:\\x",
        "\\\\.\\C:\\x",
        "\\\\.\\PhysicalDrive0",
        "\\\\.\\pipe\\x",
        "//?/C:/x",
        "//./C:/x",
        "\\??\\C:\\x",
        "/??/C:/x",
        "\\\\?\\UNC\\server\\share",
        "\\\\?\\GLOBALROOT\\Device\\HarddiskVolume1\\x",
        "\\\\.\\GLOBALROOT\\Device\\x",
        "\\GLOBALROOT\\Device\\x",
        "\\\\?\\Volume{b75e2c83-0000-0000-0000-602f00000000}\\x",
        "file:////%3F/C:/x",
    ],
    "is a device of Windows": [
        *(f"C:\\{name}" for name in ("CON", "prn", "Aux", "NUL", "CONIN$", "conout$", "CLOCK$")),
        *(f"C:\\{port}{digit}" for port in ("COM", "lpt") for digit in "0123456789¹²³"),
        "C:\\dir\\nul.txt",
        "C:\\dir\\COM1 .log",
        "C:\\dir\\con.tar.gz",
        "C:\\dir\\lpt1 . x",
        "C:\\aux\\file",
        "c:/x/nul/y",
        "file:///c:/nul",
        "C:\\nul\\..\\x",
    ],
    "which Windows drops": [
        "C:\\dir.\\file",
        "C:\\dir\\file.",
        "C:\\dir\\file ",
        "C:\\dir\\file. .",
        "C:\\dir\\...",
        "C:\\dir\\.. \\x",
        "C:\\dir\\ ",
        "C:\\dir\\. ",
        "C:\\.git.\\config",
        "C:\\.git \\hooks",
        "file:///c:/x%20",
        "C:\\dir\\nul ",
    ],
    "alternate stream": [
        "C:\\file:stream",
        "C:\\file::$DATA",
        "C:\\file.txt:Zone.Identifier:$DATA",
        "C:\\dir::$INDEX_ALLOCATION\\file",
        "C:\\dir:$I30:$INDEX_ALLOCATION",
        "C:\\C:\\x",
        "C:\\:",
        "file:///c:/x%3Ay",
        "C:\\.git::$INDEX_ALLOCATION\\config",
    ],
    "character": [
        *(f"C:\\dir\\a{char}b" for char in '<>"|?*'),
        "C:\\dir\\a\x00b",
        "C:\\dir\\a\x1fb",
        "C:\\dir\\a\tb",
        "C:\\dir\\a\nb",
        "C:\\dir\\a\x7fb",
        "file:///c:/a%00b",
    ],
    "short form": ["C:\\PROGRA~1", "C:\\dir\\SETTIN~1.JSO\\x", "c:/git~1/config", "C:\\AB1F2~12.TXT", "C:\\x\\~1"],
    "name of over 255": ["C:\\" + "n" * 256, "C:\\" + "\U0001f600" * 128],
    "longer than": ["C:" + "\\nnnnnnnnn" * 3300],
    "surrogate": ["C:\\a\ud800b", "C:\\\udc00"],
    "leaves its drive": ["C:\\..", "C:\\..\\x", "C:\\dir\\..\\..\\x", "c:/../../x", "file:///c:/../x"],
    "belongs to the file system": ["C:\\$MFT", "C:\\$Extend\\x", "c:/$mft/x", "D:\\$Secure"],
    "not an absolute path": [
        "foo",
        "foo\\bar",
        "./x",
        "..\\x",
        "~\\x",
        "",
        "1:\\x",
        "É:\\x",
        "http://x/y",
        "%TEMP%\\x",
    ],
    "not a complete URL": ["file:c:/x", "file:/c:/x", "file:"],
    "query, a fragment or an encoded separator": [
        "file:///c:/x?y",
        "file:///c:/x#y",
        "file:///c:/a%2fb",
        "file:///c:/a%5Cb",
    ],
    "not UTF-8": ["file:///c:/%ff"],
}
EACH = [(reason, path) for reason, paths in HOSTILE.items() for path in paths]


def test_there_are_enough_hostile_paths():
    assert len({path for _, path in EACH}) >= 80


@pytest.mark.parametrize(("asked", "meant"), GOOD.items())
def test_a_good_path_is_understood(asked: str, meant: str):
    assert parse_windows_path(asked).text == meant


@pytest.mark.parametrize(("reason", "path"), EACH, ids=[ascii(path)[:60] for _, path in EACH])
def test_a_hostile_path_is_refused_with_its_reason_and_what_to_send(reason: str, path: str):
    with pytest.raises(ToolError) as refused:
        parse_windows_path(path)

    assert reason in refused.value.message
    assert refused.value.suggestion
    assert refused.value.message.isprintable()
    assert refused.value.suggestion.isprintable()


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("foo\\bar", ErrorCode.PATH_RELATIVE),
        ("\\\\server\\share", ErrorCode.PATH_OUTSIDE),
        ("\\\\?\\C:\\x", ErrorCode.PATH_OUTSIDE),
        ("C:\\..\\x", ErrorCode.PATH_OUTSIDE),
        ("C:\\nul", ErrorCode.INPUT),
    ],
)
def test_the_code_says_what_kind_of_refusal_it_is(path: str, code: ErrorCode):
    with pytest.raises(ToolError) as refused:
        parse_windows_path(path)

    assert refused.value.code == code


def test_a_path_of_git_bash_gets_its_windows_spelling_as_a_hint():
    with pytest.raises(ToolError) as refused:
        parse_windows_path("/c/Users/x")

    assert r"C:\Users\x" in refused.value.suggestion


def test_a_name_that_looks_short_is_good_if_the_directory_holds_it():
    asked: list[tuple[str, str]] = []

    def holds(folder: str, name: str) -> bool:
        asked.append((folder, name))
        return True

    path = parse_windows_path(r"C:\dir\TRACE~1.TXT", holds)

    assert path == DrivePath("C", ("dir", "TRACE~1.TXT"))
    assert asked == [(r"C:\dir", "TRACE~1.TXT")]


def test_names_are_counted_from_the_drive():
    assert parse_windows_path(r"c:\Users\x\.env").all_names == ("C:", "Users", "x", ".env")


@pytest.mark.parametrize("path", [r"C:\Users\x\.env", "c:/Users/x/.env", "/c/Users/x/.env"])
def test_rules_see_a_path_of_windows_in_the_spelling_of_posix(path: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(platform, "SYSTEM", "linux")
    assert as_in_rules(path) == path

    monkeypatch.setattr(platform, "SYSTEM", "windows")

    assert as_in_rules(path) == "/c/Users/x/.env"


def test_what_looks_short_is_what_windows_makes():
    assert [name for name in ("A~1", "PROGRA~1", "A~1.B", "A~10.TXT") if not looks_short(name)] == []
    assert [name for name in ("a~", "~a", "longname~1", "a~1.text", "a~1.b.c", "a.b~1") if looks_short(name)] == []


@given(st.text(max_size=40))
def test_whatever_passes_is_what_windows_itself_would_make_of_it(below: str):
    try:
        path = parse_windows_path("C:\\" + below)
    except ToolError:
        return

    assert ntpath.normpath("C:\\" + below) == path.text
    assert not any(name.endswith((".", " ")) or ":" in name for name in path.names)
    assert parse_windows_path(path.text) == path
