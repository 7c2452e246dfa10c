"""Hosts on the Windows around WSL: found, written so that they start us through `wsl.exe`, checked, and put back."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from goat_mcp.cli.hosts.entry_check import examine_host_files
from goat_mcp.cli.hosts.own_entry import own_names
from goat_mcp.cli.hosts.table import HOSTS, hosts_in
from goat_mcp.cli.hosts.this_account import chosen_host, this_account
from goat_mcp.cli.main import app
from goat_mcp.cli.overview import show_overview
from goat_mcp.core import platform
from goat_mcp.core.errors import ToolError
from tests.fake_wsl import DISTRIBUTION, FakeWindows, put_into_wsl

WSL = "C:\\Windows\\System32\\wsl.exe"
GOAT = str(Path(sys.executable).with_name("goat-mcp"))
DESKTOP = "AppData/Roaming/Claude/claude_desktop_config.json"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    (folder / "proj").mkdir(parents=True)
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "CLINE_DIR", "CONTINUE_GLOBAL_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("GOAT_MCP_STATE_DIR", str(tmp_path / "state"))
    return folder


@pytest.fixture
def windows(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeWindows:
    found = put_into_wsl(tmp_path, monkeypatch)
    found.has_user()
    return found


def done(*words: str) -> str:
    ended = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    return ended.output


def written(path: Path, data: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def entry_in(path: Path, root: str = "mcpServers") -> dict[str, Any]:
    return json.loads(path.read_bytes().decode("utf-8-sig"))[root]["goat"]


def test_claude_desktop_on_windows_starts_us_through_wsl(windows: FakeWindows, home: Path, tmp_path: Path) -> None:
    shown = done("install", "claude-desktop", "--workspace", str(home / "proj"))

    assert entry_in(windows.profile / DESKTOP) == {
        "command": WSL,
        "args": [
            *("-d", DISTRIBUTION, "--cd", "~", "--exec", "/usr/bin/env", f"GOAT_MCP_STATE_DIR={tmp_path / 'state'}"),
            *(GOAT, "serve", "--workspace", str(home / "proj")),
        ],
    }
    assert f"Claude Desktop (Windows) starts goat-mcp now: {windows.profile / DESKTOP}" in shown
    assert not (home / ".config" / "Claude").exists()


def test_a_packaged_claude_desktop_gets_the_entry_where_it_looks(windows: FakeWindows) -> None:
    package = windows.profile / "AppData" / "Local" / "Packages" / "Claude_pzs8sxrjxfjjc"
    package.mkdir(parents=True)
    done("install", "claude-desktop")

    file = package / "LocalCache" / "Roaming" / "Claude" / "claude_desktop_config.json"
    assert entry_in(file)["command"] == WSL and not (windows.profile / DESKTOP).exists()


def test_what_vs_code_does_with_a_window_in_wsl_is_said(windows: FakeWindows, home: Path) -> None:
    shown = done("install", "vscode")
    done("install", "vscode", "--project", str(home / "proj"))

    assert "In a window in WSL it names none to servers of this file: add --workspace DIR" in shown
    assert entry_in(windows.roaming / "Code" / "User" / "mcp.json", "servers")["command"] == WSL
    assert entry_in(home / "proj" / ".vscode" / "mcp.json", "servers")["command"] == GOAT


def test_a_host_that_starts_servers_in_the_project_does_so_through_wsl(windows: FakeWindows) -> None:
    done("install", "gemini@windows")

    assert entry_in(windows.profile / ".gemini" / "settings.json")["args"][:3] == ["-d", DISTRIBUTION, "--exec"]


@pytest.mark.parametrize("name", [name for name, host in HOSTS.items() if host.user is not None])
def test_every_host_of_windows_gets_an_entry_that_we_know_again_and_take_out(
    name: str, windows: FakeWindows, home: Path
) -> None:
    done("install", f"{name}@windows", "--workspace", str(home / "proj"))
    environment = this_account()
    host = chosen_host(f"{name}@windows", environment)
    file = environment.user_file(host)
    assert file is not None and file.is_relative_to(windows.profile)
    text = file.read_text()
    findings = examine_host_files(environment, has_workspace=False).findings
    done("uninstall", f"{name}@windows")

    assert DISTRIBUTION in text and GOAT in text
    assert findings == []
    assert not file.exists()


AS_WRITTEN_ON_WINDOWS = (
    b'\xef\xbb\xbf{\r\n\t"mcpServers": {\r\n\t\t"a": { "command": "C:\\\\a.exe" }\r\n\t},\r\n\t"theme": "dark"\r\n}\r\n'
)


@pytest.mark.parametrize("way", ["eject", "uninstall"])
def test_a_file_of_windows_comes_back_byte_for_byte(windows: FakeWindows, home: Path, way: str) -> None:
    file = written(windows.profile / DESKTOP, AS_WRITTEN_ON_WINDOWS)
    done("install", "claude-desktop", "--workspace", str(home / "proj"))
    between = file.read_bytes()
    done(way, "claude-desktop")

    assert between.startswith(b"\xef\xbb\xbf{\r\n\t") and b"\n" not in between.replace(b"\r\n", b"")
    assert entry_in_bytes(between)["command"] == WSL
    assert file.read_bytes() == AS_WRITTEN_ON_WINDOWS


def entry_in_bytes(data: bytes) -> dict[str, Any]:
    return json.loads(data.decode("utf-8-sig"))["mcpServers"]["goat"]


def test_what_the_user_changed_meanwhile_stays_and_our_entry_goes(windows: FakeWindows) -> None:
    file = written(windows.profile / DESKTOP, AS_WRITTEN_ON_WINDOWS)
    done("install", "claude-desktop")
    file.write_bytes(file.read_bytes().replace(b"dark", b"light"))
    done("eject", "claude-desktop", "--keep-changes")

    assert file.read_bytes() == AS_WRITTEN_ON_WINDOWS.replace(b"dark", b"light")


def test_a_name_means_the_host_that_is_there(windows: FakeWindows, home: Path) -> None:
    environment = this_account()
    (windows.profile / ".codex").mkdir()
    (home / ".cursor").mkdir()

    def meant(name: str) -> str:
        return chosen_host(name, environment).name

    assert meant("codex") == "codex@windows"  # on Windows alone
    assert meant("cursor") == "cursor"  # in the distribution
    assert meant("cursor@windows") == "cursor@windows"
    assert meant("claude-desktop") == "claude-desktop@windows"  # in neither: an application has a window
    assert meant("claude-desktop@linux") == "claude-desktop"
    assert meant("gemini") == "gemini"  # in neither: an agent of the terminal
    assert chosen_host("cursor", environment, in_project=True).name == "cursor"


def test_hosts_of_both_systems_are_two_in_lists(
    windows: FakeWindows, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(windows.profile / ".cursor" / "mcp.json", "{}")
    written(home / ".cursor" / "mcp.json", "{}")

    document = json.loads(done("install", "--all", "--json", "--workspace", str(home / "proj")))

    assert {one["host"]: one["file"] for one in document["hosts"]} == {
        "cursor": str(home / ".cursor" / "mcp.json"),
        "cursor@windows": str(windows.profile / ".cursor" / "mcp.json"),
    }
    assert entry_in(home / ".cursor" / "mcp.json")["command"] == GOAT
    assert entry_in(windows.profile / ".cursor" / "mcp.json")["command"] == WSL
    show_overview()
    assert "Cursor, Cursor (Windows) start goat-mcp" in capsys.readouterr().out


def test_outside_wsl_there_are_no_hosts_on_windows(home: Path) -> None:
    environment = this_account()

    assert [host.name for host in hosts_in(environment)] == [*HOSTS]
    assert chosen_host("claude-desktop", environment).name == "claude-desktop"
    with pytest.raises(ToolError, match="this is not WSL"):
        chosen_host("cursor@windows", environment)


def without_interop(windows: FakeWindows) -> None:
    (windows.drives / "c" / "Windows" / "System32" / "cmd.exe").unlink()


def test_without_interop_the_only_user_of_windows_is_meant(windows: FakeWindows) -> None:
    without_interop(windows)
    for name in ("Public", "Default", "All Users"):
        (windows.profile.parent / name).mkdir()
    written(windows.profile.parent / "desktop.ini", "")

    found = this_account().around

    assert found is not None and found.home == windows.profile


def test_of_several_users_one_has_to_be_named(
    windows: FakeWindows, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_interop(windows)
    bob = windows.profile.with_name("bob")
    bob.mkdir()

    with pytest.raises(ToolError, match="is not known") as refused:
        done("install", "claude-desktop")
    done("install", "claude-desktop", "--windows-home", r"C:\Users\bob")
    (finding,) = examine_host_files(this_account(), has_workspace=True).findings
    monkeypatch.setenv("GOAT_MCP_WINDOWS_HOME", str(bob))

    assert f"{windows.profile}, {bob}" in refused.value.suggestion
    assert (bob / DESKTOP).is_file()
    assert finding.id == "windows_home" and finding.severity == "warning"
    assert examine_host_files(this_account(), has_workspace=True).findings == []
    assert chosen_host("gemini", this_account()).name == "gemini"


def test_appdata_can_be_elsewhere(windows: FakeWindows) -> None:
    windows.answers("cmd.exe", "USERPROFILE=C:\\Users\\Ada L\nAPPDATA=D:\\roaming\n")
    (windows.drives / "d" / "roaming").mkdir(parents=True)

    environment = this_account()

    file = environment.user_file(chosen_host("claude-desktop", environment))
    assert file == windows.drives / "d" / "roaming" / "Claude" / "claude_desktop_config.json"


def test_a_path_that_wsl_exe_would_break_is_refused(windows: FakeWindows, home: Path) -> None:
    (home / 'a"b').mkdir()

    with pytest.raises(ToolError, match=r"wsl\.exe would hand on"):
        done("install", "claude-desktop", "--workspace", str(home / 'a"b'))

    assert not (windows.profile / DESKTOP).exists()


def test_an_entry_names_its_distribution_or_is_not_written(
    windows: FakeWindows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WSL_DISTRO_NAME")

    with pytest.raises(ToolError, match="WSL_DISTRO_NAME is not set"):
        done("install", "claude-desktop")

    assert not (windows.profile / DESKTOP).exists()


def test_a_path_of_windows_can_be_the_workspace(windows: FakeWindows) -> None:
    (windows.profile / "proj").mkdir()
    done("install", "claude-desktop", "--workspace", r"C:\Users\Ada L\proj")

    assert entry_in(windows.profile / DESKTOP)["args"][-1] == str(windows.profile / "proj")
    with pytest.raises(ToolError, match="everything that is yours"):
        done("install", "claude-desktop", "--workspace", r"C:\Users\Ada L")


def launch(*words: str) -> dict[str, Any]:
    return {"goat": {"command": WSL, "args": ["-d", *words, "serve", "--workspace", "/w"]}}


@pytest.mark.parametrize(
    ("entry", "missing"),
    [
        (launch(DISTRIBUTION, "--cd", "~", "--exec", GOAT), ""),
        (launch(DISTRIBUTION.lower(), "-e", "/usr/bin/env", "A=b", GOAT), ""),
        (launch("Debian", "--exec", "/home/other/goat-mcp"), ""),  # another one, which nobody can look into
        (launch(DISTRIBUTION, "--exec", "/gone/goat-mcp"), "with /gone/goat-mcp, which does not exist"),
        (launch("Gone", "--exec", "/usr/bin/goat-mcp"), "in the distribution Gone of WSL, which does not exist"),
        ({"goat": {"command": r"C:\gone\goat-mcp.exe", "args": ["-w", "x"]}}, r"with C:\gone\goat-mcp.exe, which"),
        ({"goat": {"command": "goat-mcp", "args": ["-w", "x"]}}, ""),  # by the PATH of Windows
    ],
)
def test_doctor_looks_at_what_a_host_on_windows_starts(
    windows: FakeWindows, entry: dict[str, Any], missing: str
) -> None:
    written(windows.profile / DESKTOP, json.dumps({"mcpServers": entry}))

    details = [one.detail for one in examine_host_files(this_account(), has_workspace=False).findings]

    assert len(details) == bool(missing) and all(missing in detail for detail in details)


def test_an_entry_whose_goat_is_gone_is_written_again_with_what_it_said(windows: FakeWindows) -> None:
    old = launch(DISTRIBUTION, "--exec", "/usr/bin/env", "GOAT_MCP_STATE_DIR=/s", "/gone/goat-mcp")
    file = written(windows.profile / DESKTOP, json.dumps({"mcpServers": old}))
    done("install", "claude-desktop", "--mode", "plan")

    assert entry_in(file)["args"] == [
        *("-d", DISTRIBUTION, "--cd", "~", "--exec", "/usr/bin/env", "GOAT_MCP_STATE_DIR=/s", GOAT),
        *("serve", "--workspace", "/w", "--mode", "plan"),
    ]


def test_an_entry_of_ours_is_known_by_what_wsl_starts() -> None:
    host = HOSTS["claude-desktop"].on_windows(DISTRIBUTION)
    entries = {**launch(DISTRIBUTION, "--exec", GOAT), "o": {"command": "wsl.exe", "args": ["--exec", "/bin/other"]}}

    assert own_names(host, entries) == ["goat"]


OTHERS: list[Any] = [
    ({"command": WSL, "args": ["-d", "Debian", "--exec", "/home/d/goat-mcp", "serve"]}, "in the distribution Debian"),
    ({"command": r"C:\py\goat-mcp.exe", "args": ["serve"]}, "of Windows itself"),
]


@pytest.mark.parametrize(("entry", "other"), OTHERS)
@pytest.mark.parametrize("words", [("install",), ("install", "--workspace", "."), ("import", "--move")])
def test_another_goat_that_a_host_on_windows_starts_is_not_changed_and_gets_no_servers_of_ours(
    windows: FakeWindows, home: Path, entry: dict[str, Any], other: str, words: tuple[str, ...]
) -> None:
    server = {"command": "wsl.exe", "args": ["-d", "Debian", "--exec", "x"]}
    file = written(windows.profile / DESKTOP, json.dumps({"mcpServers": {"goat": entry, "a": server}}))
    before = file.read_bytes()

    with pytest.raises(ToolError, match=other):
        done(words[0], "claude-desktop", *words[1:])

    assert file.read_bytes() == before
    assert not (home / ".config" / "goat-mcp" / "upstreams.json").exists()


def test_a_workspace_counts_if_its_variable_reaches_us(windows: FakeWindows) -> None:
    through_env = ["--exec", "/usr/bin/env", "GOAT_MCP_WORKSPACE=/w", GOAT, "serve"]
    entries = {
        "reaches": {"command": WSL, "args": ["-d", DISTRIBUTION, *through_env]},
        "lost": {"command": WSL, "args": ["--exec", GOAT, "serve"], "env": {"GOAT_MCP_WORKSPACE": "C:\\w"}},
    }
    written(windows.profile / DESKTOP, json.dumps({"mcpServers": entries}))

    (finding,) = examine_host_files(this_account(), has_workspace=False).findings

    assert finding.id == "host_entry_workspace" and "(lost in" in finding.detail


def test_the_distribution_is_shown_in_differences(windows: FakeWindows) -> None:
    assert f'"-d", "{DISTRIBUTION}"' in done("install", "claude-desktop")


def test_the_variable_with_the_windows_user_is_no_unknown_setting(
    windows: FakeWindows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOAT_MCP_WINDOWS_HOME", str(windows.profile))

    assert "Read" in done("list")


def imported(*words: str) -> dict[str, Any]:
    document = json.loads(done("import", *words, "--json"))
    (host,) = document["hosts"]
    return {server["name"]: server for server in host["servers"]}


def ours(home: Path) -> dict[str, Any]:
    return json.loads((home / ".config" / "goat-mcp" / "upstreams.json").read_text())["mcpServers"]


def test_servers_of_windows_are_started_by_interop(windows: FakeWindows, home: Path) -> None:
    node = windows.drives / "c" / "Program Files" / "nodejs"
    for program in (node / "npx.cmd", node / "node.exe", windows.drives / "c" / "srv" / "s.exe"):
        written(program, "x")
    servers = {
        "npx": {"command": "npx", "args": ["-y", "@scope/files", "C:\\data"], "env": {"API_URL": "u", "B": "2"}},
        "node": {"command": "node", "args": ["C:\\s.js"], "cwd": "C:\\srv"},
        "exe": {"command": "C:\\srv\\s.exe"},
        "full": {"command": "C:\\Program Files\\nodejs\\npx.cmd", "args": ["x"]},
        "linux": {"command": "wsl.exe", "args": ["-d", DISTRIBUTION, "--cd", "/srv", "-e", "/usr/bin/env", "A=b", "x"]},
        "debian": {"command": "wsl.exe", "args": ["-d", "Debian", "--exec", "x"]},
        "web": {"url": "http://localhost:3000/mcp", "type": "http"},
        "sly": {"command": "npx", "args": ["a&calc"]},
        "quoted": {"command": "node", "args": ['{"a": 1}']},
        "gone": {"command": "uvx", "args": ["x"]},
        "relative": {"command": "node", "cwd": "srv"},
    }
    written(windows.profile / ".cursor" / "mcp.json", json.dumps({"mcpServers": servers}))
    cmd = str(windows.drives / "c" / "Windows" / "System32" / "cmd.exe")

    found = imported("cursor")

    assert ours(home) == {
        "npx": {
            "command": cmd,
            "args": ["/d", "/c", "call", "npx", "-y", "@scope/files", "C:\\data"],
            "env": {"API_URL": "u", "B": "2", "WSLENV": "API_URL:B"},
        },
        "node": {"command": str(node / "node.exe"), "args": ["C:\\s.js"], "cwd": str(windows.drives / "c" / "srv")},
        "exe": {"command": str(windows.drives / "c" / "srv" / "s.exe")},
        "full": {"command": cmd, "args": ["/d", "/c", "call", "C:\\Program Files\\nodejs\\npx.cmd", "x"]},
        "linux": {"command": "x", "args": [], "env": {"A": "b"}, "cwd": "/srv"},
        "debian": {
            "command": str(windows.drives / "c" / "Windows" / "System32" / "wsl.exe"),
            "args": ["-d", "Debian", "--exec", "x"],
        },
        "web": {"url": "http://localhost:3000/mcp"},
    }
    why = {name: server["notes"] for name, server in found.items() if server["outcome"] == "kept"}
    assert {name: notes[0].split(":")[0] for name, notes in why.items()} == {
        "sly": "command",
        "quoted": "args",
        "gone": "command",
        "relative": "cwd",
    }
    assert "uvx is not found on Windows" in why["gone"][0] and "cmd.exe" in why["sly"][0]


def test_an_entry_of_wsl_exe_keeps_its_user_and_the_variables_that_it_handed_on(
    windows: FakeWindows, home: Path
) -> None:
    here = ["-d", DISTRIBUTION, "-e", "x"]
    servers = {
        "root": {"command": "wsl.exe", "args": ["-u", "root", *here]},
        "handed": {"command": "wsl.exe", "args": here, "env": {"A": "1", "B": "2", "C": "3", "WSLENV": "A/u:C/w:D"}},
        "path": {"command": "wsl.exe", "args": here, "env": {"P": "C:\\x", "WSLENV": "P/p"}},
    }
    written(windows.profile / DESKTOP, json.dumps({"mcpServers": servers}))
    wsl = str(windows.drives / "c" / "Windows" / "System32" / "wsl.exe")

    found = imported("claude-desktop")

    assert ours(home) == {
        "root": {"command": wsl, "args": ["-u", "root", *here]},
        "handed": {"command": "x", "args": [], "env": {"A": "1"}},
    }
    assert "write them as Linux does" in found["path"]["notes"][0]


def test_a_secret_of_a_server_on_windows_is_stored_and_only_named(windows: FakeWindows, home: Path) -> None:
    token = "ghp_canarycanarycanary12345"
    servers = {"gh": {"command": "wsl.exe", "args": ["-d", "Debian", "-e", "x"], "env": {"GITHUB_TOKEN": token}}}
    written(windows.profile / DESKTOP, json.dumps({"mcpServers": servers}))

    imported("claude-desktop", "--secrets", "move")

    env = ours(home)["gh"]["env"]
    assert token not in json.dumps(env) and env["WSLENV"] == "GITHUB_TOKEN"


def test_servers_of_windows_move_behind_us_and_come_back(windows: FakeWindows, home: Path) -> None:
    written(windows.drives / "c" / "a.exe", "x")
    file = written(windows.profile / DESKTOP, AS_WRITTEN_ON_WINDOWS)
    done("import", "claude-desktop", "--move")
    moved = entry_in(file)
    done("eject", "claude-desktop@windows")

    assert moved["command"] == WSL and ours(home)["a"] == {"command": str(windows.drives / "c" / "a.exe")}
    assert file.read_bytes() == AS_WRITTEN_ON_WINDOWS


def test_what_a_host_on_windows_refers_to_is_spelled_as_there(windows: FakeWindows, home: Path) -> None:
    written(windows.drives / "c" / "a.exe", "x")
    values = written(windows.profile / ".env", "KEY=v\n")
    entry = {"command": "C:\\a.exe", "args": ["${userHome}${/}x"], "envFile": r"C:\Users\Ada L\.env"}
    written(windows.profile / ".cursor" / "mcp.json", json.dumps({"mcpServers": {"a": entry}}))

    imported("cursor@windows")

    assert values.is_file()
    assert ours(home)["a"]["args"] == ["C:\\Users\\Ada L\\x"]
    assert ours(home)["a"]["env"] == {"KEY": "v", "WSLENV": "KEY"}


def test_a_drive_of_windows_that_refuses_chmod_is_written_all_the_same(
    windows: FakeWindows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `metadata` in wsl.conf every file has the same mode, and chmod fails."""
    file = written(windows.profile / DESKTOP, "{}")
    file.chmod(0o600)

    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chmod", refused)
    monkeypatch.setattr(Path, "chmod", refused)
    done("install", "claude-desktop")
    done("install", "cursor")

    assert entry_in(file)["command"] == WSL
    assert entry_in(windows.profile / ".cursor" / "mcp.json")["command"] == WSL


def test_print_shows_the_entry_for_a_host_on_windows(windows: FakeWindows, home: Path) -> None:
    shown = json.loads(done("install", "--print", "jetbrains", "--json"))

    assert shown["host"] == "jetbrains@windows" and shown["file"] is None
    assert shown["entry"]["command"] == WSL
    assert platform.IN_WSL
