"""A Claude Code settings file that the user names, through the running whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.cli.flags import settings_from
from goat_mcp.embed import open_tools
from goat_mcp.settings.settings import BrokenSettings
from tests.calls.hooks.programs import script
from tests.cli.test_flags import NOTHING

pytestmark = pytest.mark.anyio


def settings_file(folder: Path, *handlers: dict[str, Any], event: str = "PreToolUse") -> Path:
    file = folder / "settings.json"
    hooks = [{"type": "command", **handler} for handler in handlers]
    file.write_text(json.dumps({"hooks": {event: [{"hooks": hooks}]}}))
    return file


def opened(tmp_path: Path, file: Path, **settings: Any) -> Any:
    (tmp_path / "my ws").mkdir(exist_ok=True)
    (tmp_path / "my ws" / "a.txt").write_text("hay\n")
    tree = {"workspace": [str(tmp_path / "my ws")], "claude_settings": [str(file)], **settings}
    return open_tools(tree, state_directory=tmp_path / "state")


async def test_a_command_line_is_run_by_a_shell_in_the_project_and_argument_lists_are_not(tmp_path: Path) -> None:
    """R-HOOK-1."""
    guard = script(tmp_path, "guard", f'pwd > "{tmp_path}/args"; printf "%s\\n" "$@" >> "{tmp_path}/args"')
    shell = f'cat | tee "{tmp_path}/piped" >/dev/null; echo "$CLAUDE_PROJECT_DIR" > "{tmp_path}/project"'
    file = settings_file(
        tmp_path,
        {"command": shell},
        {"command": "/bin/sh", "args": [str(guard.path), "$(id) '", "${CLAUDE_PROJECT_DIR}/x"]},
    )

    async with opened(tmp_path, file) as tools:
        result = await tools.call("Read", {"file_path": str(tmp_path / "my ws" / "a.txt")})

    project = str(tmp_path / "my ws")
    assert result.text == "1\thay"
    assert json.loads((tmp_path / "piped").read_text())["tool_name"] == "Read"
    assert (tmp_path / "project").read_text().strip() == project
    assert (tmp_path / "args").read_text().splitlines() == [project, "$(id) '", f"{project}/x"]


async def test_ours_run_before_those_of_the_file(tmp_path: Path) -> None:
    """R-HOOK-3."""
    ours = script(tmp_path, "ours", "echo ours >&2; exit 2")
    theirs = script(tmp_path, "theirs", "echo theirs >&2; exit 2")
    file = settings_file(tmp_path, {"command": f"sh {theirs.path}"})
    hooks = {"PreToolUse": [{"hooks": [{"command": list(ours.argv)}]}]}

    async with opened(tmp_path, file, hooks=hooks) as tools:
        result = await tools.call("Read", {"file_path": str(tmp_path / "my ws" / "a.txt")})

    assert (result.text.splitlines()[0], theirs.inputs) == ("ours", [])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", ":1: not valid JSON"),
        ({"hooks": {"PreToolUse": [{"hooks": [{"type": "command"}]}]}}, ":1: a hook of type"),
    ],
)
async def test_a_broken_file_stops_the_start(tmp_path: Path, content: Any, said: str) -> None:
    file = tmp_path / "settings.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))

    with pytest.raises(BrokenSettings) as stopped:
        async with opened(tmp_path, file):
            pass

    assert f"{file}{said}" in stopped.value.message


async def test_a_broken_if_in_the_file_stops_the_start_with_its_line(tmp_path: Path) -> None:
    file = settings_file(tmp_path, {"command": "true", "if": "Bash(("})

    with pytest.raises(BrokenSettings, match=r"settings\.json:1: if: "):
        async with opened(tmp_path, file):
            pass


async def test_rules_and_notes_of_the_file_are_at_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"permissions": {"deny": ["WebSearch", "Skill"]}}')

    async with opened(tmp_path, file) as tools:
        (settings,) = tools.gateway.user_code.claude_files
        tools.gateway.diagnostics.log()

    assert [(rule.text, rule.origin) for rule in settings.deny] == [("WebSearch", f"{file}:1")]
    assert "there is no tool Skill here" in capsys.readouterr().err


async def test_the_log_says_what_a_failing_hook_of_the_file_means(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R-HOOK-2: status says so."""
    file = settings_file(tmp_path, {"command": "false"}, {"command": "false", "onFailure": "block"})

    async with opened(tmp_path, file) as tools:
        tools.gateway.diagnostics.log()

    assert f"{file}: 1 hooks keep Claude Code's meaning: one that fails lets the call go on" in capsys.readouterr().err


def test_the_flag_names_files(tmp_path: Path) -> None:
    flags: dict[str, Any] = {**NOTHING, "claude_settings": ("a.json", "b.json")}

    settings = settings_from(**flags)

    assert settings.claude_settings == (Path("a.json"), Path("b.json"))


async def test_exit_code_2_refuses_whatever_a_hook_of_the_file_prints(tmp_path: Path) -> None:
    """R-HOOK-2."""
    file = settings_file(tmp_path, {"command": "yes | head -c 3000000; echo no >&2; exit 2"})

    async with opened(tmp_path, file) as tools:
        result = await tools.call("Read", {"file_path": str(tmp_path / "my ws" / "a.txt")})

    assert result.error_code == "E_HOOK_DENIED" and "no" in result.text
