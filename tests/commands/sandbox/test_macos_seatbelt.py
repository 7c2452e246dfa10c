"""How a command starts under Seatbelt, and what decides that it is used. A double stands for sandbox-exec: no Mac."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from goat_mcp.commands.sandbox import macos_seatbelt
from goat_mcp.commands.sandbox import sandbox as sandbox_module
from goat_mcp.commands.sandbox.confinement import Bounds, Confinement
from goat_mcp.commands.sandbox.macos_seatbelt import SANDBOX_EXEC, Seatbelt, path_on_disk
from goat_mcp.commands.sandbox.options import SandboxMode, SandboxOptions
from goat_mcp.commands.sandbox.placeholders import Placeholders
from goat_mcp.commands.sandbox.sandbox import SandboxState
from goat_mcp.core import platform
from goat_mcp.gateway.status.doctor import sandbox_findings
from tests.commands.sandbox.boxes import Box, git, names
from tests.commands.sandbox.seatbelt_rules import Profile
from tests.commands.sandbox.test_seatbelt_profile import MAKE, READ, WRITE, proxy
from tests.tools.shell_bench import ShellBench, fact

pytestmark = pytest.mark.anyio
SAYS_HOW_IT_WAS_STARTED = """#!/bin/sh
echo "$@" >>{log}
[ "$1" = -f ] && [ "$3" = -- ] || exit 64
cp "$2" {log}.profile
shift 3
{trial}
exec "$@"
"""
OBEYS = """case "$3" in *'mkdir absent; mkdir ABSENT'*)
    cd "$5"; echo inside >inside; : >seen; exec /bin/bash -c ': 3<>"/dev/tcp/127.0.0.1/$1"' bash "$8";;
esac"""
"""The trial as it goes in a sandbox that does all it should; what comes after it is not confined."""


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Private folders are made here."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def double(folder: Path, trial: str = OBEYS) -> str:
    program = folder / "double" / "sandbox-exec"
    program.parent.mkdir(exist_ok=True)
    program.write_text(SAYS_HOW_IT_WAS_STARTED.format(log=folder / "log", trial=trial))
    program.chmod(0o755)
    return str(program)


def seatbelt(box: Box, trial: str = OBEYS, **options: Any) -> Seatbelt:
    return Seatbelt(box.placeholders, program=double(box.folder, trial), **options)


def test_the_program_is_the_systems_own_one_whatever_path_says(
    box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(double(tmp_path)).parent), prepend=os.pathsep)
    way = Seatbelt(box.placeholders)

    launch = way.launch(box.job("true"))
    launch.finish()

    assert launch.arguments[0] == SANDBOX_EXEC == "/usr/bin/sandbox-exec"
    assert way.missing() == "this system has no /usr/bin/sandbox-exec"
    assert not (tmp_path / "log").exists()


def test_a_command_starts_with_its_profile_in_a_private_file_and_nothing_stays(box: Box, temporary: Path) -> None:
    job = box.job("pwd; echo $MARK $TMPDIR $HOME", HOME=str(box.folder), SSH_AUTH_SOCK="/agent")
    launch = seatbelt(box).launch(replace(job, bounds=replace(job.bounds, home=box.folder)))
    (private,) = temporary.iterdir()
    profile = private / "profile"

    assert launch.arguments[1:] == ("-f", str(profile), "--", *job.arguments)
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert launch.environment == {
        "PATH": "/usr/bin:/bin",
        "MARK": "1",
        "TMPDIR": f"{private}/tmp",
        "HOME": f"{private}/home",
    }
    assert (launch.directory, launch.own_fds, launch.has_process_namespace) == (str(box.root), (), False)
    rules = Profile.of(profile.read_text())
    assert [rules.allows(MAKE, f"{private}/{name}/x") for name in ("tmp", "home", "")] == [True, True, False]
    assert not rules.allows(WRITE, str(profile))

    assert box.end_of(launch) == f"{box.root}\n1 {private}/tmp {private}/home\n"

    assert names(temporary) == []


def test_the_sessions_temporary_folder_is_reached_though_it_lies_in_what_is_hidden(box: Box) -> None:
    folder = box.state / "sandbox/tmp/session"
    folder.mkdir(parents=True)
    launch = seatbelt(box).launch(box.job("true", replace(box.bounds(), temporary=folder)))
    rules = Profile.of(Path(launch.arguments[2]).read_text())
    launch.finish()

    assert launch.environment["TMPDIR"] == str(folder)
    assert rules.allows(MAKE, str(folder / "x")) and rules.allows(READ, str(folder / "x"))
    assert not rules.allows(READ, str(box.state / "rules")) and not rules.allows(MAKE, str(folder.parent / "x"))


def test_a_visible_home_stays_the_home_and_the_proxys_variables_are_set(box: Box) -> None:
    access = replace(proxy(4711), environment={"HTTPS_PROXY": "http://127.0.0.1:4711"})
    bounds = replace(box.bounds(), home=box.root, proxy=access)
    launch = seatbelt(box).launch(box.job("true", bounds, HOME=str(box.root)))
    launch.finish()

    assert launch.environment["HOME"] == str(box.root)
    assert launch.environment["HTTPS_PROXY"] == "http://127.0.0.1:4711"


def test_names_that_must_not_be_made_need_no_placeholder_and_what_git_would_obey_is_set_aside(box: Box) -> None:
    git(box.root, "init", "-q")
    way = seatbelt(box)
    launch = way.launch(box.job("ls -A; echo evil >.git/config.worktree"))

    output = box.end_of(launch)

    assert output == ".git\n"
    assert names(box.root) == [".git"]
    assert "set aside" in box.said[0] and "config.worktree" in box.said[0]
    assert not (box.root / ".git/config.worktree").exists()


def test_a_path_that_is_gone_is_refused_and_nothing_stays(box: Box, temporary: Path) -> None:
    with pytest.raises(FileNotFoundError):
        seatbelt(box).launch(box.job("true", Bounds(writable=(box.folder / "gone",))))

    assert names(temporary) == []


def test_rules_are_about_paths_as_the_disk_has_them(box: Box) -> None:
    def on_disk(path: Path) -> Path:
        return Path(str(path).replace("Secret", "secret"))

    bounds = Bounds(writable=(box.root,), hidden=(box.root / "Secret",), read_only=(box.root / "Secretary",))
    launch = seatbelt(box, on_disk=on_disk).launch(box.job("true", bounds))
    rules = Profile.of(Path(launch.arguments[2]).read_text())
    launch.finish()

    assert not rules.allows(READ, f"{box.root}/secret")
    assert not rules.allows(WRITE, f"{box.root}/secretary")
    assert path_on_disk(box.root) == box.root


def test_a_trial_that_goes_as_it_should_is_enough(box: Box, temporary: Path) -> None:
    assert seatbelt(box).missing() == ""
    assert names(temporary) == []


def respelled(word: str, link: str) -> str:
    """The trial on a disk that has a path under a second spelling, in a sandbox that knows only the first: what the
    line with `word` does is done."""
    return OBEYS.replace(
        ": >seen",
        f": >seen; {link}; (line=$(printf '%s\\n' \"$3\" | grep {word} | sed s#/System/Volumes/Data#data#g); "
        'set -- "$5" "$6"; eval "$line")',
    )


SPELLED = "a file outside, or a hidden one, could be read; a protected file could be changed"
TRIALS = {
    # It exists and confines nothing.
    "": (
        "a file outside, or a hidden one, could be read; a file outside could be written; a protected file could be "
        "changed; a protected name could be made; a process outside could be ended; another port than the proxy's "
        "could be reached"
    ),
    OBEYS.replace("echo inside >inside; ", ""): "a file in the workspace cannot be written",
    OBEYS.replace(": >seen", "cat secret >seen"): "a file outside, or a hidden one, could be read",
    OBEYS.replace(": >seen", "echo >../new"): "a file outside could be written",
    OBEYS.replace(": >seen", "echo >../outside"): "a file outside could be written",
    OBEYS.replace(": >seen", "mv kept moved"): "a protected file could be changed",
    OBEYS.replace(": >seen", 'ln "kept/$6" x; echo bad >x'): "a protected file could be changed",
    respelled("KEPT", "ln -s kept KEPT; ln -s secret SECRET"): SPELLED,
    respelled("Volumes", "ln -s / data"): SPELLED,
    OBEYS.replace(": >seen", "mkdir ABSENT"): "a protected name could be made",
    OBEYS.replace(": >seen", 'kill -KILL "$7" && echo >ended'): "a process outside could be ended",
    OBEYS.replace('bash "$8"', 'bash "$9"'): (
        "the proxy could not be reached; another port than the proxy's could be reached"
    ),
}


@pytest.mark.parametrize(("trial", "why"), TRIALS.items(), ids=TRIALS.values())
def test_a_trial_that_shows_a_hole_refuses_the_sandbox(box: Box, temporary: Path, trial: str, why: str) -> None:
    assert seatbelt(box, trial).missing() == f"Seatbelt does not do here what it should: {why}"
    assert names(temporary) == []


def test_a_sandbox_exec_that_fails_is_named_with_its_first_line(box: Box) -> None:
    way = seatbelt(box, "echo 'sandbox-exec: profile: unbound variable' >&2; exit 65")

    assert way.missing() == "Seatbelt does not work here: sandbox-exec: profile: unbound variable"


def confinements_of(bench: ShellBench) -> list[Confinement]:
    make: Any = object.__getattribute__(bench.sandbox, "_confinements")
    return list(make())


@pytest.mark.parametrize(
    ("system", "ways"),
    [("linux", ["bubblewrap", "landlock"]), ("macos", ["seatbelt"]), ("windows", [])],
)
async def test_each_system_has_its_ways_to_confine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str, ways: list[str]
) -> None:
    monkeypatch.setattr(platform, "HAS_NAMESPACES", system == "linux")
    monkeypatch.setattr(platform, "HAS_SEATBELT", system == "macos")
    bench = ShellBench(tmp_path)

    assert [way.name for way in confinements_of(bench)] == ways

    await bench.close()


@pytest.fixture
def mac(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "SYSTEM", "macos")
    monkeypatch.setattr(platform, "HAS_NAMESPACES", False)
    monkeypatch.setattr(platform, "HAS_SEATBELT", True)


async def bench_of(folder: Path, mode: SandboxMode, trial: str, monkeypatch: pytest.MonkeyPatch) -> ShellBench:
    monkeypatch.setattr(macos_seatbelt, "SANDBOX_EXEC", double(folder, trial))
    bench = ShellBench(folder, sandbox=SandboxOptions(sandbox=mode))
    way = Seatbelt(Placeholders(bench.state.folder("sandbox")), program=macos_seatbelt.SANDBOX_EXEC)
    object.__setattr__(bench.sandbox, "_confinements", lambda: (way,))
    return bench


async def test_bash_runs_in_it_and_says_so(tmp_path: Path, mac: None, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = await bench_of(tmp_path, SandboxMode.REQUIRED, OBEYS, monkeypatch)

    result = await bench.run("echo hi >made; pwd; exit 3")

    assert (fact(result, "sandbox"), (bench.root / "made").read_text()) == ("seatbelt", "hi\n")
    assert str(bench.root) in result.text and "3" in result.text
    assert await bench.sandbox.state() == SandboxState("seatbelt", SandboxMode.REQUIRED)
    assert any("127.0.0.1" in limit for limit in bench.sandbox.limits)
    await bench.close()


async def test_auto_falls_back_to_none_with_the_trials_reason(
    tmp_path: Path, mac: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = await bench_of(tmp_path, SandboxMode.AUTO, "exit 71", monkeypatch)

    result = await bench.run("echo hi")

    assert result.text == "hi\n[unsandboxed: Seatbelt does not work here: exit code 71]"
    assert bench.sandbox.why_unconfined() == "Seatbelt does not work here: exit code 71"
    assert fact(result, "sandbox") == "none"
    await bench.close()


async def test_required_refuses_with_the_trials_reason_and_the_remedy(
    tmp_path: Path, mac: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = await bench_of(tmp_path, SandboxMode.REQUIRED, "exit 71", monkeypatch)

    result = await bench.run("echo hi >made")

    assert (result.error_code, names(bench.root)) == ("E_SANDBOX", [])
    assert "Seatbelt does not work here: exit code 71" in result.text
    await bench.close()


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the sandbox alone: files are those of the system that runs the test."""
    monkeypatch.setattr(sandbox_module, "platform", SimpleNamespace(SYSTEM="windows"))
    monkeypatch.setattr(platform, "HAS_NAMESPACES", False)
    monkeypatch.setattr(platform, "HAS_SEATBELT", False)


@pytest.mark.parametrize("mode", [SandboxMode.AUTO, SandboxMode.REQUIRED])
async def test_windows_has_none_and_the_text_names_wsl(tmp_path: Path, windows: None, mode: SandboxMode) -> None:
    bench = ShellBench(tmp_path, sandbox=SandboxOptions(sandbox=mode))
    why = "goat-mcp has no sandbox on Windows, only in WSL 2"

    # Not run: no system but the real one has its shell. `auto` asks because of this reason.
    assert bench.sandbox.why_unconfined() == why
    if mode is SandboxMode.AUTO:
        assert await bench.sandbox.state() == SandboxState("none", mode, why)
    else:
        result = await bench.run("echo hi >made")
        assert (result.error_code, names(bench.root)) == ("E_SANDBOX", [])
        assert why in result.text
    await bench.close()


@pytest.mark.parametrize(("system", "remedy"), [("linux", "bubblewrap"), ("windows", "WSL 2"), ("macos", SANDBOX_EXEC)])
def test_doctor_names_what_helps_on_this_system(monkeypatch: pytest.MonkeyPatch, system: str, remedy: str) -> None:
    monkeypatch.setattr(platform, "SYSTEM", system)

    (finding,) = sandbox_findings(SandboxState("none", SandboxMode.REQUIRED, "why"))

    assert remedy in finding.fix and "why" in finding.detail
