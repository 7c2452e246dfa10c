"""When a resident process ends, and what it says instead of a fork."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import psutil
import pytest

import goat_mcp
from tests.cli.resident.own_home import RESIDENT, Home, how_started, is_alive, server_pid, wait_until
from tests.e2e.wire import Wire

pytestmark = [pytest.mark.e2e, pytest.mark.real_processes]


class Build:
    """A copy of goat-mcp that can be changed."""

    def __init__(self, folder: Path) -> None:

        package = Path(goat_mcp.__file__).parent
        shutil.copytree(package, folder / "goat_mcp", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy2(package.parent / "goat_mcp_launch.py", folder)
        self.folder = folder

    def change(self, file: str, old: str, new: str) -> None:
        path = self.folder / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))


@pytest.fixture
def build(tmp_path: Path) -> Build:
    return Build(tmp_path / "build")


def _of(one: Home, build: Build) -> Home:
    return Home(one.folder, one.python, {"PYTHONPATH": str(build.folder)})


def test_it_ends_when_nobody_has_used_it_for_a_while(one_home: Home) -> None:
    with one_home.resident(idle_s=1.0) as resident:
        with one_home.fork() as session:
            assert psutil.Process(server_pid(session)).ppid() == resident.pid
            with pytest.raises(psutil.TimeoutExpired):
                resident.wait(2)

        assert resident.wait(20) == 0
    assert not list(one_home.sockets.glob("*.sock"))


def test_it_ends_when_its_folder_is_removed(one_home: Home) -> None:
    with one_home.resident(look_s=0.3) as resident:
        shutil.rmtree(one_home.sockets)

        assert resident.wait(20) == 0


def test_it_leaves_the_socket_of_its_successor_alone(one_home: Home) -> None:
    with one_home.resident(look_s=1.5) as resident:
        shutil.rmtree(one_home.sockets)
        with one_home.resident() as successor:
            assert resident.wait(20) == 0

            with one_home.fork() as session:
                assert psutil.Process(server_pid(session)).ppid() == successor.pid


def test_a_start_for_which_no_process_can_be_forked_serves_by_itself(one_home: Home) -> None:
    failing = "def fork(): raise BlockingIOError(11, 'Resource temporarily unavailable')\nos.fork = fork"
    with one_home.resident(before=failing) as resident, one_home.server() as served:
        assert how_started(served) != RESIDENT
        assert served.text("Bash", {"command": "echo served"}).strip() == "served"
        assert is_alive(resident.pid)


def test_it_forks_only_while_it_has_one_thread(one_home: Home) -> None:
    another = "import threading\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()"
    with one_home.resident(before=another) as resident, one_home.server() as served:
        assert how_started(served) == "the resident process has threads"
        assert not resident.children()


def test_it_ends_if_all_that_it_did_was_to_refuse(one_home: Home) -> None:
    """Another one, which the next host starts, may suit the hosts."""
    refusing = "def join_host(host): raise it.HostDiffers('it is Monday')\nit.join_host = join_host"
    with one_home.resident(before=refusing, idle_s=6.0) as resident:
        asked = 0
        while resident.is_running() and resident.status() != psutil.STATUS_ZOMBIE:
            with one_home.server() as served:
                asked += how_started(served) == "it is Monday"
            assert asked < 30

        assert asked
        assert resident.wait(20) == 0


def test_sessions_outlive_goat_mcp_itself(one_home: Home, build: Build) -> None:
    home = _of(one_home, build)
    with home.resident(look_s=0.3) as resident, home.fork() as session:
        (build.folder / "goat_mcp").rename(build.folder / "gone")
        wait_until(lambda: not list(home.sockets.glob("*.sock")))

        assert is_alive(resident.pid)
        assert session.process.stdin is not None
        session.process.stdin.close()
        assert session.process.wait(30) == 0


def test_a_new_file_in_a_checkout_is_no_new_build(one_home: Home, build: Build) -> None:
    home = _of(one_home, build)
    program = "import goat_mcp_launch as it; print(it.build_name())"
    (build.folder / "pyproject.toml").touch()
    before = home.run("-c", program)
    (build.folder / "notes.txt").touch()

    assert home.run("-c", program) == before
    (build.folder / "goat_mcp/more.py").touch()
    assert home.run("-c", program) != before


def test_a_fork_that_fails_before_it_serves_is_not_missed(one_home: Home) -> None:
    """It has said that it is ready, and the launcher has said go."""
    failing = "def become(*words): raise OSError('no such folder')\nit.become = become"
    with one_home.resident(before=failing), one_home.server() as served:
        how = how_started(served)
        assert "no such folder" in how or "cannot be used" in how
        assert served.text("Bash", {"command": "echo served"}).strip() == "served"


@pytest.mark.root_only("mounts a file system in a namespace of its own")
@pytest.mark.parametrize("state", ["full", "read-only"])
def test_a_start_is_served_if_nothing_can_be_written_to_the_folder(one_home: Home, state: str) -> None:
    run = one_home.runtime
    make = f"mount -t tmpfs -o size=4k,mode=0700 tmpfs {run} && mkdir -m 0700 {run}/goat-mcp"
    spoil = f"mount -o remount,ro {run}" if state == "read-only" else f"head -c 1M /dev/zero >{run}/fill 2>/dev/null"
    if subprocess.run(["unshare", "-m", "sh", "-c", make], check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    words = ["unshare", "-m", "sh", "-c", f'{make}; {spoil}; exec "$@"', "-", *one_home.python]
    workspace = one_home.folder / "ws"
    workspace.mkdir()
    with Wire([*words, "-m", "goat_mcp", "serve"], one_home.environment, workspace) as served:
        served.handshake()

        how = how_started(served)
        assert ("No space left" if state == "full" else "Read-only file system") in how
        assert served.text("Bash", {"command": "echo served"}).strip() == "served"


def test_an_upgrade_leaves_running_sessions_alone_and_serves_the_next(one_home: Home, build: Build) -> None:
    home = _of(one_home, build)
    with home.resident(look_s=0.3) as old:
        with home.fork() as session:
            assert psutil.Process(server_pid(session)).ppid() == old.pid
            build.change("goat_mcp/cli/resident/preloading.py", '"""What', '"""Changed. What')

            with home.server() as first:
                assert how_started(first) == "the resident process was not running; it is started now"
            with home.fork() as second:
                assert psutil.Process(server_pid(second)).ppid() != old.pid
            assert session.text("Bash", {"command": "echo on"}).strip() == "on"
            assert is_alive(old.pid)

        assert old.wait(20) == 0


def test_two_builds_serve_side_by_side(one_home: Home, build: Build) -> None:
    build.change("goat_mcp/server/run.py", '"""From settings', '"""Another build: from settings')
    other = _of(one_home, build)
    with one_home.resident() as one, other.resident() as two, one_home.fork() as ours, other.fork() as theirs:
        assert psutil.Process(server_pid(ours)).ppid() == one.pid
        assert psutil.Process(server_pid(theirs)).ppid() == two.pid


def test_a_resident_process_that_cannot_start_is_tried_every_half_minute(one_home: Home, build: Build) -> None:
    build.change(
        "goat_mcp/cli/resident/preloading.py",
        "def preload() -> list[object]:",
        "raise ImportError('broken')\ndef preload():",
    )
    home = _of(one_home, build)
    said: list[str] = []
    for age_s in (0, 0, 60):
        for lock in home.sockets.glob("*.lock"):
            changed_s = time.time() - age_s
            os.utime(lock, (changed_s, changed_s))
        with home.server() as served:
            said.append(how_started(served))
            wait_until(lambda: not home.residents())

    started = "the resident process was not running; it is started now"
    assert said == [started, "the resident process did not come up when it was last started", started]


def test_the_launcher_loads_nothing_of_ours_and_little_else(one_home: Home) -> None:
    one_home.warm()
    program = "import sys, goat_mcp_launch as it; it.hand_over(); print(*sys.modules)"
    bare = one_home.run("-I", "-c", "import sys; print(*sys.modules)").split()

    loaded = one_home.run("-c", program, "serve").split()

    assert not [name for name in loaded if name.partition(".")[0] == "goat_mcp"]
    allowed = {"goat_mcp_launch", "_socket", "sitecustomize", "usercustomize", "select", "_imp", "posix", "time"}
    assert set(loaded) - set(bare) <= allowed
