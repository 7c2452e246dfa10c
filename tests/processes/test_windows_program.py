"""How programs are found and started on Windows. The text alone: it is the same on every system."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from goat_mcp.core import platform
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.program import run_program
from goat_mcp.processes.windows_environment import kept, overlaid, variable
from goat_mcp.processes.windows_program import UnsafeArgument, find_program, is_script, program_start

NODE = "C:\\Program Files\\nodejs"
ENVIRONMENT = {
    "Path": f'.;bin;\\tools;"{NODE}";D:\\uv',
    "PATHEXT": ".COM;.EXE;.BAT;.CMD;.JS;.PS1",
    "SystemRoot": "C:\\W",
}


def _files(*paths: str) -> Callable[[str], bool]:
    return {path.lower() for path in paths}.__contains__


def _found(name: str, *paths: str) -> str | None:
    files = _files(*paths)
    return find_program(name, ENVIRONMENT, lambda path: files(path.lower()))


def test_an_exe_comes_before_a_cmd_in_the_same_folder() -> None:
    assert _found("npx", f"{NODE}\\npx", f"{NODE}\\npx.ps1", f"{NODE}\\npx.cmd") == f"{NODE}\\npx.cmd"
    assert _found("npx", f"{NODE}\\npx.cmd", f"{NODE}\\npx.exe") == f"{NODE}\\npx.exe"
    assert _found("uvx.EXE", "D:\\uv\\uvx.exe") == "D:\\uv\\uvx.EXE"


@pytest.mark.parametrize("place", ["npx.cmd", ".\\npx.cmd", "bin\\npx.cmd", "\\tools\\npx.cmd"])
def test_nothing_is_found_in_the_current_directory_or_drive(place: str) -> None:
    assert _found("npx", place) is None


@pytest.mark.parametrize("ending", ["", ".ps1", ".js", ".sh"])
def test_what_the_system_cannot_start_is_not_found(ending: str) -> None:
    assert _found("npx", f"{NODE}\\npx{ending}") is None


def test_a_name_with_a_folder_is_not_looked_up() -> None:
    assert _found("C:\\a\\run", "C:\\a\\run.exe") == "C:\\a\\run.exe"
    assert _found("sub\\npx", f"{NODE}\\sub\\npx.cmd") is None


def test_an_exe_starts_with_its_arguments_as_they_are() -> None:
    arguments = ("C:\\a.exe", 'say "100 %"', "a&b")

    assert program_start(arguments, ENVIRONMENT) == (arguments, {})


def test_a_cmd_file_starts_through_the_systems_cmd_with_every_argument_in_quotation_marks() -> None:
    npx = f"{NODE}\\npx.cmd"

    started = program_start([npx, "-y", "@x/y@^1", "a&b|c<d>(e)", "x=1,2;3", "", "C:\\d\\"], ENVIRONMENT)

    assert started.arguments == ("C:\\W\\System32\\cmd.exe", "/d", "/v:off", "/s", "/c", "%GOAT_MCP_CMD_LINE%")
    line = f'"{npx}" "-y" "@x/y@^1" "a&b|c<d>(e)" "x=1,2;3" "" "C:\\d\\\\"'
    assert dict(started.variables) == {"GOAT_MCP_CMD_LINE": line}


@pytest.mark.parametrize("argument", ['"&calc&"', "%PATH%", "100%", "!x!", "a\nb", "a\rb", "a\0b", "\x1a"])
@pytest.mark.parametrize("program", ["C:\\npx.cmd", "C:\\NPX.BAT", "C:\\npx.cmd. ."])
def test_an_argument_that_cmd_would_read_as_more_is_refused_with_what_to_do(argument: str, program: str) -> None:
    with pytest.raises(UnsafeArgument, match=r"an \.exe, or node with the path of its script"):
        program_start([program, argument], ENVIRONMENT)


def test_a_line_that_is_too_long_for_cmd_is_refused() -> None:
    with pytest.raises(UnsafeArgument, match="longer than cmd"):
        program_start(["C:\\npx.cmd", "x" * 8000], ENVIRONMENT)


def test_what_cmd_runs_is_known_by_its_ending_however_it_is_written() -> None:
    assert [is_script(one) for one in ("a.cmd", "a.BAT", "a.cmd ", "a.cmd..", "a.exe", "cmd", "a.cmd.exe")] == [
        True,
        True,
        True,
        True,
        False,
        False,
        False,
    ]


def test_names_of_variables_compare_without_case() -> None:
    ours = {"Path": "old", "SystemRoot": "C:\\W", "AWS_SECRET_ACCESS_KEY": "s"}

    assert kept(ours) == {"Path": "old", "SystemRoot": "C:\\W"}
    assert overlaid(kept(ours), {"PATH": "new"}) == {"SystemRoot": "C:\\W", "PATH": "new"}
    assert variable(ours, "SYSTEMROOT") == "C:\\W"
    assert variable(ours, "TEMP") == ""


@pytest.mark.anyio
async def test_a_program_that_is_only_in_the_current_directory_is_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "HAS_JOB_OBJECTS", True)
    monkeypatch.setattr("goat_mcp.processes.process_guard.system_jobs", lambda: None)
    (tmp_path / "tool.exe").touch(0o755)
    monkeypatch.chdir(tmp_path)

    with pytest.raises(FileNotFoundError, match="no such program on PATH"):
        await run_program(
            ["tool"],
            data=b"",
            directory=tmp_path,
            environment=ENVIRONMENT,
            guard=ProcessGuard(),
            on_output=lambda _: None,
            timeout_s=5,
        )
