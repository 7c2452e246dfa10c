"""bash: exec and script, Bash with its outputs apart. Contract: tools.md, section 3."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.calls.permissions.approval import ALLOW_ONCE, DECISION
from goat_mcp.core.elicitation import Answer, Form, Reply
from tests.manifests.calling import Caller

pytestmark = pytest.mark.anyio

EXEC, SCRIPT = "bash__exec", "bash__script"


async def test_stdout_and_stderr_come_apart_with_the_exit_code(tmp_path: Path) -> None:
    one = Caller(tmp_path)

    result = await one.call(EXEC, command="echo out; echo err >&2; cat; echo more")

    value = result.structured
    assert json.loads(result.text) == value
    assert value == {
        "stdout": "out\nmore",
        "stderr": "err",
        "exitCode": 0,
        "timedOut": False,
        "durationMs": value["durationMs"],
        "cwd": str(one.project),
    }


async def test_another_exit_code_is_an_error_that_holds_the_same_json(tmp_path: Path) -> None:
    result = await Caller(tmp_path).call(EXEC, command="echo out; echo err >&2; exit 3")

    text, message, code = result.text.split("\n")
    value = json.loads(text)
    assert (result.error_code, message, code) == ("E_EXIT", "Exit code 3", "[E_EXIT]")
    assert (value["stdout"], value["stderr"], value["exitCode"], value["timedOut"]) == ("out", "err", 3, False)
    assert result.facts is not None
    assert {name: result.facts[name] for name in value} == value


async def test_a_search_that_finds_nothing_has_not_failed(tmp_path: Path) -> None:
    value = await Caller(tmp_path).value(EXEC, command="echo a | grep b")

    assert (value["exitCode"], value["stdout"], value["notices"]) == (1, "", ["exit code 1"])


async def test_a_timeout_keeps_what_was_printed_and_ends_all_that_was_started(tmp_path: Path) -> None:
    one = Caller(tmp_path)

    result = await one.call(EXEC, command="sleep 600 & echo $! > pid; echo so far; wait", timeoutMs=5000)

    value = json.loads(result.text.split("\n")[0])
    assert result.error_code == "E_TIMEOUT"
    assert (value["stdout"], value["timedOut"]) == ("so far", True)
    assert await gone(int((one.project / "pid").read_text()))


async def test_what_runs_long_becomes_a_task_that_has_both_outputs(tmp_path: Path) -> None:
    one = Caller(tmp_path, {"bash": {"auto_background_after_s": 4}})

    value = await one.value(EXEC, command="echo out; echo err >&2; read -t 8 <> <(:); echo end")
    ended = await one.call("TaskOutput", task_id=value["taskId"])

    assert (value["stdout"], value["stderr"], value["exitCode"]) == ("out", "err", None)
    assert not ended.is_error
    assert sorted(line for line in ended.text.split("\n") if line in ("out", "err", "end")) == ["end", "err", "out"]


async def test_cwd_and_env_are_for_the_call_only(tmp_path: Path) -> None:
    one = Caller(tmp_path)
    (one.project / "below").mkdir()

    there = await one.value(EXEC, command="pwd; echo $A", cwd="@/below", env={"A": "1"})
    here = await one.value(EXEC, command="pwd; echo $A")

    assert there["stdout"] == f"{one.project}/below\n1"
    assert here["stdout"] == str(one.project)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"command": "pwd", "cwd": "/"}, "E_PATH_OUTSIDE"),
        ({"command": "pwd", "cwd": "below"}, "E_PATH_RELATIVE"),
        ({"command": "pwd", "env": {"LD_PRELOAD": "/x.so"}}, "E_INPUT"),
        ({"command": "echo \0"}, "E_INPUT"),
        ({"command": "pwd", "run_in_background": True}, "E_INPUT"),
        ({}, "E_INPUT"),
    ],
)
async def test_what_bash_refuses_is_refused(tmp_path: Path, arguments: dict[str, Any], code: str) -> None:
    assert (await Caller(tmp_path).call(EXEC, **arguments)).error_code == code


async def test_long_outputs_are_cut_each_by_itself_and_the_whole_is_in_a_file(tmp_path: Path) -> None:
    one = Caller(tmp_path)

    result = await one.call(EXEC, command="printf 'o%.0s' {1..50000}; printf 'e%.0s' {1..50000} >&2")

    value = result.structured
    assert value["truncated"] is True
    assert len(result.text) < 30_000
    assert value["stdout"].startswith("ooo")
    assert value["stderr"].endswith("eee")


@pytest.mark.parametrize(
    ("first_line", "told"),
    [
        ("", "bash"),
        ("#!/bin/bash -u\n", "bash"),
        ("#!/usr/bin/env bash\r\n".replace("\r", ""), "bash"),
        ("#!   /bin/sh\n", "sh"),
    ],
)
async def test_a_script_is_run_by_the_program_it_names_or_by_bash(tmp_path: Path, first_line: str, told: str) -> None:
    one = Caller(tmp_path)
    (one.project / "a b.sh").write_text(first_line + 'ps -o comm= -p $$; printf "<%s>" "$@"; echo err >&2\n')

    value = await one.value(SCRIPT, path="a b.sh", args=["x y", "$(z)", "'"])

    assert (value["stdout"], value["stderr"]) == (f"{told}\n<x y><$(z)><'>", "err")


async def test_a_script_in_another_language_runs_in_it_and_may_fail(tmp_path: Path) -> None:
    one = Caller(tmp_path)
    (one.project / "tool").write_text("#!/usr/bin/env python3\nimport sys\nprint(sys.argv[1:])\nsys.exit(5)\n")

    result = await one.call(SCRIPT, path=str(one.project / "tool"), args=["a"])

    value = json.loads(result.text.split("\n")[0])
    assert (result.error_code, value["stdout"], value["exitCode"]) == ("E_EXIT", "['a']", 5)


@pytest.mark.parametrize(
    ("path", "code"), [("nowhere.sh", "E_NOT_FOUND"), ("/etc/profile", "E_PATH_OUTSIDE"), ("@", "E_DIRECTORY")]
)
async def test_what_is_no_file_of_the_workspace_is_no_script(tmp_path: Path, path: str, code: str) -> None:
    assert (await Caller(tmp_path).call(SCRIPT, path=path)).error_code == code


async def gone(pid: int) -> bool:
    with anyio.move_on_after(10):
        while True:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return True
            await anyio.sleep(0.05)
    return False


@pytest.mark.parametrize("first_line", ["", "#!/bin/sh\n", "#!/usr/bin/env python3\n"])
async def test_r_perm_2_a_script_that_changes_while_a_person_is_asked_is_not_run(
    tmp_path: Path, first_line: str
) -> None:
    async def rewrite_and_allow(form: Form) -> Answer:
        script.write_text(f"{first_line}print('evil')\n" if "python" in first_line else f"{first_line}echo evil > x\n")
        return Answer(Reply.ACCEPTED, {DECISION: ALLOW_ONCE})

    one = Caller(tmp_path, {"permissions": {"ask": ["Bash"]}}, rewrite_and_allow)
    script = one.project / "run"
    script.write_text(f"{first_line}print('fine')\n" if "python" in first_line else f"{first_line}echo fine\n")

    problem = await one.problem(SCRIPT, path="run")

    assert problem.endswith("[E_STALE]")
    assert "evil" not in problem
    assert [path.name for path in one.project.iterdir()] == ["run"]


async def test_a_script_that_stayed_as_it_was_runs_after_a_person_was_asked(tmp_path: Path) -> None:
    async def allow(form: Form) -> Answer:
        return Answer(Reply.ACCEPTED, {DECISION: ALLOW_ONCE})

    one = Caller(tmp_path, {"permissions": {"ask": ["Bash"]}}, allow)
    (one.project / "run").write_text("#!/bin/bash\n" + "# long\n" * 1000 + 'basename "$0"\n')

    assert (await one.value(SCRIPT, path="run"))["stdout"] == "run"
