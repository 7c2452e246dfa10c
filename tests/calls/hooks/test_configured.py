"""Hooks as a user configures them: our own settings, broken ones, and the session around calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.calls.hooks import Hooks, PreToolUse
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.core.rights import Rights
from goat_mcp.core.spec import ToolSpec
from goat_mcp.embed import EmbeddedTools, open_tools
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.settings import BrokenSettings, Settings, settings_of
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.telemetry import Telemetry
from tests.calls.hooks.programs import Script, saying, script, specific
from tests.tool_doubles import fake

pytestmark = pytest.mark.anyio


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "a.txt").write_text("hay\n")
    return folder


def group(*scripts: Script, matcher: str = "", **options: Any) -> list[dict[str, Any]]:
    hooks = [{"type": "command", "command": list(one.argv), **options} for one in scripts]
    return [{"matcher": matcher, "hooks": hooks}]


def opened(workspace: Path, hooks: Mapping[str, Any], functions: Hooks | None = None, **settings: Any) -> Any:
    tree = {"workspace": [str(workspace)], "hooks": hooks, **settings}
    return open_tools(tree, state_directory=workspace.parent / "state", hooks=functions)


async def read(tools: EmbeddedTools, path: Path) -> ToolResult:
    return await tools.call("Read", {"file_path": str(path)})


async def test_a_hook_that_guards_nothing_is_logged_once_a_client_has_its_list(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[tuple[str, dict[str, Any]]] = []
    is_told = anyio.Event()

    def warning(self: Telemetry, event: str, **facts: Any) -> None:
        heard.append((event, facts))
        is_told.set()

    monkeypatch.setattr(Telemetry, "warning", warning)
    monkeypatch.setattr("goat_mcp.gateway.gateway.LOAD_TOOLS_AFTER_S", 0)
    tree = {"workspace": [workspace], "hooks": {"PreToolUse": group(script(workspace.parent, "pre"), matcher="Wriet")}}
    state = StateDirectory(workspace.parent / "state")
    gateway = Gateway(Settings.model_validate(tree), approval=Approval.HOST, state=state)

    async with gateway.running():
        before = list(heard)
        gateway.first_list.set()
        with anyio.fail_after(60):
            await is_told.wait()

    problem = "its matcher names Wriet, which is no tool; did you mean Write?"
    assert (before, heard) == ([], [("hook", {"hook": "hooks.PreToolUse.0.hooks.0", "problem": problem})])


async def test_hooks_of_the_settings_run_with_the_facts_of_the_session(workspace: Path) -> None:
    pre = script(workspace.parent, "pre")
    post = script(workspace.parent, "post", f'pwd > "{workspace.parent}/where"')
    hooks = {"PreToolUse": group(pre, matcher="FileRead|Write"), "PostToolUse": group(post)}

    async with opened(workspace, hooks, mode="acceptEdits") as tools:
        result = await read(tools, workspace / "a.txt")

    assert result.text == "1\thay"
    assert pre.inputs[0] | {"session_id": "", "tool_use_id": ""} == {
        "session_id": "",
        "transcript_path": "",
        "cwd": str(workspace),
        "permission_mode": "acceptEdits",
        "hook_event_name": "PreToolUse",
        "tool_name": "Read",
        "tool_input": {"file_path": str(workspace / "a.txt")},
        "tool_use_id": "",
    }
    assert pre.inputs[0]["tool_use_id"] == post.inputs[0]["tool_use_id"]
    assert (workspace.parent / "where").read_text().strip() == str(workspace)


async def test_the_hook_of_one_call_judges_built_in_and_upstream_tools_alike(workspace: Path) -> None:
    """AGG-1."""
    guard = script(workspace.parent, "guard", "echo no >&2; exit 2")

    async with opened(workspace, {"PreToolUse": group(guard, matcher="Read|mcp__x")}) as tools:
        tools.gateway.registry.replace_source("upstream:x", [fake("mcp__x__y")])
        results = [await tools.call(name, {"file_path": str(workspace / "a.txt")}) for name in ("Read", "mcp__x__y")]

    assert [result.error_code for result in results] == ["E_HOOK_DENIED"] * 2


BROKEN: list[tuple[Any, str]] = [
    ({"PreToolUse": [{"hooks": [{"command": "check.sh --all"}]}]}, "no shell runs it"),
    ({"PreToolUse": [{"hooks": [{"command": []}]}]}, "hooks.PreToolUse.0.hooks.0.command"),
    ({"PreToolUse": [{"hooks": [{"command": ["./check.sh"]}]}]}, "write the absolute path"),
    ({"PreToolUse": [{"hooks": [{"command": ["~/check.sh"]}]}]}, "write the absolute path"),
    ({"PreToolUse": [{"hooks": [{"type": "prompt", "command": ["x"]}]}]}, "hooks.PreToolUse.0.hooks.0.type"),
    ({"PreToolUse": [{"hooks": [{"command": ["x"], "timeout": 0}]}]}, "more than 0"),
    ({"PreToolUse": [{"hooks": [{"command": ["x"], "timout": 5}]}]}, "timout: no such setting"),
    ({"PreToolUse": [{"matcher": "(", "hooks": [{"command": ["x"]}]}]}, "is no regular expression"),
    (
        {"PreToolUse": [{"hooks": [{"command": ["x"], "if": "Bsah"}]}]},
        "hooks.PreToolUse.0.hooks.0: if: rule 'Bsah'",
    ),
    ({"SessionEnd": [{"hooks": [{"command": ["x"], "if": "Bash"}]}]}, "SessionEnd is about no tool call"),
    ({"PreTooUse": []}, "did you mean hooks.PreToolUse?"),
]


@pytest.mark.parametrize(("hooks", "said"), BROKEN)
async def test_a_broken_hook_stops_the_start_and_says_where(workspace: Path, hooks: Any, said: str) -> None:
    """R-PERM-7."""
    with pytest.raises(BrokenSettings) as stopped:
        async with opened(workspace, hooks):
            pass

    assert said in stopped.value.message


def test_hooks_come_from_a_file_or_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"command": ["check"], "if": "Bash", "observe": True}]}]}
    file = tmp_path / "goat-mcp.yaml"
    file.write_text(json.dumps({"hooks": tree}))
    from_file = load_settings({}, config_file=file).hooks
    monkeypatch.setenv("GOAT_MCP_HOOKS", json.dumps(tree))

    assert load_settings({}).hooks == from_file
    assert from_file.PreToolUse[0].hooks[0].condition == "Bash"


async def test_config_shows_hooks_and_never_changes_them(workspace: Path) -> None:
    """R-PERM-6."""
    hooks = {"PreToolUse": [{"matcher": "Write", "hooks": [{"command": ["/bin/true"], "if": "Write"}]}]}

    async with opened(workspace, hooks) as tools:
        shown = await tools.call("Config", {"setting": "hooks.PreToolUse"})
        changed = await tools.call("Config", {"setting": "hooks.PreToolUse", "value": []})

    assert "/bin/true" in shown.text
    assert changed.is_error


async def test_functions_of_an_embedder_run_before_the_programs(workspace: Path) -> None:
    guard = script(workspace.parent, "guard")

    async def elsewhere(spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> PreToolUse:
        return PreToolUse(arguments={"file_path": str(workspace / "a.txt")})

    async with opened(workspace, {"PreToolUse": group(guard)}, Hooks(before=(elsewhere,))) as tools:
        result = await read(tools, workspace / "b.txt")

    assert result.text == "1\thay"
    assert guard.inputs[0]["tool_input"] == {"file_path": str(workspace / "a.txt")}


async def test_a_session_begins_with_its_first_call_and_ends_with_the_process(workspace: Path) -> None:
    start = saying(workspace.parent, "start", specific("SessionStart", additionalContext="The branch is main."))
    plain = script(workspace.parent, "plain", "echo Two issues are open.")
    end = script(workspace.parent, "end")
    hooks = {"SessionStart": group(start, plain, matcher="startup"), "SessionEnd": group(end)}

    async with opened(workspace, hooks) as tools:
        assert start.inputs == []
        results: list[ToolResult] = []

        async def one() -> None:
            results.append(await read(tools, workspace / "a.txt"))

        async with anyio.create_task_group() as both:
            both.start_soon(one)
            both.start_soon(one)
        assert end.inputs == []

    assert sorted(result.text for result in results) == ["1\thay", "1\thay\nThe branch is main.\nTwo issues are open."]
    assert [(one["hook_event_name"], one["source"]) for one in start.inputs] == [("SessionStart", "startup")]
    assert [(one["hook_event_name"], one["reason"]) for one in end.inputs] == [("SessionEnd", "other")]
    assert start.inputs[0]["session_id"] == end.inputs[0]["session_id"]


async def test_a_session_whose_hooks_fail_begins_and_ends_all_the_same(workspace: Path) -> None:
    broken = script(workspace.parent, "broken", "exit 1")
    endless = script(workspace.parent, "endless", "sleep 300")

    with anyio.fail_after(28):  # a hook of a call has 30 s
        async with opened(workspace, {"SessionStart": group(broken), "SessionEnd": group(endless)}) as tools:
            result = await read(tools, workspace / "a.txt")

    assert result.text == "1\thay"
    assert (len(broken.inputs), len(endless.inputs)) == (1, 1)


async def test_neither_an_agent_nor_a_connection_without_sessions_begins_one(workspace: Path, tmp_path: Path) -> None:
    start = script(workspace.parent, "start")
    tree = {"workspace": [str(workspace)], "hooks": {"SessionStart": group(start)}}
    gateway = Gateway(settings_of(tree, "test"), approval=Approval.ELICIT, state=StateDirectory(tmp_path / "s"))

    async with gateway.running():
        for ctx in (
            ToolContext(call_id="c", session_key="principal:me:client"),
            ToolContext(call_id="c", session_key="agent:1", rights=Rights(depth=1, client_session="stdio")),
        ):
            await gateway.call("Read", {"file_path": str(workspace / "a.txt")}, ctx)

    assert start.inputs == []


@pytest.mark.parametrize("asked", ["@a.txt", "{ws}//a.txt", "{ws}/sub/../a.txt"])
async def test_a_hook_sees_one_spelling_of_a_path_however_it_is_written(workspace: Path, asked: str) -> None:
    (workspace / "sub").mkdir()
    guard = script(workspace.parent, "guard")

    async with opened(workspace, {"PreToolUse": group(guard)}) as tools:
        result = await tools.call("Read", {"file_path": asked.format(ws=workspace)})

    assert result.text == "1\thay"
    assert guard.inputs[0]["tool_input"] == {"file_path": str(workspace / "a.txt")}


@pytest.mark.parametrize(
    ("condition", "command", "runs"),
    [
        ("Bash(git *)", "git status", True),
        ("Bash(git *)", "npm test && git push", True),
        ("Bash(git *)", "echo git", False),
        ("Bash(rm *)", "echo $(rm -rf x)", True),
        ("Bash(git *)", "echo 'unclosed", True),
        ("Edit(src/**)", "ls", False),
    ],
)
async def test_an_if_is_about_the_parts_of_a_command_and_doubt_runs_the_hook(
    workspace: Path, condition: str, command: str, runs: bool
) -> None:
    guard = script(workspace.parent, "guard", "exit 2")
    hooks = {"PreToolUse": group(guard, **{"if": condition})}

    async with opened(workspace, hooks, mode="bypassPermissions") as tools:
        await tools.call("Bash", {"command": command})

    assert len(guard.inputs) == runs
