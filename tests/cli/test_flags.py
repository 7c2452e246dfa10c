"""What the flags that commands share make of the settings, and of the catalog."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.cli.flags import settings_from
from goat_mcp.core.spec import DEFAULT_TOOLSETS
from goat_mcp.settings.settings import BrokenSettings, Settings
from tests.cli.test_call import run

NOTHING: dict[str, Any] = {
    **dict.fromkeys(
        ("workspace", "upstreams", "claude_settings", "toolset", "preset", "only", "disallowed_tool", "allowed_tool"),
        (),
    ),
    "config": None,
    "mode": None,
    "overrides": (),
}


@pytest.fixture(autouse=True)
def nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def settings(**flags: Any) -> Settings:
    return settings_from(**{**NOTHING, **flags})


def config(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    return file


def test_presets_and_tools_select_together() -> None:
    assert settings(preset=("core",), only=("WebFetch",)).catalog.allow == ("preset:core", "WebFetch")


def test_a_toolset_that_is_added_to_a_selection_is_part_of_it() -> None:
    catalog = settings(preset=("core",), toolset=("teams",)).catalog

    assert catalog.allow == ("preset:core", "toolset:teams")
    assert "teams" in catalog.toolsets
    assert settings(toolset=("teams",)).catalog.allow is None


@pytest.mark.parametrize("named", ["[goa]", "goa"])
def test_an_optional_toolset_of_the_file_is_on_beside_the_default_ones_as_with_the_flag(
    tmp_path: Path, named: str
) -> None:
    file = config(tmp_path, f"catalog: {{toolsets: {named}}}\n")

    assert settings(config=file).catalog.toolsets == (*DEFAULT_TOOLSETS, "goa")
    assert settings(config=file).catalog.toolsets == settings(toolset=("goa",)).catalog.toolsets
    assert settings(config=file, toolset=("base",)).catalog.toolsets == (*DEFAULT_TOOLSETS, "goa", "base")


def test_a_list_of_toolsets_with_a_default_one_is_the_whole_list_and_the_flag_adds_to_it(tmp_path: Path) -> None:
    file = config(tmp_path, "catalog: {toolsets: [core, goa]}\n")

    assert settings(config=file).catalog.toolsets == ("core", "goa")
    assert settings(config=file, toolset=("base",)).catalog.toolsets == ("core", "goa", "base")


def test_a_selection_takes_the_place_of_the_files(tmp_path: Path) -> None:
    file = config(tmp_path, "catalog: {allow: [Bash], presets: {mine: [Read]}}\n")

    assert settings(config=file, preset=("mine",)).catalog.allow == ("preset:mine",)
    assert settings(config=file).catalog.allow == ("Bash",)


@pytest.mark.parametrize("denied", ["[Bash]", "Bash"])
def test_what_the_file_denies_stays_denied_where_a_flag_denies_more(tmp_path: Path, denied: str) -> None:
    file = config(tmp_path, f"catalog: {{deny: {denied}}}\n")
    assert settings(config=file, disallowed_tool=("WebFetch",)).catalog.deny == ("Bash", "WebFetch")


def test_an_allowed_tool_is_one_more_rule(tmp_path: Path) -> None:
    file = config(tmp_path, "permissions: {allow: [Write], deny: [Bash]}\n")

    permissions = settings(config=file, allowed_tool=("FileEdit", "mcp__github")).permissions

    assert (permissions.allow, permissions.deny) == (("Write", "FileEdit", "mcp__github"), ("Bash",))


def test_a_list_that_is_broken_already_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(BrokenSettings, match="catalog"):
        settings(config=config(tmp_path, "catalog: 5\n"), disallowed_tool=("Bash",))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.txt").write_text("a\n")
    return tmp_path


def listed(folder: Path, *words: str) -> list[str]:
    done = run("list", "--json", "--workspace", str(folder / "ws"), *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return [tool["name"] for tool in json.loads(done.stdout)["tools"]]


@pytest.mark.e2e
def test_the_flags_select_what_is_listed_and_exported(folder: Path) -> None:
    words = ("--preset", "core", "--tool", "TaskStop", "--disallowed-tool", "bash")

    exported = run("export", "openai", "--workspace", str(folder / "ws"), *words, cwd=folder)

    expected = ["Read", "Write", "Edit", "Glob", "Grep", "TaskStop"]
    assert listed(folder, *words) == expected
    assert [made["function"]["name"] for made in json.loads(exported.stdout)] == expected


@pytest.mark.e2e
def test_the_flags_decide_what_a_call_may_do(folder: Path) -> None:
    write = ("call", "Write", "--workspace", str(folder / "ws"), f"file_path={folder}/ws/new.txt", "content=x")

    hidden = run(*write, "--preset", "read_only", "--allowed-tool", "Write", cwd=folder)
    asked = run(*write, cwd=folder)
    allowed = run(*write, "--allowed-tool", "FileWrite", cwd=folder)

    assert (hidden.returncode, "[E_TOOL_NOT_IN_CATALOG]" in hidden.stdout) == (5, True)
    assert (asked.returncode, "[E_APPROVAL_PENDING]" in asked.stdout) == (5, True)
    assert (allowed.returncode, (folder / "ws" / "new.txt").read_text()) == (0, "x")


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("list", "--preset", "readonly"), "catalog.allow: 'readonly' is no preset; did you mean read_only?"),
        (("export", "openai", "--tool", "Raed"), "catalog.allow: 'Raed' names no tool; did you mean Read"),
        (("call", "Read", "--disallowed-tool", "Bsah"), "catalog.deny: 'Bsah' names no tool; did you mean Bash"),
        (("serve", "--allowed-tool", "Wriet"), "names no tool; did you mean Write?"),
    ],
    ids=["list", "export", "call", "serve"],
)
def test_a_name_nobody_knows_stops_every_command(folder: Path, words: tuple[str, ...], said: str) -> None:
    done = run(*words, "--workspace", str(folder / "ws"), cwd=folder)

    assert (done.returncode, said in done.stderr) == (1, True), done.stderr
