"""R-PROC-2b: no file of the kernel's below /proc and /sys can be opened for writing in a sandbox. Files are opened and
closed, nothing is ever written to them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from goat_mcp.commands.sandbox.bubblewrap import Bubblewrap, find_bubblewrap
from goat_mcp.commands.sandbox.confinement import Bounds, Job, Launch
from goat_mcp.commands.sandbox.landlock import Landlock
from goat_mcp.commands.sandbox.options import SandboxOptions
from goat_mcp.commands.sandbox.placeholders import Placeholders
from tests.commands.sandbox.boxes import LIMIT_S, Box, needs_bubblewrap
from tests.commands.sandbox.landlocked import needs_landlock
from tests.commands.sandbox.landlocked import run as run_landlocked
from tests.tools.shell_bench import ShellBench

NOBODY = 65534
OPENED = (
    'n=0; for d in {places}; do while IFS= read -r f; do n=$((n+1)); {{ : >> "$f"; }} 2>/dev/null && echo "$f"; '
    "done < <(find \"$d\" -regextype posix-extended -regex '/proc/([0-9]+|self|thread-self)' -prune -o -type f -print "
    "2>/dev/null); done; echo looked at $n"
)
"""Prints every file that could be opened, without O_TRUNC."""
EVERYWHERE = OPENED.format(places="/proc /sys")
needs_root = pytest.mark.root_only("gives its processes another user")


def looked_at(output: str) -> tuple[list[str], int]:
    *opened, last = output.splitlines()
    return opened, int(last.removeprefix("looked at "))


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


@needs_bubblewrap
class TestBubblewrap:
    def test_f13_01_no_file_of_the_kernel_can_be_opened_for_writing(self, box: Box) -> None:
        opened, number = looked_at(box.run(EVERYWHERE))

        assert opened == []
        assert number > 30, "each of them is looked at, or none would be found"

    @needs_root
    def test_f13_01_nor_if_an_ordinary_user_starts_the_sandbox(self, box: Box) -> None:
        bounds = replace(box.bounds(), writable=(), pinned=(), read_only=(), absent=(), hidden=(), watched=())
        job = replace(box.job(EVERYWHERE, bounds), directory=Path("/"))

        process, finish = box.start(job, user=NOBODY, group=NOBODY, extra_groups=[])
        output, _ = process.communicate(timeout=LIMIT_S)
        finish()

        opened, number = looked_at(output)
        assert opened == []
        assert number > 30

    def test_f13_01_files_of_the_workspace_belong_to_whoever_runs_the_gateway(self, box: Box) -> None:
        box.run("touch made; mkdir folder")

        assert {(path.stat().st_uid, path.stat().st_gid) for path in box.root.iterdir()} == {
            (os.geteuid(), os.getegid())
        }

    def test_what_a_program_has_open_can_still_be_written_by_its_number(self, box: Box) -> None:
        output = box.run(
            "echo 1 > /proc/self/fd/1; echo 2 > /dev/stdout; echo 3 > /dev/fd/2; echo 4 > >(cat); "
            "exec 5> file; echo 5 > /proc/$$/fd/5; cat file; cat <(echo 6); wait"
        )

        assert sorted(output.split()) == ["1", "2", "3", "4", "5", "6"]

    @needs_root
    def test_f13_01_a_proc_that_is_mounted_in_the_workspace_cannot_be_written_either(self, box: Box) -> None:
        other = box.root / "other system/proc"
        other.mkdir(parents=True)
        code = (
            "import sys; from pathlib import Path; from tests.commands.sandbox.boxes import Box\n"
            "print(Box(Path(sys.argv[1])).run(sys.argv[2]), end='')"
        )
        script = OPENED.format(places="'other system/proc/sys'") + "; touch 'other system/file'"
        mounted = 'mount --make-rprivate / && mount -t proc proc "$1" && shift && exec "$@"'

        ran = subprocess.run(
            ["unshare", "-m", "sh", "-c", mounted, "sh", str(other), sys.executable, "-c", code, box.folder, script],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )

        opened, number = looked_at(ran.stdout)
        assert opened == []
        assert number > 30
        assert (box.root / "other system/file").exists()

    def test_the_trial_succeeds_with_all_walls(self, tmp_path: Path) -> None:
        assert Bubblewrap(Placeholders(tmp_path)).missing() == ""


LEAKS: dict[str, str] = {
    "without the remount": "drop --remount-ro /proc",
    "proc mounted again": "add --proc /proc",
    "a second proc": "add --proc /tmp/proc",
    "another name of proc": "add --bind /proc /run/p",
    "sys": "add --bind /sys /sys",
    "sys elsewhere": "add --bind /sys /tmp/sys",
    "devices of sys": "add --dev-bind /sys /sys",
    "settings of the kernel": "add --bind /proc/sys /proc/sys",
    **{
        f"one folder: {path}": f"add --bind {path} {path}"
        for path in (
            *("/proc/sys/kernel", "/proc/sys/vm", "/proc/sys/net", "/proc/sys/fs", "/proc/sys/user", "/proc/sys/debug"),
            *("/proc/irq", "/proc/bus", "/proc/fs", "/proc/pressure", "/proc/driver", "/proc/tty", "/proc/acpi"),
            *("/sys/fs", "/sys/kernel", "/sys/class", "/sys/block", "/sys/bus", "/sys/devices", "/sys/module"),
            *("/sys/power", "/sys/firmware", "/sys/dev", "/sys/fs/cgroup", "/sys/kernel/mm"),
        )
        if Path(path).is_dir()
    },
    **{
        f"one file: {path}": f"add --bind {path} {path}"
        for path in (
            *("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/vm/swappiness", "/proc/pressure/cpu"),
            *("/sys/power/state", "/proc/timer_list", "/proc/sys/net/ipv4/ip_forward"),
        )
        if Path(path).exists()
    },
}
"""What a bubblewrap that keeps less than ours would be started with."""

_CHANGED_START = """#!{python} -I
import os, sys
at = sys.argv.index("--args") + 1
words = os.fdopen(os.dup(int(sys.argv[at])), "rb").read().split(b"\\0")[:-1]
how, *changed = {change!r}.encode().split()
if how == b"drop":
    first = next(i for i in range(len(words)) if words[i : i + len(changed)] == changed)
    del words[first : first + len(changed)]
else:
    at_devices = words.index(b"--dev")
    words[at_devices:at_devices] = changed
given = os.memfd_create("changed", 0)
os.write(given, b"".join(word + b"\\0" for word in words))
os.lseek(given, 0, os.SEEK_SET)
sys.argv[at] = str(given)
os.set_inheritable(given, True)
os.execv({bwrap!r}, ["bwrap", *sys.argv[1:]])
"""


@needs_bubblewrap
@pytest.mark.parametrize("leak", LEAKS)
def test_f13_01_the_trial_fails_if_a_file_of_the_kernel_could_be_opened_for_writing(tmp_path: Path, leak: str) -> None:
    start = tmp_path / "bwrap"
    start.write_text(
        _CHANGED_START.format(python=os.path.realpath(sys.executable), change=LEAKS[leak], bwrap=find_bubblewrap())
    )
    start.chmod(0o755)

    missing = Bubblewrap(Placeholders(tmp_path), find=lambda: str(start)).missing()

    assert "could be opened for writing" in missing


PATHS_OF_THE_KERNEL = (
    *(
        "/proc",
        "/proc/sys/kernel/random",
        "/proc/sysrq-trigger",
        "/proc/self",
        "/sys/power",
        "/sys/kernel/mm/hugepages",
    ),
    *sorted(str(path) for path in Path("/proc/sys/kernel").glob("*") if path.is_file())[:40],
    "link to one",
)


@pytest.mark.anyio
@needs_bubblewrap
@pytest.mark.parametrize("sandbox", ["auto", "required"])
async def test_f13_01_no_setting_makes_a_file_of_the_kernel_writable(tmp_path: Path, sandbox: str) -> None:
    link = tmp_path / "link"
    link.symlink_to("/proc/sys/vm")
    paths = [str(link) if path == "link to one" else path for path in PATHS_OF_THE_KERNEL]
    said: dict[str, str] = {}
    for path in filter(os.path.exists, paths):
        bench = ShellBench(tmp_path, sandbox=SandboxOptions.model_validate({"sandbox": sandbox, "sandbox_write": path}))
        said[path] = (await bench.run("echo ran")).text
        await bench.close()

    assert len(said) >= 30
    assert {path: text for path, text in said.items() if "no command in a sandbox may write" not in text} == {}


@needs_landlock
def test_f13_01_landlock_opens_no_file_of_the_kernel_for_writing(tmp_path: Path) -> None:
    ran = run_landlocked("/bin/bash", "-c", EVERYWHERE, bounds=Bounds(writable=(tmp_path.resolve(),)))

    opened, number = looked_at(ran.stdout)
    assert opened == []
    assert number > 30


@needs_landlock
@needs_root
def test_f13_01_the_trial_of_landlock_fails_if_a_file_of_the_kernel_could_be_opened_for_writing() -> None:
    class Unrestricted(Landlock):
        def launch(self, job: Job) -> Launch:
            return Launch(arguments=job.arguments, environment=job.environment, directory="/")

    assert "could be opened for writing" in Unrestricted().missing()
