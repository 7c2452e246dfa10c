"""Rules about Bash hold for every tool that runs commands: nobody gets round them by calling another one.

R-SHELL-1, R-SHELL-3, R-SHELL-5, R-SHELL-6, R-PERM-2, R-PERM-3.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.elicitation import Answer, Form, Reply
from tests.manifests.calling import Caller

pytestmark = pytest.mark.anyio

SSH = {"ssh_bash": {"hosts": {"far": {"address": "127.0.0.1", "port": 1}}}}
BY_OTHER_NAMES: list[Any] = [
    pytest.param("bash__exec", {"command": "rm kept.txt"}, id="exec"),
    pytest.param("bash__exec", {"command": "cd . && /bin/rm kept.txt"}, id="exec, by its path"),
    pytest.param("bash__exec", {"command": "sh -c 'rm kept.txt'"}, id="exec, in a shell"),
    pytest.param("bash__exec", {"command": "$(echo rm) kept.txt"}, id="exec, no literal name"),
    pytest.param("bg_exec__start", {"command": "rm", "args": ["kept.txt"]}, id="bg_exec"),
    pytest.param("bg_exec__start", {"command": "/bin/rm", "args": ["kept.txt"]}, id="bg_exec, by its path"),
    pytest.param("bg_exec__start", {"command": "env", "args": ["A=1", "rm", "kept.txt"]}, id="bg_exec, by env"),
    pytest.param("bg_exec__start", {"command": "bash", "args": ["-c", "rm kept.txt"]}, id="bg_exec, in a shell"),
    pytest.param("bg_exec__start", {"command": "xargs", "args": ["rm"], "stdin": "kept.txt"}, id="bg_exec, by xargs"),
    pytest.param("bg_exec__start", {"command": "bash", "stdin": "rm kept.txt"}, id="bg_exec, a shell and its stdin"),
    pytest.param("bg_exec__start", {"command": "env", "args": ["sh"], "stdin": "rm kept.txt"}, id="bg_exec, sh by env"),
    pytest.param("bash__script", {"path": "removes.sh"}, id="script of sh"),
    pytest.param("bash__script", {"path": "no_program.sh"}, id="script without #!"),
    pytest.param("bash__script", {"path": "@/by_env.sh"}, id="script of env bash"),
    pytest.param("bash__script", {"path": "link.sh"}, id="script behind a link"),
    pytest.param("bash__script", {"path": "its_program.txt", "args": ["kept.txt"]}, id="script run by rm itself"),
    pytest.param("bash__script", {"path": "long.sh"}, id="script too long to look into"),
    pytest.param("ssh_bash__exec", {"host": "far", "command": "rm kept.txt"}, id="ssh"),
    pytest.param("ssh_bash__exec", {"host": "far", "command": "sudo /bin/rm kept.txt"}, id="ssh, by sudo"),
    pytest.param("ssh_bash__exec", {"host": "far", "command": "$x kept.txt"}, id="ssh, no literal name"),
]


def caller(folder: Path, **settings: Any) -> Caller:
    made = Caller(folder, {"tools": SSH, **settings})
    project = made.project
    (project / "kept.txt").write_text("kept")
    (project / "removes.sh").write_text("#!/bin/sh\nif true; then\n  rm kept.txt\nfi\n")
    (project / "no_program.sh").write_text("rm kept.txt\n")
    (project / "by_env.sh").write_text("#!/usr/bin/env bash\n\\rm kept.txt\n")
    (project / "link.sh").symlink_to("removes.sh")
    (project / "its_program.txt").write_text("#!/bin/rm\n")
    (project / "long.sh").write_text("#!/bin/sh\n" + "# padding\n" * 2000 + "rm kept.txt\n")
    return made


@pytest.mark.parametrize(("tool", "arguments"), BY_OTHER_NAMES)
@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
async def test_a_deny_rule_about_a_command_holds_whatever_runs_it(
    tmp_path: Path, tool: str, arguments: dict[str, Any], mode: str
) -> None:
    one = caller(tmp_path, mode=mode, permissions={"deny": ["Bash(rm *)"], "allow": ["Bash", "ssh_bash__exec"]})

    result = await one.call(tool, **arguments)

    assert result.error_code == "E_PERMISSION", result.text
    assert (one.project / "kept.txt").read_text() == "kept"


@pytest.mark.parametrize(("tool", "arguments"), BY_OTHER_NAMES)
@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
async def test_f13_23_blocked_is_a_command_whatever_runs_it(
    tmp_path: Path, tool: str, arguments: dict[str, Any], mode: str
) -> None:
    one = caller(tmp_path, mode=mode, bash={"blocked": ["rm"]}, permissions={"allow": ["Bash", "ssh_bash__exec"]})

    result = await one.call(tool, **arguments)

    assert result.error_code == "E_BLOCKED", result.text
    assert "bash.blocked: rm" in result.text or "cannot be told" in result.text
    assert (one.project / "kept.txt").read_text() == "kept"


async def test_f13_23_blocked_is_said_of_what_the_list_refuses_and_of_no_rule(tmp_path: Path) -> None:
    one = caller(tmp_path, bash={"blocked": ["rm"]}, permissions={"deny": ["Bash(dd *)"]})

    codes = [(await one.call("Bash", command=text)).error_code for text in ("rm a", "nice rm a", "dd if=a", "$x")]

    assert codes == ["E_BLOCKED", "E_BLOCKED", "E_PERMISSION", "E_PERMISSION"]


@pytest.mark.parametrize(("tool", "arguments"), BY_OTHER_NAMES)
async def test_where_only_some_commands_may_run_no_tool_runs_another(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    one = caller(tmp_path, bash={"allowed": ["echo", "bash", "sh", "env", "cd"]})

    result = await one.call(tool, **arguments)

    assert result.error_code == "E_PERMISSION", result.text
    assert (one.project / "kept.txt").read_text() == "kept"


@pytest.mark.parametrize(("tool", "arguments"), BY_OTHER_NAMES)
async def test_a_person_is_asked_where_a_rule_asks_about_the_command(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    shown: list[str] = []

    async def refuses(form: Form) -> Answer:
        shown.append(form.message)
        return Answer(Reply.DECLINED)

    one = caller(tmp_path, mode="bypassPermissions", permissions={"ask": ["Bash(rm *)"]})
    one.ask = refuses

    result = await one.call(tool, **arguments)

    assert (result.error_code, len(shown)) == ("E_PERMISSION", 1), result.text
    assert (one.project / "kept.txt").exists()


@pytest.mark.parametrize(
    ("tool", "arguments"), [case for case in BY_OTHER_NAMES if "ssh" not in case.id], ids=lambda value: str(value)[:60]
)
async def test_a_tool_that_is_denied_whole_is_denied_under_its_other_names(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    one = caller(tmp_path, mode="bypassPermissions", permissions={"deny": ["Bash"]})

    result = await one.call(tool, **arguments)

    assert result.is_error, result.text
    assert (one.project / "kept.txt").exists()


async def test_an_allow_rule_about_local_commands_allows_none_on_another_machine(tmp_path: Path) -> None:
    settings = {"mode": "dontAsk", "permissions": {"allow": ["Bash(ls *)", "Bash(ls)", "Bash"]}}

    told = await caller(tmp_path, **settings).problem("ssh_bash__exec", host="far", command="ls")

    assert told.startswith("ssh_bash__exec is denied by mode dontAsk")


async def test_an_allow_rule_lets_a_script_run_but_not_what_a_deny_rule_finds_inside(tmp_path: Path) -> None:
    allow = [f"Bash(bash {tmp_path}/project/{name}.sh)" for name in ("fine", "no_program")]
    one = caller(tmp_path, mode="dontAsk", permissions={"allow": allow, "deny": ["Bash(rm *)"]})
    (one.project / "fine.sh").write_text("if true; then echo fine; fi\n")

    fine = await one.call("bash__script", path="fine.sh")
    denied = await one.call("bash__script", path="no_program.sh")

    assert not fine.is_error, fine.text
    assert denied.error_code == "E_PERMISSION"


async def test_a_file_that_may_not_be_read_is_no_script_to_run(tmp_path: Path) -> None:
    one = caller(tmp_path, permissions={"deny": ["Read(removes.sh)"]})

    assert (await one.call("bash__script", path="removes.sh")).error_code == "E_PERMISSION"
    assert (await one.call("bash__script", path="link.sh")).error_code == "E_PERMISSION"


@pytest.mark.parametrize("tool", ["bash__exec", "bash__script", "bg_exec__start", "ssh_bash__exec"])
async def test_plan_mode_runs_nothing(tmp_path: Path, tool: str) -> None:
    arguments: dict[str, Any] = {"path": "removes.sh"} if tool == "bash__script" else {"command": "ls"}
    if tool == "ssh_bash__exec":
        arguments["host"] = "far"

    result = await caller(tmp_path, mode="plan").call(tool, **arguments)

    assert result.error_code == "E_PLAN_MODE", result.text


def hook(folder: Path, answer: dict[str, Any] | None = None) -> dict[str, Any]:
    """A PreToolUse hook for Bash that writes down what it is told, and answers."""
    program = folder / "hook.py"
    program.write_text(
        f"import sys\nopen({str(folder / 'told.jsonl')!r}, 'a').write(sys.stdin.read().strip() + '\\n')\n"
        f"print({json.dumps(json.dumps(answer or {}))})\n"
    )
    command = [sys.executable, str(program)]
    return {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}]}


@pytest.mark.parametrize(
    ("tool", "arguments", "command"),
    [
        ("bash__exec", {"command": "echo a"}, "echo a"),
        ("bg_exec__start", {"command": "echo", "args": ["a b", "$x"]}, "echo 'a b' '$x'"),
        ("bg_exec__start", {"command": "cat", "stdin": "a\n"}, "cat <<< 'a\n'"),
        ("bash__script", {"path": "removes.sh", "args": ["x y"]}, "/bin/sh {project}/removes.sh 'x y'"),
    ],
)
async def test_a_hook_on_bash_sees_each_of_them_as_a_command_of_bash(
    tmp_path: Path, tool: str, arguments: dict[str, Any], command: str
) -> None:
    refusal = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}
    one = caller(tmp_path, hooks=hook(tmp_path, refusal))

    result = await one.call(tool, **arguments)

    assert result.error_code == "E_HOOK_DENIED", result.text
    told = json.loads((tmp_path / "told.jsonl").read_text())
    assert (told["tool_name"], told["tool_input"]) == ("Bash", {"command": command.format(project=one.project)})


async def test_a_command_that_a_hook_rewrote_is_judged_again_and_run(tmp_path: Path) -> None:
    rewrites = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "echo rewritten"}}}

    value = await caller(tmp_path, hooks=hook(tmp_path, rewrites)).value("bash__exec", command="echo first")

    assert value["stdout"] == "rewritten"


async def test_words_that_a_hook_rewrote_are_not_run_in_either_form(tmp_path: Path) -> None:
    rewrites = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "rm kept.txt"}}}

    told = await caller(tmp_path, hooks=hook(tmp_path, rewrites)).problem("bg_exec__start", command="ls")

    assert told == (
        "a hook rewrote what bg_exec__start was to run, to `rm kept.txt`\n"
        "bg_exec__start cannot run that; use Bash.\n[E_HOOK_DENIED]"
    )


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="no bubblewrap here: `make bubblewrap` installs it")
async def test_the_sandbox_holds_whatever_a_command_is_run_by(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    one = caller(tmp_path, sandbox="required")
    (one.project / "writes.sh").write_text(f"echo x > {outside}/by_script; echo err >&2; exit 0\n")
    write = f"echo x > {outside}/file; cat; echo err >&2; exit 0"

    by_exec = await one.value("bash__exec", command=write)
    by_script = await one.value("bash__script", path="writes.sh")
    task = await one.value("bg_exec__start", command="sh", args=["-c", write], stdin="given")
    shown = await one.call("TaskOutput", task_id=task["taskId"])

    assert [value["stderr"].endswith("err") for value in (by_exec, by_script)] == [True, True]
    assert "given" in shown.text
    assert list(outside.iterdir()) == []
