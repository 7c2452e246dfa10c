"""Git's bash: where it is looked for; and how scripts run in it, shown with this system's bash and a double of jobs."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core import platform
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes import windows_command
from goat_mcp.processes.bash_options import BashOptions
from goat_mcp.processes.output_capture import SeparateStreams
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.processes.process_table import living_processes
from goat_mcp.processes.running_command import EndedBy, RunningCommand
from goat_mcp.processes.windows_bash import bash_path, find_git_bash
from goat_mcp.processes.windows_job import JobLimits, JobMember, Jobs
from tests.tools.shell_bench import ShellBench

GIT = "C:\\Program Files\\Git"
ENVIRONMENT = {"Path": "C:\\Windows\\System32", "ProgramFiles": "C:\\Program Files", "PATHEXT": ".EXE"}


def _files(*paths: str) -> Callable[[str], bool]:
    known = {path.lower() for path in paths}
    return lambda path: path.lower() in known


class TestWhereItIs:
    def test_the_setting_comes_first_and_then_claude_codes_variable(self) -> None:
        is_file = _files("D:\\g\\bash.exe", "E:\\c\\bash.exe", f"{GIT}\\bin\\bash.exe")
        both = {**ENVIRONMENT, "CLAUDE_CODE_GIT_BASH_PATH": "E:\\c\\bash.exe"}

        assert find_git_bash("D:\\g\\bash.exe", both, is_file) == "D:\\g\\bash.exe"
        assert find_git_bash("", both, is_file) == "E:\\c\\bash.exe"
        assert find_git_bash("", ENVIRONMENT, is_file) == f"{GIT}\\bin\\bash.exe"

    @pytest.mark.parametrize("git", ["cmd\\git.exe", "bin\\git.exe", "mingw64\\bin\\git.exe"])
    def test_it_is_found_beside_the_git_on_path(self, git: str) -> None:
        folder = f"D:\\apps\\Git\\{git}".rpartition("\\")[0]
        is_file = _files(f"D:\\apps\\Git\\{git}", "D:\\apps\\Git\\bin\\bash.exe", f"{GIT}\\bin\\bash.exe")

        assert find_git_bash("", {**ENVIRONMENT, "PATH": folder, "Path": ""}, is_file).startswith((GIT, "D:"))
        assert find_git_bash("", {**ENVIRONMENT, "Path": folder}, is_file) == "D:\\apps\\Git\\bin\\bash.exe"

    def test_the_inner_bash_is_started_by_the_one_that_sets_up_its_path(self) -> None:
        inner = f"{GIT}\\usr\\bin\\bash.exe"

        assert find_git_bash(inner, ENVIRONMENT, _files(inner, f"{GIT}\\bin\\bash.exe")) == f"{GIT}\\bin\\bash.exe"
        assert find_git_bash(inner, ENVIRONMENT, _files(inner)) == inner

    @pytest.mark.parametrize(
        "named",
        [
            "bash.exe",
            "C:\\gone\\bash.exe",
            "C:\\Windows\\System32\\bash.exe",
            "C:\\windows\\SysWOW64\\..\\SYSTEM32\\bash.exe",
        ],
    )
    def test_a_setting_that_names_none_or_that_of_wsl_is_refused(self, named: str) -> None:
        is_file = _files(
            "bash.exe",
            "C:\\Windows\\System32\\bash.exe",
            "C:\\windows\\SysWOW64\\..\\SYSTEM32\\bash.exe",
            f"{GIT}\\bin\\bash.exe",
        )

        with pytest.raises(ToolError, match=r"setting bash\.git_bash is .* not the absolute path") as refused:
            find_git_bash(named, ENVIRONMENT, is_file)

        assert refused.value.code is ErrorCode.NOT_CONFIGURED

    def test_without_git_the_answer_says_what_to_install(self) -> None:
        with pytest.raises(ToolError, match="no Git for Windows") as refused:
            find_git_bash("", ENVIRONMENT, _files("C:\\Windows\\System32\\bash.exe", "bash.exe", ".\\git.exe"))

        assert refused.value.code is ErrorCode.NOT_CONFIGURED
        assert "install Git for Windows" in refused.value.suggestion

    def test_paths_are_written_as_bash_knows_them(self) -> None:
        assert bash_path("C:\\Users\\a b\\run") == "/c/Users/a b/run"
        assert bash_path("D:") == "/d"
        assert bash_path("\\\\server\\share\\x") == "//server/share/x"


class GroupJobs:
    """Job objects out of process groups: each process here leads one."""

    def __init__(self) -> None:
        self.limits: list[JobLimits] = []

    def create(self, limits: JobLimits) -> list[int]:
        self.limits.append(limits)
        return []

    def assign(self, job: list[int], pid: int) -> None:
        job.append(pid)

    def resume(self, pid: int) -> None:
        """It was not suspended."""

    def members(self, job: list[int]) -> list[JobMember]:
        return [JobMember(process.pid, process.name) for process in living_processes() if process.group in job]

    def terminate(self, job: list[int]) -> None:
        for group in job:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)

    def close(self, job: list[int]) -> None:
        self.terminate(job)


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> GroupJobs:
    calls = GroupJobs()
    started: dict[str, Any] = {"start_new_session": True, "creationflags": 0}
    monkeypatch.setattr(platform, "HAS_JOB_OBJECTS", True)
    monkeypatch.setattr(platform, "HAS_PROCESS_GROUPS", False)
    monkeypatch.setattr(platform, "HAS_PIDFD", False)
    monkeypatch.setattr("goat_mcp.processes.process_guard.system_jobs", lambda: Jobs(calls))
    monkeypatch.setattr(windows_command, "guarded_start", lambda: started)
    folder = tmp_path / "it's a $(temp) folder"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return calls


def _start(script: str, directory: Path, **more: Any) -> RunningCommand:
    given: dict[str, Any] = {"options": BashOptions(), "stdin": subprocess.DEVNULL, "streams": None, **more}
    return windows_command.start_windows_command(
        script,
        bash="/bin/bash",
        directory=directory,
        environment={"PATH": "/usr/bin:/bin"},
        guard=ProcessGuard(),
        create_file=lambda stem: (directory / stem, os.open(directory / stem, os.O_RDWR | os.O_CREAT)),
        **given,
    )


@pytest.mark.anyio
@pytest.mark.posix_only("a bash and process groups of POSIX stand in for those of Windows")
class TestCommands:
    @pytest.mark.parametrize(
        ("script", "output", "code", "ended_in"),
        [
            ("echo one; echo two >&2; exit 3", "one\ntwo\n", 3, ""),
            ("cd sub; false", "", 1, "sub"),
            ("set -e; cd sub; false; echo no", "", 1, "sub"),
            ("set -C; trap 'echo bye' EXIT; cd sub", "bye\n", 0, "sub"),
            ("cat <<'E'\n$HOME 'x' \"y\"\nE", "$HOME 'x' \"y\"\n", 0, ""),
            ('IFS=,; x="a,b"; for one in $x; do echo "$one"; done', "a\nb\n", 0, ""),
            ('for one in *; do echo $one; done; printf %q "$IFS$GOAT_MCP_RUN"', "sub\n$' \\t\\n'", 0, ""),
            ("cat; echo ended", "ended\n", 0, ""),
            ("echo before\nif then", None, 2, ""),
        ],
    )
    async def test_a_script_runs_as_it_is_written(
        self, jobs: GroupJobs, tmp_path: Path, script: str, output: str | None, code: int, ended_in: str
    ) -> None:
        root = tmp_path / "ws"
        (root / "sub").mkdir(parents=True)

        command = _start(script, root)
        assert await command.wait_gone(10)

        text = command.capture.shown(1000).text
        assert text == output.rstrip("\n") if output is not None else text.startswith("before\n")
        assert command.exit_code == code
        assert command.directory == str(root / ended_in).rstrip("/")
        assert os.listdir(tempfile.gettempdir()) == []  # noqa: PTH208  # one look

    async def test_a_long_script_and_output_come_through_whole(self, jobs: GroupJobs, tmp_path: Path) -> None:
        lines = "".join(f"echo 'line {number}'\n" for number in range(20_000))

        command = _start(lines, tmp_path)
        assert await command.wait_gone(30)

        assert command.capture.total == sum(len(f"line {number}\n") for number in range(20_000))

    async def test_its_two_outputs_can_be_kept_apart(self, jobs: GroupJobs, tmp_path: Path) -> None:
        def create(stem: str) -> tuple[Path, int]:
            return tmp_path / stem, os.open(tmp_path / stem, os.O_RDWR | os.O_CREAT)

        streams = SeparateStreams(create)

        command = _start("echo out; echo err >&2", tmp_path, streams=streams)
        assert await command.wait_gone(10)

        assert (streams.stdout.shown(9).text, streams.stderr.shown(9).text) == ("out", "err")

    async def test_what_it_leaves_running_is_seen_and_ended_with_it(self, jobs: GroupJobs, tmp_path: Path) -> None:
        command = _start("sleep 300 & echo started", tmp_path, options=BashOptions(max_processes=9))
        assert await command.wait_ended(10)
        assert command.left_running == ("sleep 300",)
        assert not command.gone.is_set()

        await command.end(EndedBy.STOP)

        assert jobs.limits == [JobLimits(max_processes=9)]
        assert not [process for process in living_processes() if process.group == command.pid]

    async def test_a_time_out_ends_all_of_it(self, jobs: GroupJobs, tmp_path: Path) -> None:
        command = _start("echo begun; (sleep 300); echo no", tmp_path)
        command.end_at(0.3)

        assert await command.wait_gone(10)

        assert command.ended_by is EndedBy.TIMEOUT
        assert command.capture.shown(100).text == "begun"


@pytest.mark.anyio
async def test_bash_without_git_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = ShellBench(tmp_path)
    monkeypatch.setattr(platform, "SYSTEM", "windows")

    with pytest.raises(ToolError, match="no Git for Windows") as refused:
        bench.bash._program("/usr/bin:/bin")  # pyright: ignore[reportPrivateUsage]  # a whole call asks the file system, too
    await asyncio.sleep(0)

    assert refused.value.code is ErrorCode.NOT_CONFIGURED
