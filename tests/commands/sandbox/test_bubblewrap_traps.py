"""The ten traps of R-PROC-3 by their numbers, each in a real bubblewrap."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from goat_mcp.commands.sandbox.bubblewrap import Bubblewrap
from goat_mcp.commands.sandbox.options import Network, SandboxOptions
from goat_mcp.commands.sandbox.placeholders import Placeholders
from tests.commands.sandbox.boxes import Box, git, names, needs_bubblewrap
from tests.processes.processes import alive, running, wait_until

pytestmark = needs_bubblewrap
ARMED = "until grep -q '^State:.S' /proc/1/status; do :; done; "
"""bubblewrap's process inside asks for the signal of its parent's death before it sleeps; until then that is missed,
which is why commands have a guard beside (R-STOP-3)."""


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def test_trap_1_no_capability_is_left_whoever_runs_the_gateway(box: Box) -> None:
    # BX-14 too
    output = box.run("grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)' /proc/self/status; id -u; unshare -U true; unshare -m true")

    assert output.split()[1:10:2] == ["0" * 16] * 5
    assert output.split()[10] == "65534"
    assert output.count("unshare failed") == 2


def test_trap_2_a_unix_socket_in_reach_cannot_be_connected_to(box: Box) -> None:
    script = "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.connect('s')\""
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(box.root)  # a socket's path is short
        try:
            server.bind("s")
        finally:
            os.chdir(here)
        server.listen()

        output = box.run(script)

    assert "PermissionError" in output or "python3: command not found" in output
    assert box.run("ls /run /var").split() == ["/run:", "/var:", "tmp"]


def test_trap_3_the_first_process_knows_no_variable_of_ours(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INNOCENT", "canary-3")

    output = box.run("cat /proc/1/environ /proc/self/environ; cat /proc/1/cmdline; env", GIVEN="given-3")

    assert "canary-3" not in output
    assert "GIVEN=given-3" in output
    assert "given-3" not in Path("/proc/self/cmdline").read_text()


@pytest.mark.parametrize("beside", ["../outside.txt", "../new/", "/outside.txt", "/etc/outside.txt"])
def test_what_is_written_beside_the_workspace_is_refused_and_not_lost(box: Box, beside: str) -> None:
    # Of what the tool case bash-012 says. Directories that lead to the workspace are the sandbox's own; a file in them
    # would be there for a moment and gone with the command.
    made = "mkdir" if beside.endswith("/") else "touch"

    output = box.run(f"{made} {beside} || echo refused; echo kept > inside.txt")

    assert output.endswith("refused\n")
    assert names(box.root) == ["inside.txt"]


def test_values_of_variables_are_in_nobodys_arguments(box: Box) -> None:
    process, finish = box.start(box.job("echo up; read -t 30 < <(sleep 30)", SECRET="canary-args"))
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"

    listed = subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, text=True, check=True).stdout

    process.kill()
    process.communicate(timeout=20)
    finish()
    assert "bwrap --args" in listed
    assert "canary-args" not in listed


def test_trap_4_no_open_file_of_ours_is_inside(box: Box) -> None:
    secret = box.folder / "secret"
    secret.write_text("canary-4")
    with secret.open() as file:
        os.set_inheritable(file.fileno(), True)

        output = box.run("ls -l /proc/self/fd")

    assert "canary-4" not in output
    assert "secret" not in output
    assert "memfd" not in output
    assert len([line for line in output.splitlines() if " -> " in line]) == 4  # the three, and the listed directory


def test_trap_5_bx_31_git_cannot_be_moved_away_nor_its_hooks_and_config_changed(box: Box) -> None:
    git(box.root, "init", "-q")
    config = (box.root / ".git/config").read_text()
    hooks = names(box.root / ".git/hooks")

    output = box.run(
        "mv .git g2 && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit\n"
        "rm -rf .git/hooks; echo evil > .git/hooks/pre-commit; echo evil >> .git/config; mv .git/config .git/c\n"
        "mv .git/hooks .git/h; ln .git/config c; git config core.fsmonitor evil; echo ok > .git/description"
    )

    assert "Device or resource busy" in output
    assert (box.root / ".git/config").read_text() == config
    assert names(box.root / ".git/hooks") == hooks
    assert not (box.root / "g2").exists()
    assert not (box.root / "c").exists()
    assert (box.root / ".git/description").read_text() == "ok\n"


def test_trap_5_parents_of_a_nested_repository_stay_where_they_are(box: Box) -> None:
    (box.root / "a/b").mkdir(parents=True)
    git(box.root / "a/b", "init", "-q")

    output = box.run("mv a x; mv a/b a/y; echo evil > a/b/.git/hooks/pre-commit; echo ok > a/b/file; mkdir a/new")

    assert output.count("Device or resource busy") == 2
    assert "Read-only file system" in output
    assert names(box.root / "a") == ["b", "new"]
    assert (box.root / "a/b/file").read_text() == "ok\n"


def test_trap_5_git_is_not_led_to_another_configuration(box: Box) -> None:
    git(box.root, "init", "-q")

    box.run("mkdir -p evil; cp .git/config evil; echo ../evil > .git/commondir")

    assert not (box.root / ".git/commondir").exists()
    assert box.said == (
        f"set aside {box.root}/.git/commondir, which is new: git outside the sandbox would obey it. "
        f"It lies in {box.root}/.git/set-aside-by-goat-mcp",
    )


def test_git_works_in_the_workspace(box: Box) -> None:
    # R-PROC-2
    git(box.root, "init", "-q", "-b", "main")
    identity = "export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t\n"

    output = box.run(
        identity + "echo 1 > a; git add -A && git commit -qm one && git checkout -qb side && echo 2 > a && "
        "git commit -qam two && git checkout -q main && git merge -q side && git tag t && git gc -q && git status -s"
    )

    assert output == ""
    assert git(box.root, "log", "--format=%s", "main").split() == ["two", "one"]
    assert git(box.root, "status", "--porcelain") == ""


def test_trap_6_names_that_must_not_be_made_leave_nothing_behind(box: Box) -> None:
    git(box.root, "init", "-q")
    before = names(box.root)

    output = box.run("echo x > .mcp.json; mkdir .vscode/a; echo x > .claude/settings.json; git status --porcelain")

    assert output.count("Permission denied") == 2
    assert "Is a directory" in output
    assert "??" not in output
    assert names(box.root) == before
    assert list(box.notes.glob("*.json")) != []


def test_trap_6_what_a_killed_gateway_left_goes_with_the_next_one(box: Box) -> None:
    # A process of its own takes the names, starts, and is killed with what it started.
    code = (
        "import sys, os, signal; from pathlib import Path; from tests.commands.sandbox.boxes import Box\n"
        "box = Box(Path(sys.argv[1])); process, _ = box.start(box.job('echo up; sleep 60'))\n"
        "process.stdout.readline(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(box.folder)], check=False, timeout=60)
    assert ".mcp.json" in names(box.root)

    box.placeholders.clean_up()

    assert names(box.root) == []


def test_a_file_somebody_wrote_instead_of_a_placeholder_stays(box: Box) -> None:
    job = box.job("true")
    launch = box.confinement.launch(job)
    for descriptor in launch.own_fds:
        os.close(descriptor)
    (box.root / ".vscode").mkdir()
    (box.root / ".vscode/settings.json").write_text("mine")

    launch.finish()

    assert (box.root / ".vscode/settings.json").read_text() == "mine"


def test_one_of_two_running_commands_keeps_its_placeholders(box: Box) -> None:
    process, finish = box.start(box.job("echo up; read -t 30 < <(sleep 30)"))
    assert process.stdout is not None
    process.stdout.readline()

    box.run("true")

    assert ".mcp.json" in names(box.root)
    process.kill()
    process.communicate(timeout=20)
    finish()
    assert names(box.root) == []


@pytest.mark.parametrize("is_open", [True, False], ids=["its files are open", "it has only looked"])
def test_a_command_starts_while_another_ends_whose_placeholders_it_saw(box: Box, is_open: bool) -> None:
    # What one command finds there when it looks is gone when it is mounted.
    git(box.root, "init", "-q")
    (box.root / ".git/hooks").rename(box.folder / "hooks")
    process, finish = box.start(box.job("echo up; read -t 30 < <(sleep 30)"))
    assert process.stdout is not None
    process.stdout.readline()
    job = box.job("echo x > .mcp.json; echo x > .vscode/x; echo x > .git/hooks/pre-commit; rmdir .claude; echo up")
    launch = box.confinement.launch(job) if is_open else None
    process.kill()
    process.communicate(timeout=20)
    finish()

    output = box.end_of(launch or box.confinement.launch(job))

    assert output.splitlines()[-1] == "up", output
    assert "Is a directory" in output
    assert output.count("Permission denied") == 2
    assert "busy" in output
    assert names(box.root) == [".git"]
    assert "hooks" not in names(box.root / ".git")


def test_an_empty_directory_of_the_users_is_kept_as_it_is(box: Box) -> None:
    (box.root / ".claude").mkdir()

    output = box.run("mkdir .claude/x; echo x > .claude/y")

    assert output.count("Permission denied") == 2
    assert names(box.root) == [".claude"]


@pytest.mark.parametrize("killed", ["bwrap", "its parent"])
def test_trap_7_everything_ends_with_bwrap_and_with_its_parent(box: Box, killed: str) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.commands.sandbox.boxes import Box\n"
        "box = Box(Path(sys.argv[1])); process, _ = box.start(box.job(sys.argv[2]))\n"
        "print(process.pid, process.stdout.readline(), flush=True); process.wait()"
    )
    seconds = "917346" if killed == "bwrap" else "917347"
    script = f"{ARMED} setsid sleep {seconds} & echo up; sleep {seconds}"
    parent = subprocess.Popen([sys.executable, "-c", code, str(box.folder), script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    bwrap = int(parent.stdout.readline().split()[0])
    assert wait_until(lambda: len(running(f"sleep {seconds}")) == 2, 10)

    os.kill(bwrap if killed == "bwrap" else parent.pid, signal.SIGKILL)

    assert wait_until(lambda: not running(f"sleep {seconds}"), 3)
    parent.kill()
    parent.communicate(timeout=20)


def test_trap_8_a_sandbox_ends_with_the_thread_that_started_it(box: Box) -> None:
    # Why commands are started by the event loop's own thread. If this fails, that rule may go.
    started: list[subprocess.Popen[str]] = []

    def start() -> None:
        process, _ = box.start(box.job(f"{ARMED} echo up; sleep 60"))
        assert process.stdout is not None
        process.stdout.readline()
        started.append(process)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()

    assert started[0].wait(timeout=10) == -signal.SIGKILL
    started[0].communicate(timeout=10)


def test_trap_9_a_grandchild_in_a_session_of_its_own_ends_with_the_rest(box: Box) -> None:
    process, _ = box.start(box.job(f"{ARMED} setsid sleep 817346 & echo up; wait"))
    assert process.stdout is not None
    process.stdout.readline()
    assert wait_until(lambda: len(running("sleep 817346")) >= 1, 10)

    process.kill()

    assert process.wait(timeout=10) == -signal.SIGKILL
    assert wait_until(lambda: not running("sleep 817346"), 3)
    process.communicate(timeout=10)


def test_trap_10_where_namespaces_are_refused_it_is_unavailable_and_has_no_fewer_flags(tmp_path: Path) -> None:
    refusing = tmp_path / "bwrap"
    refusing.write_text(
        '#!/bin/sh\necho "$@" >> "$(dirname "$0")/calls"\n'
        "echo 'bwrap: No permissions to create new namespace' >&2; exit 1\n"
    )
    refusing.chmod(0o755)
    confinement = Bubblewrap(Placeholders(tmp_path), find=lambda: str(refusing))

    missing = confinement.missing()

    assert missing == "bubblewrap does not work here: bwrap: No permissions to create new namespace"
    assert len((tmp_path / "calls").read_text().splitlines()) == 1


def test_homes_and_the_state_directory_are_not_there(tmp_path: Path) -> None:
    home = tmp_path.resolve() / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id_rsa").write_text("canary-home")
    box = Box(tmp_path, home=home)
    (box.state / "audit.jsonl").write_text("canary-state")

    output = box.run(
        f"ls -A {home} /root /home; cat {home}/.ssh/id_rsa {box.state}/audit.jsonl; echo x > ~/note", HOME=str(home)
    )

    assert "canary" not in output
    assert not (home / "note").exists()
    assert output.count("No such file or directory") >= 2


def test_a_state_directory_inside_the_workspace_is_hidden_and_stays_where_it_is(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.state = box.root / "deep/state"
    box.state.mkdir(parents=True)
    (box.state / "audit.jsonl").write_text("canary-state")

    output = box.run(
        "ls -A deep/state; cat deep/state/audit.jsonl; echo x > deep/state/rules; mv deep x; mv deep/state y"
    )

    assert "canary" not in output
    assert output.count("Device or resource busy") == 2
    assert names(box.state) == ["audit.jsonl"]


def test_where_home_itself_is_the_workspace_its_keys_are_hidden(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.home = box.root
    box.state = box.root / ".local/state/goat-mcp"
    for name in (".ssh", ".local/state/goat-mcp"):
        (box.root / name).mkdir(parents=True)
        (box.root / name / "key").write_text("canary-key")
    (box.root / ".netrc").write_text("canary-netrc")
    (box.root / ".bashrc").write_text("mine")

    output = box.run(
        "cat .ssh/* .netrc .local/state/goat-mcp/*; mv .ssh s; mv .local l; echo evil > .bashrc; echo ok > file"
    )

    assert "canary" not in output
    assert (box.root / ".bashrc").read_text() == "mine"
    assert names(box.root) == [".bashrc", ".local", ".netrc", ".ssh", "file"]


@pytest.mark.parametrize("seen_as", ["the workspace of an agent in a worktree", "sandbox_read"])
def test_where_home_can_only_be_read_its_keys_are_hidden_too(tmp_path: Path, seen_as: str) -> None:
    home = tmp_path.resolve() / "ws"
    for name in (".ssh", ".config/gh", "real-aws", ".wt/w"):
        (home / name).mkdir(parents=True)
        (home / name / "key").write_text("canary-key")
    (home / ".aws").symlink_to("real-aws")
    (home / ".netrc").write_text("canary-netrc")
    (home / "notes").write_text("mine\n")
    if seen_as == "sandbox_read":
        box = Box(tmp_path / "other", SandboxOptions(sandbox_read=(home,)), home=home)
        bounds = box.bounds()
    else:
        box = Box(tmp_path, home=home)
        bounds = box.bounds(writes_below=str(home / ".wt/w"))

    output = box.run(f"cd {home}; cat .ssh/* .netrc .config/gh/* .aws/* real-aws/*; cat notes", bounds)

    assert "canary" not in output
    assert output.endswith("mine\n")


def test_a_folder_of_keys_that_the_settings_name_can_be_read(tmp_path: Path) -> None:
    home = tmp_path.resolve() / "home"
    for name in (".ssh", ".aws", ".kube"):
        (home / name).mkdir(parents=True)
        (home / name / "key").write_text(f"key of {name}\n")
    named = (home, home / ".ssh", home / ".aws/key")
    box = Box(tmp_path, SandboxOptions(sandbox_read=named), home=home)

    output = box.run(f"cd {home}; cat .ssh/key .aws/key .kube/key 2>&1")

    assert output == "key of .ssh\nkey of .aws\ncat: .kube/key: No such file or directory\n"


@pytest.mark.parametrize("reach", ["sandbox_write", "sandbox_read", "workspace"])
def test_a_record_beside_the_state_directory_is_neither_seen_nor_changed(tmp_path: Path, reach: str) -> None:
    # R-AUDIT-1
    folder = tmp_path.resolve() / ("ws/deep" if reach == "workspace" else "records")
    folder.mkdir(parents=True)
    record, kept = folder / "audit.jsonl", folder / "audit.000001.jsonl"
    for file in (record, kept):
        file.write_text("canary-record")
    (folder / "notes").write_text("mine\n")
    options = SandboxOptions.model_validate({} if reach == "workspace" else {reach: [str(folder)]})
    box = Box(tmp_path, options, records=(record, kept))

    output = box.run(
        f"cd {folder}; cat audit*; rm -f audit*; mv audit.jsonl x; echo forged >> audit.jsonl\n"
        f"echo forged > audit.000002.jsonl; mv {folder} {folder}2; cat notes"
    )

    assert "canary" not in output
    assert output.endswith("mine\n")
    assert (record.read_text(), kept.read_text()) == ("canary-record", "canary-record")
    assert names(folder) == ["audit.000001.jsonl", "audit.jsonl", "notes"]


def test_a_protected_name_that_is_a_link_shows_nothing_of_where_it_leads(box: Box) -> None:
    secret = box.folder / "outside"
    secret.mkdir()
    (secret / "key").write_text("canary-link")
    (box.root / ".vscode").symlink_to(secret)

    assert "canary-link" not in box.run("cat .vscode/key; ls -la")


def test_paths_of_the_settings_can_be_read_and_written(tmp_path: Path) -> None:
    tools, cache = tmp_path.resolve() / "tools", tmp_path.resolve() / "cache"
    tools.mkdir()
    cache.mkdir()
    (tools / "t").write_text("tool")
    (tmp_path.resolve() / "link").symlink_to(tools)
    link = tmp_path.resolve() / "link"
    box = Box(tmp_path, SandboxOptions(sandbox_read=(link,), sandbox_write=(cache,)))

    output = box.run(f"cat {link}/t {tools}/t; echo x > {tools}/t; echo y > {cache}/c; ln {tools}/t {cache}/t")

    assert output.startswith("tooltool")
    assert (tools / "t").read_text() == "tool"
    assert names(cache) == ["c"]


def test_the_network_is_off_unless_the_settings_allow_it(box: Box) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected"

        assert "connected" not in box.run(script)
        assert "connected" in box.run(script, replace(box.bounds(), network=Network.ALLOW))


def test_a_worktree_agent_writes_its_worktree_and_commits_and_nothing_else(box: Box) -> None:
    git(box.root, "init", "-q", "-b", "main")
    (box.root / "a").write_text("1")
    git(box.root, "add", "-A")
    git(box.root, "commit", "-qm", "one")
    git(box.root, "worktree", "add", "-q", "-b", "side", ".worktrees/w")
    worktree = box.root / ".worktrees/w"
    bounds = box.bounds(writes_below=str(worktree))
    identity = "export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t\n"

    output = box.run(
        f"{identity}cd {worktree}; echo 2 > a; git commit -qam two && echo committed; echo evil > {box.root}/a\n"
        f"echo evil > {box.root}/.git/hooks/pre-commit; echo evil > {box.root}/.git/HEAD; echo x > .git\n"
        f"echo ../../../evil > {box.root}/.git/worktrees/w/commondir",
        bounds,
    )

    assert "committed" in output
    assert git(box.root, "log", "--format=%s", "side").split() == ["two", "one"]
    assert (box.root / "a").read_text() == "1"
    assert (box.root / ".git/HEAD").read_text() == "ref: refs/heads/main\n"
    assert (box.root / ".git/worktrees/w/commondir").read_text() == "../..\n"
    assert output.count("Read-only file system") == 5


def test_a_fork_bomb_is_bounded_for_an_ordinary_user(tmp_path: Path) -> None:
    # R-PROC-8; only with a limit, in a PID namespace, and never as root, for whom the limit does not count.
    if os.geteuid() != 0:
        pytest.skip("changing the user needs root; the limit itself is the same")
    box = Box(tmp_path)
    bounds = replace(box.bounds(), writable=(), pinned=(), read_only=(), absent=(), hidden=(), watched=())
    # bash would try again for 15 s.
    bomb = "(ulimit -u 40; for i in $(seq 60); do sleep 60 & done) 2>&1"
    script = f"{bomb} | {{ grep -m1 -o 'Resource temporarily unavailable'; kill -9 -1; }}"
    job = replace(box.job(script, bounds), directory=Path("/"))

    process, finish = box.start(job, user=65534, group=65534, extra_groups=[])
    output, _ = process.communicate(timeout=60)
    finish()

    assert "Resource temporarily unavailable" in output
    assert not alive(process.pid)
