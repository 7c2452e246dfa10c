"""R-SHELL-5 against the real thing: scripts that hypothesis makes of real shells and wrappers, fed in every way, run by
real bash. `rm` is a program that leaves a file: where one was left, a rule against it must have seen it coming."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from goat_mcp.commands.shell.script_parsing import read_script
from goat_mcp.commands.shell.script_rules import CommandPattern, denied_by
from tests.repetitions import examples

pytestmark = pytest.mark.skipif(shutil.which("bash") is None or shutil.which("touch") is None, reason="needs bash")

_RM = CommandPattern.parse("rm:*")
_LEFT = frozenset({"x", "y"})
_INNERMOST = (
    *("rm x", "sh", "bash", "bash -s", "sh -s a", "rm y", "cat", "bash /dev/stdin", "source /dev/stdin", "xargs rm"),
    *("xargs -I% rm %", "sh -c sh", 'read x; eval "$x"', "env -S sh", "xargs env", "xargs -i sh -c {}"),
)
_WRAPPERS = (
    *("nice", "nice -n 5", "nice -5", "timeout 5", "timeout -k 1 5", "timeout --foreground 5", "timeout -vk 1 5"),
    *("stdbuf -oL", "stdbuf -o L", "nohup", "env", "env -u A", "env -", "env -C .", "flock l", "flock --wait 1 l"),
    *("bash -s", "command", "exec", "time", "xargs", "xargs -n 1", "xargs -I% sh -c %", "!", "sh", "bash -x", "coproc"),
    *("find l -exec", "env A=b", "xargs --replace sh -c"),
)
_OF_TEXT = (
    *("env -S", "env -iS", "env -vS", "env --split-string", "env -uA -S", "bash -c", "sh -ec", "bash -o pipefail -c"),
    *("eval", "builtin eval", "flock l -c", "trap"),
)
_FEEDS = (
    *("{}", "{} <<< 'rm x'", "{} <<E\nrm x\nE", "{} <<'E'\nrm x\nE\n", "echo 'rm x' | {}", "{} < <(echo rm x)"),
    *("{{ {}; }} <<< 'rm x'", "exec <<< 'rm x'; {}", "f() {{ {}; }}; f <<< 'rm x'"),
)


@st.composite
def _scripts(draw: st.DrawFn) -> str:
    script = draw(st.sampled_from(_INNERMOST))
    for wrapper in draw(st.lists(st.sampled_from((*_WRAPPERS, *_OF_TEXT)), max_size=3)):
        if wrapper == "trap":
            script = f"trap {shlex.quote(script)} EXIT"
        elif wrapper in _OF_TEXT:
            script = f"{wrapper} {shlex.quote(script)}"
        elif wrapper.startswith("find"):
            script = f"{wrapper} {script} \\;"
        else:
            script = f"{wrapper} {script}"
    return draw(st.sampled_from(_FEEDS)).format(script)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("real")
    (folder / "bin").mkdir()
    (folder / "work").mkdir()
    touch = shutil.which("touch")
    assert touch is not None
    shutil.copy(touch, folder / "bin" / "rm")
    return folder


def _left_by(place: Path, script: str) -> frozenset[str]:
    work = place / "work"
    for file in work.iterdir():
        file.unlink()
    (work / "l").touch()
    process = subprocess.Popen(
        ["bash", "--noprofile", "--norc", "-c", script],
        cwd=work,
        env={"PATH": f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": str(work)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=20)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return _LEFT & {file.name for file in work.iterdir()}


@settings(
    max_examples=int(os.environ.get("GOAT_MCP_TEST_EXAMPLES", examples(150))),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(script=_scripts())
@example(script="env -S sh <<< 'rm x'")
@example(script="echo 'rm x' | env -S sh")
@example(script="bash -c sh <<< 'rm x'")
@example(script="timeout -vk 1 5 rm x")
def test_r_shell_5_whatever_starts_a_program_it_is_seen_or_its_hiding_is_said(place: Path, script: str) -> None:
    read = read_script(script)
    if read.hidden or denied_by(read, _RM):
        return  # refused: nothing is run

    assert _left_by(place, script) == set(), f"{script!r} ran rm, and only {read.all_commands} were seen"


@pytest.mark.parametrize("script", ["rm x", "env -S sh <<< 'rm x'", "echo 'rm x' | xargs -I% sh -c %"])
def test_what_runs_leaves_a_file(place: Path, script: str) -> None:
    assert _left_by(place, script) == {"x"}
