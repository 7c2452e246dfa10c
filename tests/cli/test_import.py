"""`goat-mcp import`, `eject`, `install`, `uninstall`: a user's servers move behind goat-mcp, and back. CFG-2."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.desktop import CLAUDE_DESKTOP, PROGRAMS
from tests.cli.terminal_runs import COLUMNS, run_on_terminal
from tests.cli.test_call import run
from tests.docs.test_documents import ROOT

pytestmark = pytest.mark.e2e

TOKEN = "ghp_canarycanarycanary12345"
WEATHER = json.dumps({"command": sys.executable, "args": [str(ROOT / "examples" / "weather_stdio.py")]})
DESKTOP = f"""\
{{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {{
    "weather": {WEATHER},
    "github": {{
      "command": "docker",
      "args": ["run", "-i", "--rm", "ghcr.io/github/github-mcp-server"],
      "env": {{ "GITHUB_PERSONAL_ACCESS_TOKEN": "{TOKEN}" }}
    }},
    "files": {{ "command": "npx", "args": ["-y", "@scope/files", "/data"], "note": "mine" }}
  }},
  "isUsingBuiltInNode": true
}}
"""


@pytest.fixture
def desktop(tmp_path: Path) -> Path:
    file = tmp_path / CLAUDE_DESKTOP
    file.parent.mkdir(parents=True)
    file.write_text(DESKTOP)
    file.chmod(0o644)
    return file


def ours(folder: Path) -> Path:
    return folder / ".config" / "goat-mcp" / "upstreams.json"


def done(*words: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    ended = run(*words, cwd=cwd, variables=variables)
    assert ended.returncode == 0, ended.stderr
    return ended


def outcomes(ended: subprocess.CompletedProcess[str]) -> dict[str, str]:
    (host,) = json.loads(ended.stdout)["hosts"]
    return {server["name"]: server["outcome"] for server in host["servers"]}


def table(ended: subprocess.CompletedProcess[str]) -> list[list[str]]:
    lines = ended.stdout.splitlines()
    return [line.split("\t") for line in lines[lines.index("server\thost\tresult\twhy\tnext") :]]


def written(file: Path, text: str | Mapping[str, Any]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text if isinstance(text, str) else json.dumps(text))
    return file


def test_one_command_moves_three_servers_and_the_catalog_shows_them(tmp_path: Path, desktop: Path) -> None:
    moved = done("import", "claude-desktop", "--move", cwd=tmp_path)
    listed = json.loads(done("list", "--json", cwd=tmp_path).stdout)
    entry = json.loads(desktop.read_text())

    assert [*json.loads(ours(tmp_path).read_text())["mcpServers"]] == ["weather", "github", "files"]
    assert (ours(tmp_path).stat().st_mode & 0o777, desktop.stat().st_mode & 0o777) == (0o600, 0o644)
    assert [*entry] == ["globalShortcut", "mcpServers", "isUsingBuiltInNode"]
    assert [*entry["mcpServers"]] == ["goat"] and entry["mcpServers"]["goat"]["args"][-1] == "serve"
    assert Path(entry["mcpServers"]["goat"]["command"]).is_absolute()
    assert entry["mcpServers"]["goat"]["env"] == {"GOAT_MCP_STATE_DIR": str(tmp_path / "state")}
    assert "mcp__weather__current_weather" in [tool["name"] for tool in listed["tools"]]
    assert {problem["name"] for problem in listed["problems"]} == {"github", "files"}
    assert "  files: note: not known here, left out\n" in moved.stdout
    assert table(moved) == [
        ["server", "host", "result", "why", "next"],
        ["weather", "claude-desktop", "imported", "", "goat-mcp list --server weather"],
        ["github", "claude-desktop", "imported", "", "goat-mcp import claude-desktop --secrets move"],
        ["files", "claude-desktop", "imported", "", "goat-mcp list --server files"],
    ]


def test_eject_puts_the_bytes_back(tmp_path: Path, desktop: Path) -> None:
    before = desktop.read_bytes()
    done("import", "claude-desktop", "--move", cwd=tmp_path)
    changed = desktop.read_bytes()

    shown = done("eject", "claude-desktop", "--dry-run", cwd=tmp_path)
    left = desktop.read_bytes()
    done("eject", "claude-desktop", cwd=tmp_path)
    again = run("eject", "claude-desktop", cwd=tmp_path)

    assert (left, desktop.read_bytes(), stat.S_IMODE(desktop.stat().st_mode)) == (changed, before, 0o644)
    assert changed != before and TOKEN not in shown.stdout
    assert again.returncode == 1 and "has not written claude-desktop's file" in again.stderr


def test_a_file_that_was_changed_since_is_left_alone_until_the_user_says(tmp_path: Path, desktop: Path) -> None:
    before = json.loads(desktop.read_text())
    done("import", "claude-desktop", "--move", cwd=tmp_path)
    tree = json.loads(desktop.read_text())
    tree["mcpServers"]["added"] = {"command": "later"}
    desktop.write_text(json.dumps({**tree, "globalShortcut": "F1"}))
    changed = desktop.read_bytes()

    refused = run("eject", "claude-desktop", cwd=tmp_path)
    left = desktop.read_bytes()
    kept = done("eject", "claude-desktop", "--keep-changes", cwd=tmp_path).stdout

    assert refused.returncode == 1 and "has been changed since" in refused.stderr and "--keep-changes" in refused.stderr
    assert left == changed
    changes = ["  server added was added", "  key globalShortcut was changed"]
    assert [line for line in refused.stderr.splitlines() if line.startswith("  ")] == changes
    assert [line for line in kept.splitlines() if line in changes] == changes
    assert "has its servers back" in kept and "is as it was" not in kept
    assert json.loads(desktop.read_text()) == {
        **before,
        "globalShortcut": "F1",
        "mcpServers": {**before["mcpServers"], "added": {"command": "later"}},
    }


def test_a_dry_run_shows_everything_and_writes_nothing(tmp_path: Path, desktop: Path) -> None:
    before = sorted(tmp_path.rglob("*"))

    shown = done("import", "claude-desktop", "--move", "--dry-run", cwd=tmp_path)

    assert sorted(tmp_path.rglob("*")) == before and desktop.read_text() == DESKTOP
    assert '+    "goat": {' in shown.stdout and "Nothing was written" in shown.stdout


def test_a_second_import_brings_nothing_and_changes_nothing(tmp_path: Path, desktop: Path) -> None:
    first = done("import", "--json", cwd=tmp_path)
    mine = ours(tmp_path).read_text().replace(TOKEN, "${secret:github}")
    ours(tmp_path).write_text(mine)

    second = done("import", "--json", cwd=tmp_path)

    assert set(outcomes(first).values()) == {"imported"} and set(outcomes(second).values()) == {"present"}
    assert ours(tmp_path).read_text() == mine


# R-SECRET-2
def test_no_notation_of_a_secret_is_shown_in_a_diff(tmp_path: Path) -> None:
    canaries = ['canary-one\\"111', "canary-two2222", "canary-three33", "canary-four444"]
    entry = (
        f'{{"command": "x", "args": ["--api-key", "{canaries[1]}"], "env": {{"A_TOKEN": "{canaries[0]}"}}}}'
        f', "b": {{"url": "https://h/mcp?token={canaries[2]}", "headers": {{"Authorization": "Bearer {canaries[3]}"}}}}'
    )
    written(tmp_path / ".cursor" / "mcp.json", f'{{"mcpServers": {{\n"a": {entry}\n}}}}')
    written(
        tmp_path / ".codex" / "config.toml",
        f"[mcp_servers.c]\ncommand = 'x'\n[mcp_servers.c.env]\nB_KEY = '{canaries[1]}'\n",
    )

    shown = [
        done("import", host, "--move", "--dry-run", *json, cwd=tmp_path).stdout
        for host in ("cursor", "codex")
        for json in ((), ("--json",))
    ]

    assert all("imported" in text for text in shown)
    assert not [canary for canary in ("canary-one", *canaries[1:]) for text in shown if canary in text]


# R-SECRET-2
def test_no_value_of_an_environment_or_header_is_shown_in_a_diff_whatever_its_name(tmp_path: Path) -> None:
    canaries = [f"canary{number}" for number in range(5)]
    written(
        tmp_path / ".cursor" / "mcp.json",
        f"""{{"mcpServers": {{
  "a": {{"command": "shown-a", "env": {{  // don't show
    "K": "{canaries[0]}", "L": "${{env:SHOWN_L}}",
    "M": "{canaries[1]}"}}}},
  "b": {{"url": "https://shown.b/mcp", "headers": {{"X-Who": "{canaries[2]}"}}}}
}}}}""",
    )
    written(
        tmp_path / ".codex" / "config.toml",
        f"""[mcp_servers.c]
command = "shown-c"
[mcp_servers.c.env]
K = "{canaries[3]}"
[mcp_servers.d]
command = "shown-d"
env = {{ K = "{canaries[4]}" }}
""",
    )
    shown = "".join(
        done("import", host, "--move", "--dry-run", *json, cwd=tmp_path).stdout
        for host in ("cursor", "codex")
        for json in ((), ("--json",))
    )

    assert [canary for canary in canaries if canary in shown] == []
    plain = ("shown-a", "SHOWN_L", "https://shown.b/mcp", "shown-c", "shown-d")
    assert [text for text in plain if text not in shown] == []


# R-SECRET-1, R-SECRET-2
@pytest.mark.parametrize("words", [(), ("--json",)], ids=["text", "json"])
def test_a_secret_is_taken_over_and_shown_nowhere(tmp_path: Path, desktop: Path, words: tuple[str, ...]) -> None:
    moved = done("import", "claude-desktop", "--move", *words, cwd=tmp_path)
    back = done("eject", *words, cwd=tmp_path)

    assert TOKEN in ours(tmp_path).read_text()
    assert "goat-mcp import claude-desktop --secrets move" in moved.stdout
    assert not any(TOKEN in text for ended in (moved, back) for text in (ended.stdout, ended.stderr))


def test_a_broken_file_is_refused_with_its_place_and_nothing_is_written(tmp_path: Path, desktop: Path) -> None:
    desktop.write_text('{"mcpServers": {"a": {"command": "x"},}}')

    ended = run("import", "claude-desktop", "--move", cwd=tmp_path)

    assert ended.returncode == 1 and "line 1, column" in ended.stderr and "Nothing was changed" in ended.stderr
    assert not ours(tmp_path).exists() and not (tmp_path / "state").exists()


def test_a_command_that_a_model_runs_changes_no_servers(tmp_path: Path, desktop: Path) -> None:
    for words in (
        ("import",),
        ("import", "claude-desktop", "--move"),
        ("eject",),
        ("install", "codex"),
        ("uninstall", "codex"),
    ):
        ended = run(*words, cwd=tmp_path, variables={"GOAT_MCP_CALL": "guard.call"})
        assert ended.returncode == 1 and "a command that a model runs cannot change" in ended.stderr

    assert desktop.read_text() == DESKTOP and not ours(tmp_path).exists()


HOST_FILES = {
    "claude-code": (".claude.json", "mcpServers"),
    "cursor": (".cursor/mcp.json", "mcpServers"),
    "vscode": (f"{PROGRAMS}/Code/User/mcp.json", "servers"),
    "gemini": (".gemini/settings.json", "mcpServers"),
    "windsurf": (".codeium/windsurf/mcp_config.json", "mcpServers"),
    "zed": (".config/zed/settings.json", "context_servers"),
}


@pytest.mark.parametrize("host", HOST_FILES)
def test_installing_adds_one_entry_and_uninstalling_restores_the_bytes(tmp_path: Path, host: str) -> None:
    name, root = HOST_FILES[host]
    file = written(tmp_path / name, f'{{"a": [1, 2],\n  "{root}": {{\n    "x": {{"command": "y"}}\n  }}\n}}')
    before = file.read_bytes()

    done("install", host, cwd=tmp_path)
    entries = json.loads(file.read_text())[root]
    again = done("install", host, "--json", cwd=tmp_path)
    done("uninstall", host, cwd=tmp_path)

    assert [*entries] == ["x", "goat"] and entries["x"] == {"command": "y"}
    assert json.loads(again.stdout)["changed"] is False
    assert file.read_bytes() == before


def test_where_there_was_no_file_there_is_none_after_uninstalling(tmp_path: Path) -> None:
    file = tmp_path / ".codex" / "config.toml"

    done("install", "codex", cwd=tmp_path)
    text = file.read_text()
    done("uninstall", "codex", cwd=tmp_path)

    assert text.startswith("[mcp_servers.goat]\ncommand = ") and not file.exists()


def test_a_host_that_has_no_file_is_told_with_its_dialog(tmp_path: Path) -> None:
    ended = run("import", "jetbrains", cwd=tmp_path)

    assert ended.returncode == 1 and "JetBrains AI Assistant has no file" in ended.stderr
    assert "Settings | Tools | AI Assistant" in ended.stderr and "install --print jetbrains" in ended.stderr


def test_a_host_nobody_knows_is_told_with_the_nearest(tmp_path: Path) -> None:
    ended = run("import", "cluade-desktop", cwd=tmp_path)

    assert ended.returncode == 1 and "did you mean claude-desktop" in ended.stderr


def test_where_settings_name_other_upstreams_nothing_is_moved(tmp_path: Path, desktop: Path) -> None:
    written(tmp_path / ".config" / "goat-mcp" / "goat-mcp.yaml", "upstreams: [others.json]\n")

    ended = run("import", "claude-desktop", "--move", cwd=tmp_path)

    assert ended.returncode == 1 and "names its own upstreams" in ended.stderr
    assert desktop.read_text() == DESKTOP and not ours(tmp_path).exists()


BROKEN = {
    "no object": "[1]",
    "a number of too many digits": '{"mcpServers": {"x": {"command": "y", "timeout": %s}}}' % ("9" * 5000),
    "a folder": None,
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=list(BROKEN))
def test_a_broken_file_of_one_host_leaves_the_others(tmp_path: Path, desktop: Path, content: str | None) -> None:
    """CFG-2, ISO-1: where no host is named, that one is told; where it is named, it is an error and no traceback."""
    cursor = tmp_path / ".cursor" / "mcp.json"
    cursor.parent.mkdir()
    if content is None:
        cursor.mkdir()
    else:
        cursor.write_text(content)

    every = done("import", "--json", "--dry-run", cwd=tmp_path)
    named = run("import", "cursor", cwd=tmp_path)

    assert outcomes(every)["weather"] == "imported"
    (told,) = json.loads(every.stdout)["broken"]
    assert str(cursor) in told
    assert str(cursor) in every.stderr or every.stderr == ""
    assert named.returncode == 1
    assert str(cursor) in named.stderr
    assert "Traceback" not in named.stderr


def test_of_a_host_whose_switches_are_not_in_its_file_that_is_told(tmp_path: Path) -> None:
    """CFG-2"""
    written(tmp_path / ".cursor" / "mcp.json", {"mcpServers": {"a": {"command": "x"}}})
    unseen = "what is switched off in Cursor's window is not in this file"

    shown = done("import", "cursor", "--dry-run", cwd=tmp_path)
    (host,) = json.loads(done("import", "cursor", "--dry-run", "--json", cwd=tmp_path).stdout)["hosts"]

    assert f"  {unseen}: look at what came\n" in shown.stdout and host["unseen"] == unseen


def test_settings_that_decide_over_one_hosts_servers_and_cannot_be_read_leave_the_other_hosts(
    tmp_path: Path, desktop: Path
) -> None:
    """CFG-2, ISO-1"""
    written(tmp_path / ".gemini" / "settings.json", {"mcpServers": {"a": {"command": "x"}}})
    written(tmp_path / ".gemini" / "mcp-server-enablement.json", "{")

    every = done("import", "--json", "--dry-run", cwd=tmp_path)

    assert outcomes(every)["weather"] == "imported"
    assert ["mcp-server-enablement.json" in told for told in json.loads(every.stdout)["broken"]] == [True]


def test_a_named_host_that_cannot_be_read_is_skipped_if_it_is_one_of_several(tmp_path: Path, desktop: Path) -> None:
    """CFG-2, ISO-1"""
    file = written(tmp_path / ".cursor" / "mcp.json", '{"mcpServers": ')
    inline = written(tmp_path / ".codex" / "config.toml", 'mcp_servers = {a = {command = "x"}}\n')

    ended = run("import", "cursor", "claude-desktop", "codex", "--move", cwd=tmp_path)
    document = json.loads(run("import", "cursor", "claude-desktop", "--json", cwd=tmp_path).stdout)

    assert ended.returncode == 1
    assert [row[:3] for row in table(ended)[1:]] == [
        ["weather", "claude-desktop", "imported"],
        ["github", "claude-desktop", "imported"],
        ["files", "claude-desktop", "imported"],
        ["(its file)", "cursor", "skipped"],
        ["(its file)", "codex", "skipped"],
    ]
    assert "line 1, column" in table(ended)[4][3] and table(ended)[4][4] == "fix the file, then: goat-mcp import cursor"
    assert inline.read_text() == 'mcp_servers = {a = {command = "x"}}\n'
    assert [(one["host"], one["file"]) for one in document["skipped_files"]] == [("cursor", str(file))]


def test_what_is_skipped_has_its_reason_and_the_next_command(tmp_path: Path) -> None:
    entries = {
        "gone": {"url": "https://h/sse", "type": "sse"},
        "here": {"command": "x", "args": ["${workspaceFolder}"]},
        "goat": {"command": "goat-mcp"},
    }
    written(tmp_path / ".cursor" / "mcp.json", {"mcpServers": entries})

    rows = table(done("import", cwd=tmp_path))[1:]

    assert [row[:3] for row in rows] == [[name, "cursor", "skipped"] for name in entries]
    assert [row[4] for row in rows] == [
        "change the entry, then: goat-mcp import cursor",
        "goat-mcp import cursor --project DIR",
        "",
    ]
    assert rows[0][3].startswith("it speaks the retired HTTP+SSE transport") and rows[2][3] == "it is goat-mcp itself"


# R-SECRET-1, R-SECRET-2
@pytest.mark.parametrize("when", ["at once", "later"])
def test_secrets_are_moved_to_the_store_and_the_entry_has_a_reference(tmp_path: Path, desktop: Path, when: str) -> None:
    remote = {"url": "https://h/mcp", "headers": {"Authorization": f"Bearer {TOKEN}2", "X-Plain": "1"}}
    written(tmp_path / ".cursor" / "mcp.json", {"mcpServers": {"remote": remote}})
    if when == "later":
        done("import", "--secrets", "keep", cwd=tmp_path)

    ended = done("import", "--secrets", "move", "--json", cwd=tmp_path)
    entries = json.loads(ours(tmp_path).read_text())["mcpServers"]
    stored = json.loads(done("secret", "list", "--json", cwd=tmp_path).stdout)
    again = json.loads(done("import", "--secrets", "move", "--json", cwd=tmp_path).stdout)

    assert entries["github"]["env"] == {"GITHUB_PERSONAL_ACCESS_TOKEN": "${secret:github.GITHUB_PERSONAL_ACCESS_TOKEN}"}
    assert entries["remote"]["headers"] == {"Authorization": "Bearer ${secret:remote.Authorization}", "X-Plain": "1"}
    assert [one["name"] for one in stored] == ["github.GITHUB_PERSONAL_ACCESS_TOKEN", "remote.Authorization"]
    assert TOKEN not in ours(tmp_path).read_text() and TOKEN not in ended.stdout + ended.stderr
    assert not again["changed"]


@pytest.mark.parametrize(("typed", "is_stored"), [("yes\n", True), ("no\n", False)])
def test_on_a_terminal_storing_secrets_is_offered(tmp_path: Path, desktop: Path, typed: str, is_stored: bool) -> None:
    code, shown = run_on_terminal("import", "claude-desktop", cwd=tmp_path, typed=typed)

    assert code == 0 and "github (env.GITHUB_PERSONAL_ACCESS_TOKEN)" in shown and TOKEN not in shown
    assert (TOKEN not in ours(tmp_path).read_text()) is is_stored
    lines = shown[shown.index("\nserver ") :].splitlines()
    assert max(map(len, lines)) <= COLUMNS and lines[2].split()[:3] == ["weather", "claude-desktop", "imported"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--move",), "name the host"),
        (("curser",), "did you mean cursor?"),
        (("--from", "nowhere.json"), "there is no nowhere.json"),
    ],
)
def test_an_import_that_cannot_be_meant_is_refused_with_the_next_step(
    tmp_path: Path, words: tuple[str, ...], problem: str
) -> None:
    ended = run("import", *words, "--json", cwd=tmp_path)

    error = json.loads(ended.stderr)["error"]
    assert (ended.returncode, ended.stdout) == (1, "") and problem in error["message"] and error["suggestion"]


def test_the_next_command_for_a_server_that_its_host_had_switched_off_switches_it_on(tmp_path: Path) -> None:
    entry = {"command": "x", "disabled": True}
    written(tmp_path / ".cursor" / "mcp.json", {"mcpServers": {"a": entry}})

    (row,) = table(done("import", "cursor", cwd=tmp_path))[1:]
    done(*row[4].split()[1:], cwd=tmp_path)

    assert row[4] == "goat-mcp enable a"
    assert json.loads(ours(tmp_path).read_text())["mcpServers"]["a"].get("disabled") is not True


def test_an_install_after_a_move_is_one_with_it_to_put_back(tmp_path: Path, desktop: Path) -> None:
    before = desktop.read_bytes()
    moved = done("import", "claude-desktop", "--move", cwd=tmp_path).stdout
    done("install", "claude-desktop", "--workspace", "state", cwd=tmp_path)
    args = json.loads(desktop.read_text())["mcpServers"]["goat"]["args"]
    done("eject", "claude-desktop", cwd=tmp_path)

    assert "file tools will answer E_NO_WORKSPACE until you run: goat-mcp install claude-desktop" in moved
    assert args[-2:] == ["--workspace", str(tmp_path / "state")]
    assert desktop.read_bytes() == before
