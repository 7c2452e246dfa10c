"""A fork bomb of root's is bounded, and what bounds it goes with the command. Bombs here fork 200 times at most, or
have no more than 64 processes."""

from __future__ import annotations

import os
import secrets
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from goat_mcp.commands.sandbox.options import SandboxMode, SandboxOptions
from goat_mcp.processes.bash_options import BashOptions
from goat_mcp.processes.pids_cgroup import OwnCgroup, PidsCgroups, own_cgroup
from tests.commands.sandbox.boxes import needs_bubblewrap
from tests.processes.processes import running, soon, wait_until
from tests.tools.shell_bench import ShellBench

LIMIT = 64
BOMB = """
import os, signal, time
children = []
try:
    while len(children) < 200:
        if not (child := os.fork()):
            time.sleep(20)
            os._exit(0)
        children.append(child)
    print("unlimited", len(children))
except BlockingIOError:
    print("limited at", len(children))
for child in children:
    os.kill(child, signal.SIGKILL)
"""
PYTHON = os.path.realpath(sys.executable)
PREFIX = Path(os.path.realpath(sys.base_prefix))
RUN_BOMB = f"{shlex.quote(PYTHON)} -I -S -c {shlex.quote(BOMB)}"


def _why_not() -> str:
    return PidsCgroups().why_not if sys.platform == "linux" and os.geteuid() == 0 else "needs root on Linux"


needs_cgroup = pytest.mark.skipif(bool(_why_not()), reason=f"no cgroup can be made here: {_why_not()}")


_of_other_tests: set[Path] = set()


def cgroups_there() -> set[Path]:
    """Those that this test has made. Commands of other tests in this process may have left some."""
    return set(own_cgroup().path.glob(f"goat-mcp-{os.getpid()}-*")) - _of_other_tests


@pytest.fixture(autouse=True)
def forget_other_tests() -> None:
    if Path("/proc/self/cgroup").exists():
        _of_other_tests.update(own_cgroup().path.glob(f"goat-mcp-{os.getpid()}-*"))


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[ShellBench]:
    bench = ShellBench(tmp_path, options=BashOptions(max_processes=LIMIT), cgroups=PidsCgroups())
    yield bench
    await bench.close()


@needs_cgroup
@pytest.mark.anyio
class TestAsRoot:
    async def test_f13_20_process_limit_without_a_sandbox(self, bench: ShellBench) -> None:
        result = await bench.run(RUN_BOMB)

        assert result.text.startswith("limited at ")
        assert LIMIT - 4 <= int(result.text.split()[2]) < LIMIT
        assert await soon(lambda: cgroups_there() == set())

    @needs_bubblewrap
    async def test_f13_20_process_limit_in_a_sandbox(self, tmp_path: Path) -> None:
        options = SandboxOptions(sandbox=SandboxMode.REQUIRED, sandbox_read=(PREFIX,))
        bench = ShellBench(tmp_path, options=BashOptions(max_processes=LIMIT), sandbox=options, cgroups=PidsCgroups())

        result = await bench.run(RUN_BOMB)
        await bench.close()

        assert result.text.startswith("limited at ")
        assert LIMIT - 4 <= int(result.text.split()[2]) < LIMIT
        assert await soon(lambda: cgroups_there() == set())

    async def test_f13_20_process_limit_a_bomb_that_never_ends_is_ended(self, bench: ShellBench) -> None:
        # Each of its processes starts two others as long as it can, also while they are being killed.
        bomb = "export BOMB=1; f() { f | f & }; f; wait; sleep 20"

        result = await bench.run(bomb, timeout=1000)

        assert "timeout" in result.text or "timed out" in result.text
        assert await soon(lambda: cgroups_there() == set())

    async def test_a_command_sees_no_descriptor_of_the_cgroup(self, bench: ShellBench) -> None:
        result = await bench.run("ls -l /proc/self/fd; grep -c goat-mcp- /proc/self/cgroup")

        assert "cgroup" not in result.text
        assert result.text.splitlines()[-1] == "1"

    async def test_one_command_at_its_limit_does_not_hinder_another(self, bench: ShellBench) -> None:
        first = await bench.background(RUN_BOMB.replace("except", "    time.sleep(20)\nexcept"))

        assert (await bench.run("echo $(echo works)")).text == "works"
        await bench.end(first)

    async def test_0_is_no_limit(self, tmp_path: Path) -> None:
        bench = ShellBench(tmp_path, options=BashOptions(max_processes=0), cgroups=PidsCgroups())

        result = await bench.run(RUN_BOMB)
        await bench.close()

        assert result.text == "unlimited 200"


CRASHING = """
import anyio, os, signal, sys
from pathlib import Path
from goat_mcp.processes.pids_cgroup import PidsCgroups
from tests.tools.shell_bench import ShellBench

async def main():
    bench = ShellBench(Path(sys.argv[1]), cgroups=PidsCgroups())
    task = await bench.background("echo up; sleep " + sys.argv[2])
    await bench.until_printed(task, "up\\n")
    os.kill(os.getpid(), signal.SIGKILL)

anyio.run(main)
"""


@needs_cgroup
def test_f13_20_process_limit_what_a_crashed_server_left_is_removed_by_the_next(tmp_path: Path) -> None:
    seconds = f"2{secrets.randbelow(10**8):08d}"
    crashed = subprocess.Popen([sys.executable, "-c", CRASHING, str(tmp_path), seconds])
    assert crashed.wait(timeout=60) == -signal.SIGKILL
    assert wait_until(lambda: not running(f"sleep {seconds}"), 10)
    left = set(own_cgroup().path.glob(f"goat-mcp-{crashed.pid}-*"))

    assert PidsCgroups().why_not == ""

    assert len(left) == 1
    assert not any(path.exists() for path in left)


V1_MOUNTS = "36 31 0:36 {root} /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
V2_MOUNTS = "30 23 0:26 {root} {at} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"


@pytest.mark.parametrize(
    ("cgroup", "root", "below"),
    [
        ("8:pids:/\n4:memory:/x\n0::/\n", "/", ""),
        ("3:cpuset:/a\n8:pids:/docker/abc\n", "/", "docker/abc"),
        ("8:pids:/docker/abc\n", "/docker/abc", ""),
        ("5:cpu,pids:/system.slice/goat.service\n", "/", "system.slice/goat.service"),
        ("8:pids:/with:colon\n", "/", "with:colon"),
    ],
)
def test_the_own_cgroup_is_found_in_the_hierarchy_of_pids(tmp_path: Path, cgroup: str, root: str, below: str) -> None:
    (tmp_path / "cgroup").write_text(cgroup)
    (tmp_path / "mountinfo").write_text(V1_MOUNTS.format(root=root))

    found = own_cgroup(str(tmp_path / "cgroup"), str(tmp_path / "mountinfo"))

    assert found == OwnCgroup(Path("/sys/fs/cgroup/pids", below), is_v2=False)
    assert found.join_file == "tasks"


def test_the_own_cgroup_is_found_in_the_unified_hierarchy(tmp_path: Path) -> None:
    own = tmp_path / "cg/user.slice/a.scope"
    own.mkdir(parents=True)
    (own / "cgroup.controllers").write_text("cpu memory pids\n")
    (tmp_path / "cgroup").write_text("0::/user.slice/a.scope\n")
    (tmp_path / "mountinfo").write_text(V2_MOUNTS.format(root="/", at=tmp_path / "cg"))

    assert own_cgroup(str(tmp_path / "cgroup"), str(tmp_path / "mountinfo")) == OwnCgroup(own, is_v2=True)


@pytest.mark.parametrize(
    ("cgroup", "mounts"),
    [
        ("0::/\n", ""),
        ("8:pids:/docker/abc\n", V1_MOUNTS.format(root="/docker/other")),
        ("8:pids:/../other\n", V1_MOUNTS.format(root="/")),
        ("4:memory:/\n", V1_MOUNTS.format(root="/")),
        ("0::/\n", V2_MOUNTS.format(root="/", at="/nonexistent")),
        ("broken", "broken"),
    ],
)
def test_where_there_is_none_this_is_the_reason(tmp_path: Path, cgroup: str, mounts: str) -> None:
    (tmp_path / "cgroup").write_text(cgroup)
    (tmp_path / "mountinfo").write_text(mounts)

    cgroups = PidsCgroups(
        own=lambda: own_cgroup(str(tmp_path / "cgroup"), str(tmp_path / "mountinfo")), is_needed=lambda: True
    )

    assert cgroups.why_not == "no cgroup with the controller pids is mounted"
    assert cgroups.make(10) is None


def test_a_cgroup_that_cannot_be_written_is_left_alone_and_the_reason_is_said(tmp_path: Path) -> None:
    cgroups = PidsCgroups(own=lambda: OwnCgroup(tmp_path, is_v2=False), is_needed=lambda: True)

    assert cgroups.make(10) is None

    assert "pids.max: No such file or directory" in cgroups.why_not
    assert list(tmp_path.iterdir()) == []


def test_none_is_made_for_an_ordinary_user(tmp_path: Path) -> None:
    cgroups = PidsCgroups(own=lambda: OwnCgroup(tmp_path, is_v2=False), is_needed=lambda: False)

    assert cgroups.make(10) is None
    assert list(tmp_path.iterdir()) == []
