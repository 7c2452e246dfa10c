"""Commands run whole scripts, report where they stood, and end with all they started."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from goat_mcp.core import platform
from goat_mcp.processes import process_tree, running_command
from goat_mcp.processes.command_start import start_command
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.processes.process_table import living_process
from goat_mcp.processes.running_command import EndedBy, RunningCommand
from goat_mcp.processes.windows_job import JobLimits
from tests.processes.processes import alive, running, soon, without_linux

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("kernel"),
    pytest.mark.posix_only("needs bash"),
]
HAS_PROC = platform.HAS_PROC  # as it is, whatever a test hides

ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}


class Runner:
    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.guard = ProcessGuard()

    def start(self, script: str) -> RunningCommand:
        def create(stem: str) -> tuple[Path, int]:
            path = self.folder / f"{stem}-{secrets.token_hex(4)}.out"
            return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)

        return start_command(
            script,
            bash="/bin/bash",
            directory=self.folder,
            environment=ENVIRONMENT,
            guard=self.guard,
            create_file=create,
        )

    async def run(self, script: str) -> tuple[int | None, str, str | None]:
        """Exit code, output, last directory."""
        command = self.start(script)
        assert await command.wait_ended(60)
        return command.exit_code, command.capture.shown(1_000_000).text, command.directory


@pytest.fixture
async def runner(tmp_path: Path) -> AsyncGenerator[Runner]:
    runner = Runner(tmp_path)
    yield runner
    runner.guard.close()


def is_stopped(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return state.stdout.strip() == "T"


def unique_sleep() -> str:
    """A duration no other process sleeps for, so that it can be found by its command line."""
    return f"3{secrets.randbelow(10**9):09d}"


@pytest.mark.parametrize(
    "script",
    [
        "echo hi; echo err >&2; echo more",
        "",
        "# only a comment",
        "exit 3",
        "set -e; false; echo no",
        "set -eu\necho $nope\necho no",
        "echo a\nif then\necho b",
        "echo 'open",
        "cat <<EOF\nhello\nEOF",
        "cat <<EOF\nunfinished $HOME",
        "cat <<'EOF'\n$HOME `x` \"q\" 'q'\nEOF\n",
        "echo one \\\n two \\",
        "nope_a\n\nnope_b",
        "trap 'echo bye' EXIT; exit 4",
        "trap 'echo bye' EXIT; (exit 5)",
        "trap 'echo failed at $LINENO' ERR\n\nfalse\ntrue",
        "exec sh -c 'exit 6'",
        "kill -9 $$",
        "kill -TERM $$; sleep 1",
        "echo $0 $# $LINENO",
        'read x; echo "[$x] $?"',
        "shopt -s expand_aliases; alias x='echo aliased'\nx",
        "f() { return 7; }; f",
        "return 3; echo after",
        "printf 'a\\tb'; false",
        "exec 3>f 4<f; echo hi >&3; cat <&4",
        "echo $- | tr -d c; set -o | grep -c on",
        "history | wc -l; echo ${BASH_SOURCE[0]-none} $BASH_SUBSHELL $SHLVL",
    ],
)
async def test_a_script_behaves_as_with_bash_c(runner: Runner, script: str) -> None:
    plain = ["/bin/bash", "--noprofile", "--norc", "-c", script, "bash"]
    expected = await anyio.run_process(plain, stderr=subprocess.STDOUT, check=False, env=ENVIRONMENT, cwd=runner.folder)

    code, text, _ = await runner.run(script)

    # A shell that is killed reports nothing of its own; ours shows 128 + signal as an outer shell would.
    expected_code = expected.returncode if expected.returncode >= 0 else 128 - expected.returncode
    said = text.replace("bash: eval: line", "bash: line")  # the one trace of how the script got there
    assert (code, said.rstrip()) == (expected_code, expected.stdout.decode().replace("-c: line", "line").rstrip())


async def test_tracing_shows_the_script_only(runner: Runner) -> None:
    assert (await runner.run("set -x; echo a"))[1] == "++ echo a\na"


@pytest.mark.parametrize(
    "script",
    [
        "cd sub",
        "cd sub; exit 3",
        "cd sub; set -e; false",
        "cd sub; false",
        "cd sub\ncat <<X\nunfinished",
        "cd sub; trap 'cd /' EXIT",
        "cd sub; pwd() { echo /; }; builtin() { :; }; unset -f builtin",
        "cd sub; exec >/dev/null 2>&1",
        "cd sub; set -u -o noclobber -o pipefail",
    ],
)
async def test_the_last_directory_is_known_however_the_script_ends(runner: Runner, script: str) -> None:
    (runner.folder / "sub").mkdir()

    _, _, directory = await runner.run(script)

    assert directory == str(runner.folder / "sub")


async def test_a_directory_whose_name_holds_line_ends_is_reported_whole(runner: Runner) -> None:
    name = "a\nb\n a\nb\n"
    (runner.folder / name).mkdir()

    _, _, directory = await runner.run("cd $'a\\nb\\n a\\nb\\n'")

    assert directory == str(runner.folder / name)


async def test_no_directory_is_reported_after_exec_or_an_exit_under_the_scripts_own_trap(runner: Runner) -> None:
    assert (await runner.run("cd /; exec true"))[2] is None
    assert (await runner.run("cd /; trap : EXIT; exit 0"))[2] is None


async def test_a_script_of_a_megabyte_arrives_whole(runner: Runner) -> None:
    script = "cat <<'END'\n" + "0123456789abcde\n" * 65_536 + "END\n"

    assert (await runner.run(script.replace("cat", "wc -c", 1)))[:2] == (0, "1048576")


async def test_the_script_is_in_no_argument_list_so_pkill_does_not_hit_its_own_shell(runner: Runner) -> None:
    word = f"word{secrets.token_hex(6)}"

    assert await runner.run(f"pkill -f {word}; echo survived") == (0, "survived", str(runner.folder))


async def test_the_first_shell_leads_a_session_of_its_own(runner: Runner) -> None:
    _, text, _ = await runner.run("ps -o pid=,pgid=,sid= -p $$")

    assert len(set(text.split())) == 1


async def test_a_call_ends_with_its_command_although_a_child_holds_the_pipe(runner: Runner) -> None:
    sleep = unique_sleep()

    command = runner.start(f"sleep {sleep} & echo done")
    assert await command.wait_ended(60)

    assert command.capture.shown(100).text == "done"
    assert command.left_running == (f"sleep {sleep}",)
    assert not command.gone.is_set()
    await command.end()
    assert running("sleep", sleep) == []


async def test_output_that_still_arrives_is_waited_for_but_not_for_ever(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A busy machine may need more than the usual 0.2 s for the next word.
    monkeypatch.setattr(running_command, "QUIET_S", 5.0)
    monkeypatch.setattr(running_command, "DRAIN_S", 10.0)
    late = runner.start("(sleep 0.1; echo late) & echo early")
    assert await late.wait_ended(60)
    assert late.capture.shown(100).text == "early\nlate"

    monkeypatch.setattr(running_command, "DRAIN_S", 1.0)
    endless = runner.start("while sleep 0.05; do echo more; done & echo first")
    assert await endless.wait_ended(60)
    assert endless.left_running, "it would print more"
    await endless.end()


@pytest.mark.parametrize(
    "start",
    [
        "sleep {} & wait",
        "trap '' TERM; (trap '' TERM; sleep {}) & wait",
        "setsid sleep {} & disown; sleep 1000",
        "setsid setsid sleep {} >/dev/null 2>&1 </dev/null & sleep 1000",
        "env -i setsid sleep {} & sleep 1000",
        "(setsid sleep {} &); sleep 1000",
        "set -m; sleep {} & (set -m; sleep 1000 & wait) & wait",
        "(sleep {} & sleep 0.2; kill -STOP $!) & sleep 1000",
    ],
)
async def test_ending_a_command_ends_all_it_started(runner: Runner, start: str) -> None:
    sleep = unique_sleep()
    command = runner.start(start.format(sleep))
    assert await soon(lambda: running("sleep", sleep) != [])
    if "STOP" in start:
        assert await soon(lambda: is_stopped(running("sleep", sleep)[0]))

    await command.end()
    assert running("sleep", sleep) == []
    assert not alive(command.pid)
    assert command.ended_by is EndedBy.STOP


async def test_a_command_that_is_gone_is_not_signalled(runner: Runner) -> None:
    command = runner.start("true")
    assert await command.wait_gone(60)

    command.begin_end(EndedBy.TIMEOUT)
    await command.end()

    assert (command.exit_code, command.ended_by) == (0, None)


async def test_a_command_ends_when_its_time_is_up(runner: Runner) -> None:
    command = runner.start("echo before; sleep 1000")
    assert await soon(lambda: command.capture.total > 0)
    command.end_at(0.2)

    assert await command.wait_gone(60)

    assert (command.ended_by, command.exit_code) == (EndedBy.TIMEOUT, 143)
    assert command.capture.shown(100).text == "before"


async def test_what_left_the_session_and_closed_everything_is_still_known_by_its_environment(runner: Runner) -> None:
    sleep = unique_sleep()
    close_all = 'for fd in /proc/self/fd/*; do fd=${fd##*/}; [ $fd -gt 2 ] && eval "exec $fd<&-"; done'
    command = runner.start(f"({close_all}; setsid sleep {sleep} </dev/null >/dev/null 2>&1 &); sleep 1000")
    assert await soon(lambda: running("sleep", sleep) != [])

    await command.end()

    assert running("sleep", sleep) == []


async def test_a_stopped_process_sees_term_before_it_is_killed(runner: Runner) -> None:
    command = runner.start("trap 'echo ended in peace; exit' TERM; echo ready; kill -STOP $$")
    assert await soon(lambda: is_stopped(command.pid))

    await command.end()

    assert command.capture.shown(100).text == "ready\nended in peace"


async def test_descriptors_are_given_back(runner: Runner) -> None:
    await runner.run("true")
    before = len(os.listdir("/proc/self/fd")) if HAS_PROC else 0  # noqa: PTH208  # a count

    for _ in range(20):
        command = runner.start("true")
        assert await command.wait_gone(60)

    # It has closed its own descriptor when it returns.
    assert await soon(lambda: (len(os.listdir("/proc/self/fd")) if HAS_PROC else 0) <= before)  # noqa: PTH208


class NotedGuard(ProcessGuard):
    """Remembers which groups it was ever to end."""

    def __init__(self) -> None:
        super().__init__()
        self.watched: list[int] = []
        self.forgotten: list[int] = []

    def watch(self, group: int, *, is_command: bool = False, limits: JobLimits | None = None) -> None:
        self.watched.append(group)
        super().watch(group, is_command=is_command, limits=limits)

    def forget(self, group: int) -> None:
        self.forgotten.append(group)
        super().forget(group)


async def test_what_was_once_seen_with_a_parent_of_the_command_ends_with_it(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hidden(pid: int, text: bytes) -> bool:
        return False  # macOS shows no environment of its own programs

    without_linux(monkeypatch)
    monkeypatch.setattr(process_tree, "environment_contains", hidden)
    runner.guard = guard = NotedGuard()
    sleep, gone_on = unique_sleep(), runner.folder / "gone on"
    command = runner.start(f"(setsid sleep {sleep} & until [ -e '{gone_on}' ]; do sleep 0.05; done) & wait; sleep 1000")
    assert await soon(lambda: running("sleep", sleep) != [])
    (escaped,) = running("sleep", sleep)
    assert await soon(lambda: escaped in guard.watched)

    gone_on.touch()
    assert await soon(lambda: running("sleep", "1000") != [])
    found = living_process(escaped)
    assert found is not None and found.parent not in (command.pid, os.getpid())
    await command.end()

    assert running("sleep", sleep) == []
    assert set(guard.watched) == set(guard.forgotten)


@pytest.mark.matrix
async def test_many_commands_in_the_background_take_no_thread_each(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_linux(monkeypatch)
    threads = os.cpu_count() or 1
    commands = [runner.start("exec sleep 1000 >/dev/null 2>&1") for _ in range(threads + 5)]

    with anyio.fail_after(60):
        assert await asyncio.to_thread(lambda: "a thread is left") == "a thread is left"
        assert (await runner.run("exit 3"))[0] == 3

    for command in commands:
        await command.end()
    assert all(not alive(command.pid) for command in commands)
