"""Bash as a caller sees it. What scripts, processes and output do in detail is tested in tests/processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.side_effect import Hints, Risk, SideEffect
from goat_mcp.core.tool import Access
from goat_mcp.state.sessions import ReadRecord
from tests.own_process import resident_bytes
from tests.processes.processes import alive, running, soon, wait_until
from tests.tools.shell_bench import ShellBench, context, fact, task_id

pytestmark = [pytest.mark.anyio, pytest.mark.posix_only("needs bash")]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[ShellBench]:
    bench = ShellBench(tmp_path)
    yield bench
    await bench.close()


def unique_sleep() -> str:
    return f"4{secrets.randbelow(10**9):09d}"


# --- what comes back


async def test_bash_008_both_streams_the_exit_code_and_an_error(bench: ShellBench) -> None:
    result = await bench.run("echo out; echo err >&2; exit 3")

    assert result.is_error
    assert result.text == "out\nerr\nExit code 3\n[E_EXIT]"
    assert fact(result, "exit_code") == 3


async def test_bash_007_exit_1_of_grep_is_reported_and_no_error(bench: ShellBench) -> None:
    result = await bench.run("grep nosuchthing /etc/hostname")

    assert not result.is_error
    assert result.text == "(no output)\n[exit code 1]"


async def test_exit_2_of_grep_is_an_error(bench: ShellBench) -> None:
    result = await bench.run("grep x /nowhere/at/all")

    assert (result.error_code, fact(result, "exit_code")) == ("E_EXIT", 2)


async def test_no_output_is_said_in_words(bench: ShellBench) -> None:
    assert (await bench.run("true")).text == "(no output)"
    assert (await bench.run("false")).text == "(no output)\nExit code 1\n[E_EXIT]"


async def test_a_killed_command_names_the_signal(bench: ShellBench) -> None:
    result = await bench.run("kill -SEGV $$")

    assert "Exit code 139 (SIGSEGV)" in result.text


async def test_all_facts_of_a_plain_call(bench: ShellBench) -> None:
    result = await bench.run("echo hi")

    assert result.facts is not None
    assert {**result.facts, "duration_ms": 0} == {
        "exit_code": 0,
        "timed_out": False,
        "duration_ms": 0,
        "cwd": str(bench.root),
        "task_id": None,
        "output_file": None,
        "truncated": False,
        "stale_reads": [],
        "sandbox": "off",
    }


async def test_bash_006_of_50_megabytes_head_and_tail_are_shown_and_all_is_in_a_file(bench: ShellBench) -> None:
    await bench.run("true")
    before_kib = resident_bytes() // 1024

    result = await bench.run("yes abcdefghij | head -c 50000000")

    assert (resident_bytes() // 1024) - before_kib < 64 * 1024
    assert len(result.text) <= 30_000
    assert fact(result, "truncated") is True
    assert fact(result, "output_file") in result.text
    assert size_and_mode(fact(result, "output_file")) == (50_000_000, 0o600)


def size_and_mode(path: str) -> tuple[int, int]:
    found = Path(path).stat()
    return found.st_size, found.st_mode & 0o777


@pytest.mark.parametrize("command", ["head -c 200000000 /dev/zero | tr '\\0' 'a'"])
async def test_bx_06_a_giant_line_costs_no_memory(bench: ShellBench, command: str) -> None:
    await bench.run("true")
    before_kib = resident_bytes() // 1024

    result = await bench.run(command)

    assert (resident_bytes() // 1024) - before_kib < 50 * 1024
    assert len(result.text) <= 30_000
    assert size_and_mode(fact(result, "output_file")) == (64 * 1024 * 1024, 0o600)


async def test_bx_05_endless_output_is_ended_at_its_limit(bench: ShellBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goat_mcp.processes.running_command.OUTPUT_LIMIT_BYTES", 300_000_000)

    result = await bench.run("yes")

    assert result.error_code == "E_TOO_LARGE"
    assert len(result.text) < 11_000


async def test_a_long_failed_output_is_cut_at_10000_characters(bench: ShellBench) -> None:
    result = await bench.run("seq 100000; exit 9")

    output = result.text.split("\nExit code 9")[0]
    assert 9_000 < len(output) <= 10_000
    assert output.startswith("1\n2\n") and output.endswith("\n100000")
    assert fact(result, "output_file") in output


async def test_an_output_that_just_fits_is_whole(bench: ShellBench) -> None:
    result = await bench.run("head -c 30000 /dev/zero | tr '\\0' x")

    assert result.text == "x" * 30_000


async def test_bash_018_undecodable_bytes_come_as_replacement_characters(bench: ShellBench) -> None:
    assert (await bench.run("printf '\\xff\\xfe\\x00ok'")).text == "\ufffd\ufffd\\x00ok"


async def test_bx_10_escapes_and_direction_overrides_cannot_hide_text(bench: ShellBench) -> None:
    result = await bench.run("printf '\\033]0;x\\007\\033[2J\\xff\\xfe\\0\\xe2\\x80\\xae'")

    assert result.text == "\ufffd\ufffd\\x00\\u202e"


async def test_progress_bars_show_their_last_state(bench: ShellBench) -> None:
    assert (await bench.run("for i in 1 50 100; do printf '%s%%\\r' $i; done; echo; echo done")).text == "100%\ndone"


# --- where and with what it runs


async def test_bash_001_the_directory_carries_over_and_variables_do_not(bench: ShellBench) -> None:
    (bench.root / "sub").mkdir()

    await bench.run("cd sub && export X=1")

    assert (await bench.run("pwd; echo [$X]")).text == f"{bench.root}/sub\n[]"


async def test_bx_19_a_directory_outside_is_left_again_with_a_notice(bench: ShellBench) -> None:
    result = await bench.run("cd /; echo ok")

    assert result.text == f"ok\n[Shell cwd was reset to {bench.root}]"
    assert (await bench.run("pwd")).text == str(bench.root)


async def test_a_link_inside_that_leads_out_is_outside(bench: ShellBench, tmp_path: Path) -> None:
    (tmp_path / "ws-evil").mkdir()
    (bench.root / "link").symlink_to(tmp_path / "ws-evil")

    assert "Shell cwd was reset to" in (await bench.run("cd link")).text


async def test_bx_18_a_directory_that_was_deleted_does_not_wedge_the_shell(bench: ShellBench) -> None:
    (bench.root / "gone").mkdir()
    await bench.run("cd gone")
    (bench.root / "gone").rmdir()

    assert (await bench.run("pwd")).text == f"{bench.root}\n[Shell cwd was reset to {bench.root}]"
    assert (await bench.run("pwd")).text == str(bench.root)


async def test_sessions_stand_where_they_went_themselves(bench: ShellBench) -> None:
    (bench.root / "sub").mkdir()

    await bench.run("cd sub", ctx=context(session_key="a"))

    assert (await bench.run("pwd", ctx=context(session_key="b"))).text == str(bench.root)


async def test_workdir_is_for_one_call(bench: ShellBench) -> None:
    (bench.root / "sub" / "deep").mkdir(parents=True)

    assert (await bench.run("pwd; cd deep", workdir="@sub")).text == f"{bench.root}/sub"
    assert (await bench.run("pwd", cwd=str(bench.root / "sub"))).text == f"{bench.root}/sub"
    assert (await bench.run("pwd")).text == str(bench.root)


@pytest.mark.parametrize(
    ("workdir", "code"),
    [("/", "E_PATH_OUTSIDE"), ("sub", "E_PATH_RELATIVE"), ("@nope", "E_NOT_FOUND"), ("@file", "E_NOT_A_DIRECTORY")],
)
async def test_a_workdir_is_checked_before_anything_runs(bench: ShellBench, workdir: str, code: str) -> None:
    (bench.root / "file").write_text("x")

    result = await bench.run("touch ran", workdir=workdir)

    assert result.error_code == code
    assert not list(bench.root.rglob("ran"))


async def test_a_folder_that_may_only_be_read_is_no_place_to_run_in(bench: ShellBench) -> None:
    assert (await bench.run("touch ran", workdir=str(bench.state.folder("spill")))).error_code == "E_PATH_OUTSIDE"


async def test_bash_009_secrets_of_the_server_are_not_in_the_environment(
    bench: ShellBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "INNOCENT_NAME"):
        monkeypatch.setenv(name, "canary-4711")

    result = await bench.run("env", env={"PORT": 3000, "GIVEN": "yes"})

    assert "canary-4711" not in result.text
    lines = result.text.splitlines()
    assert {"PORT=3000", "GIVEN=yes", f"HOME={os.environ['HOME']}"} <= set(lines)
    assert [line for line in lines if line.startswith("PATH=")]


async def test_bash_is_found_whatever_path_the_command_is_to_see(bench: ShellBench) -> None:
    result = await bench.run("echo $PATH", env={"PATH": "/nowhere"})
    assert result.text == "/nowhere"


async def test_r_shell_7_start_files_are_not_read_and_stdin_is_empty(
    bench: ShellBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bench.root / "start").write_text("echo read-a-start-file\n")
    (bench.root / ".bashrc").write_text("echo read-a-start-file\n")
    monkeypatch.setenv("BASH_ENV", str(bench.root / "start"))
    monkeypatch.setenv("HOME", str(bench.root))

    assert (await bench.run("cat; readlink /proc/$$/fd/0")).text == "/dev/null"


@pytest.mark.parametrize("name", [".bashrc", ".bash_profile", ".bash_login", ".profile", ".bash_logout", ".inputrc"])
async def test_r_shell_7_no_start_file_of_the_workspace_or_the_home_is_read(
    bench: ShellBench, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (bench.root / name).write_text("echo read-a-start-file\n")
    monkeypatch.setenv("HOME", str(bench.root))

    assert (await bench.run("echo ran")).text == "ran"


@pytest.mark.parametrize("name", ["BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "BASH_FUNC_ls%%", "LD_PRELOAD"])
async def test_r_shell_7_a_call_cannot_name_a_start_file(bench: ShellBench, name: str) -> None:
    (bench.root / "start").write_text("touch ran\n")

    result = await bench.run("true", env={name: str(bench.root / "start")})

    assert result.error_code == "E_INPUT"
    assert not (bench.root / "ran").exists()


async def test_a_script_of_200_kilobytes_runs(bench: ShellBench) -> None:
    script = "\n".join(f"x{index}='{'y' * 95}'" for index in range(2_000)) + "\necho $x1999 | wc -c"

    assert len(script) > 200_000
    assert (await bench.run(script)).text == "96"


# --- time


async def test_bx_01_a_timeout_ends_the_command_and_keeps_its_output(bench: ShellBench) -> None:
    sleep = unique_sleep()

    result = await bench.run(f"echo before; sleep {sleep}", timeout=3000)

    assert result.text.splitlines()[:2] == ["before", "timed out after 3 s and was ended with all it started"]
    assert (result.error_code, fact(result, "timed_out"), running("sleep", sleep)) == ("E_TIMEOUT", True, [])


async def test_bx_02_a_timeout_ends_what_left_the_session(bench: ShellBench) -> None:
    sleep = unique_sleep()

    await bench.run(f"setsid sleep {sleep} & disown; sleep 1000", timeout=300)

    assert running("sleep", sleep) == []


async def test_a_timeout_below_a_second_explains_its_unit(bench: ShellBench) -> None:
    result = await bench.run("sleep 10", timeout=30)

    assert "timeout is in milliseconds: 30 is 0.03 s; for 30 s send 30000." in result.text


@pytest.mark.parametrize(
    "arguments", [{"timeout": -5}, {"timeout": 0}, {"timeout_s": "soon"}, {"timeout": 5, "timeout_s": 1}]
)
async def test_bx_16_an_impossible_timeout_is_refused(bench: ShellBench, arguments: dict[str, Any]) -> None:
    assert (await bench.run("echo hi", **arguments)).error_code == "E_INPUT"


async def test_seconds_under_their_own_name_are_converted(bench: ShellBench) -> None:
    assert bench.bash.validate({"command": "x", "timeout_s": "1.5"}).timeout == 1500
    assert bench.bash.validate({"cmd": "x", "timeout_ms": "20"}).timeout == 20


async def test_a_timeout_over_the_most_is_reduced_and_said(bench: ShellBench) -> None:
    result = await bench.run("echo hi", timeout=900_000)

    assert result.text == "hi\n[timeout 900000 ms was reduced to 600000 ms]"


async def test_a_long_command_becomes_a_task_and_goes_on(tmp_path: Path) -> None:
    bench = ShellBench(tmp_path, auto_background_after_s=2)
    result = await bench.run("echo early; until [ -e go ]; do sleep 0.05; done; echo late")

    (bench.root / "go").touch()
    first, second, *_ = result.text.splitlines()
    assert (first, second, result.is_error) == (f"Task started: {task_id(result)}", "early", False)
    assert result.task_id == task_id(result)
    assert size_and_mode(fact(result, "output_file")) == (6, 0o600)
    ended = await bench.read(task_id(result))
    assert ended.text.splitlines()[1:3] == ["early", "late"]
    await bench.close()


async def test_a_command_that_was_queued_too_long_becomes_a_task_at_once(bench: ShellBench) -> None:
    queued = context(started_at_s=time.monotonic() - 44.8)

    with anyio.fail_after(30):  # it would be 45 s, had it not been queued
        result = await bench.run("sleep 600", ctx=queued)

    assert result.text.startswith("Task started: ")


async def test_without_auto_background_the_call_waits(tmp_path: Path) -> None:
    bench = ShellBench(tmp_path, auto_background_after_s=0)

    result = await bench.run("sleep 0.4; echo done", ctx=context(started_at_s=time.monotonic() - 45))

    assert result.text == "done"
    await bench.close()


async def test_bash_013_progress_rises_while_a_command_runs(bench: ShellBench) -> None:
    seen: list[tuple[float, str | None]] = []

    async def progress(done: float, total: float | None = None, message: str | None = None, **_: object) -> None:
        seen.append((done, message))
        if len(seen) == 2:
            (bench.root / "go").touch()

    with anyio.fail_after(60):
        result = await bench.run(
            "echo 1; echo 2; until [ -e go ]; do sleep 0.1; done; echo 3",
            ctx=context(progress=progress, wants_progress=True),
        )

    assert result.text == "1\n2\n3"
    values = [value for value, _ in seen]
    assert values == sorted(set(values))
    assert seen[1][1] == "2", "the last line so far"


async def test_cancelling_a_call_ends_its_tree(bench: ShellBench) -> None:
    sleep = unique_sleep()
    call = asyncio.create_task(bench.run(f"trap '' TERM; sleep {sleep} & wait; sleep 1000"))
    assert await soon(lambda: len(running("sleep", sleep)) == 1)
    call.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await call

    assert await soon(lambda: running("sleep", sleep) == [], 3)


# --- background


async def test_bash_002_a_child_that_stays_becomes_a_task(bench: ShellBench) -> None:
    sleep = unique_sleep()

    result = await bench.run(f"sleep {sleep} & echo done")

    assert result.text == f"done\n[still running: sleep {sleep}. Task started: {task_id(result)}; TaskStop ends it]"
    await bench.end(task_id(result))
    assert running("sleep", sleep) == []


async def test_a_background_command_is_answered_while_it_runs_and_changes_no_directory(bench: ShellBench) -> None:
    (bench.root / "sub").mkdir()

    result = await bench.run("cd sub; until [ -e ../go ]; do sleep 0.05; done; echo done", run_in_background=True)

    assert result.text.splitlines()[0] == f"Task started: {task_id(result)}"
    assert size_and_mode(fact(result, "output_file")) == (0, 0o600)
    (bench.root / "go").touch()
    assert "done" in (await bench.read(task_id(result))).text
    assert (await bench.run("pwd")).text == str(bench.root)


async def test_bx_26_more_tasks_than_there_may_be_are_refused(tmp_path: Path) -> None:
    bench = ShellBench(tmp_path, max_running=3)
    sleep = unique_sleep()

    results = [await bench.run(f"sleep {sleep}", run_in_background=True) for _ in range(5)]

    assert [result.error_code for result in results] == [None, None, None, "E_BUSY", "E_BUSY"]
    left = await bench.run(f"sleep {sleep} & echo done")
    assert "ended what the command left running" in left.text
    assert await soon(lambda: len(running("sleep", sleep)) == 3)
    await bench.close()
    assert running("sleep", sleep) == []


# --- safety


async def test_bash_015_a_kill_of_the_server_by_name_is_refused(bench: ShellBench) -> None:
    result = await bench.run("pkill -f goat-mcp")

    assert result.error_code == "E_BLOCKED"
    assert "pkill -f goat-mcp" in result.text


async def test_br_87_a_nul_in_a_command_is_an_input_error(bench: ShellBench) -> None:
    assert (await bench.run("git status\0; rm x")).error_code == "E_INPUT"
    assert (await bench.run("echo \ud800")).error_code == "E_INPUT"


async def test_variables_that_run_hidden_code_are_refused(bench: ShellBench) -> None:
    (bench.root / "evil").write_text("touch ran\n")

    result = await bench.run("true", env={"BASH_ENV": str(bench.root / "evil")})

    assert result.error_code == "E_INPUT"
    assert not (bench.root / "ran").exists()


async def test_bx_21_the_sandbox_switch_is_accepted_and_promises_nothing(bench: ShellBench) -> None:
    assert (await bench.run("echo hi", dangerouslyDisableSandbox=True)).text == "hi"


async def test_without_a_workspace_nothing_runs(bench: ShellBench) -> None:
    bench.workspace.adopt_roots(())

    assert (await bench.run("echo hi")).error_code == "E_NO_WORKSPACE"


# --- read state


async def test_files_that_were_read_and_changed_are_named(bench: ShellBench) -> None:
    changed, same = bench.root / "changed.txt", bench.root / "same.txt"
    for path in (changed, same):
        path.write_text("one\n")
        await bench.run(f"cat {path.name}")

    result = await bench.run("echo two >> changed.txt; echo x > unread.txt")

    assert fact(result, "stale_reads") == [str(changed)]
    assert result.text == f"(no output)\n[files you have read changed: {changed}]"


@pytest.mark.parametrize(
    ("command", "whole"),
    [
        ("cat sub/f", True),
        ("cat 'sub/f'", True),
        ("nl -ba sub/f", True),
        ("head -n 1 sub/f", False),
        ("head -5 sub/f", False),
        ("tail -n +2 sub/f", False),
        ("sed -n '1,2p' sub/f", False),
        ("sed -n 1p sub/../sub/f", False),
    ],
)
async def test_a_plain_command_that_shows_one_file_counts_as_a_read(
    bench: ShellBench, command: str, whole: bool
) -> None:
    (bench.root / "sub").mkdir()
    (bench.root / "sub" / "f").write_text("abc\n")

    await bench.run(command)

    seen = bench.sessions.of("local").reads.get(str(bench.root / "sub" / "f"))
    assert seen is not None
    assert seen == ReadRecord(
        "edeaaff3f1774ad2888673770c6d64097e391bc362d7d6fb34982ddf0efd18cb",
        4,
        (bench.root / "sub" / "f").stat().st_mtime_ns,
        whole,
    )


@pytest.mark.parametrize(
    "command",
    [
        "cat f g",
        "cat f | head -1",
        "cat $HOME/f",
        "cat f > g",
        "sed 's/a/b/' f",
        "grep a f",
        "cat f; rm -f g",
        "cat /etc/hostname",
    ],
)
async def test_other_commands_do_not_count_as_reads(bench: ShellBench, command: str) -> None:
    for name in "fg":
        (bench.root / name).write_text("abc\n")

    await bench.run(command)

    assert bench.sessions.of("local").reads.paths() == ()


# --- the server dies


SERVER = """
import asyncio, sys
from pathlib import Path
from typing import Any
from tests.tools.shell_bench import ShellBench

async def serve(folder, sleep):
    bench = ShellBench(Path(folder))
    await bench.background(f"setsid sleep {sleep} & sleep {sleep}")
    await bench.run(f"sleep {sleep} & true")
    print("ready", flush=True)
    await bench.run(f"trap '' TERM; (trap '' TERM; setsid sleep {sleep}) & sleep {sleep}; sleep {sleep}")
asyncio.run(serve(*sys.argv[1:]))
"""


def test_bx_28_nothing_is_left_3_seconds_after_the_server_was_killed(tmp_path: Path) -> None:
    sleep = unique_sleep()
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(tmp_path), sleep], stdout=subprocess.PIPE)
    assert server.stdout is not None and server.stdout.readline() == b"ready\n"
    assert wait_until(lambda: len(running("sleep", sleep)) == 5, 5)

    server.send_signal(signal.SIGKILL)
    server.wait(60)

    assert wait_until(lambda: running("sleep", sleep) == [], 3)
    assert not alive(server.pid)


# --- the contract


def test_the_specification_says_how_dangerous_it_is(tmp_path: Path) -> None:
    bench = ShellBench(tmp_path)
    spec = bench.bash.spec

    assert (spec.side_effect, spec.risk, spec.toolset) == (SideEffect.NETWORK, Risk.CRITICAL, "core")
    assert spec.hints == Hints(read_only=False, destructive=True, idempotent=False, open_world=True)
    assert spec.meta == {"anthropic/alwaysLoad": True, "anthropic/maxResultSizeChars": 30_000}
    assert bench.bash.access(bench.bash.validate({"command": "x"})) == Access(category="shell")


@pytest.mark.parametrize("text", ["null", "5", "true", '{"a": 1}', ""])
def test_a_command_is_never_converted(tmp_path: Path, text: str) -> None:
    assert ShellBench(tmp_path).bash.validate({"command": text}).command == text


def test_a_command_is_needed(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as refused:
        ShellBench(tmp_path).bash.validate({"commnad": "x", "env": [1]})

    assert refused.value.code is ErrorCode.INPUT
    assert "did you mean command?" in refused.value.message and "env: wants" in refused.value.message
