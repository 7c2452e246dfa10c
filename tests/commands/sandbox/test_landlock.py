"""What a program confined by Landlock can and cannot do (R-PROC-4), each asked of the real kernel."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from goat_mcp.commands.sandbox.confinement import Bounds, Job, ProxyAccess
from goat_mcp.commands.sandbox.landlock import Landlock
from goat_mcp.commands.sandbox.options import Network
from tests.commands.sandbox.landlocked import ABI, LIMIT_S, PATH, needs_landlock, run

TCP_ABI, SCOPES_ABI = 4, 6


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    return root


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def bounds(root: Path, network: Network = Network.DENY, **more: object) -> Bounds:
    return Bounds(writable=(root,), network=network, **more)  # type: ignore[reportArgumentType]  # fields of Bounds


def access(port: int) -> ProxyAccess:
    def never() -> None:
        raise AssertionError("this sandbox has no network of its own")

    return ProxyAccess(port=port, environment={"HTTPS_PROXY": f"http://127.0.0.1:{port}"}, listen_inside=never)  # type: ignore[reportArgumentType]  # it takes whatever a sandbox would give


def python(root: Path, program: str, given: Bounds) -> subprocess.CompletedProcess[str]:
    """`program` in the Python of these tests, which is made readable for it."""
    readable = tuple({Path(sys.base_prefix).resolve(), Path(sys.prefix)})
    wider = Bounds(writable=given.writable, readable=readable, network=given.network, proxy=given.proxy)
    return run(sys.executable, "-I", "-S", "-c", program, bounds=wider, directory=root)


@needs_landlock
def test_a_trial_run_shows_that_it_can_be_used() -> None:
    assert Landlock().missing() == ""


@needs_landlock
class TestFiles:
    def test_what_lies_in_a_root_is_read_written_moved_and_removed(self, root: Path) -> None:
        script = "mkdir a b && echo hi > a/f && mv a/f b/g && cat b/g && ln -s g b/l && rm b/l && rmdir a && ls"

        done = run("/bin/sh", "-c", script, bounds=bounds(root), directory=root)

        assert (done.returncode, done.stdout, done.stderr) == (0, "hi\nb\n", "")

    @pytest.mark.parametrize(
        "attempt",
        [
            "echo x > {outside}/new",
            "echo x > {outside}/old",
            "echo x >> {outside}/old",
            "truncate -s 0 {outside}/old",
            "rm -f {outside}/old",
            "mkdir {outside}/folder",
            "mv {outside}/old .",
            "ln {outside}/old inside",
            "ln -s {outside} out && echo x > out/new",
            "mkfifo {outside}/pipe",
            "cp /bin/true {outside}/true",
        ],
    )
    def test_nothing_outside_is_made_changed_or_removed(self, root: Path, tmp_path: Path, attempt: str) -> None:
        """R-PROC-4: outside write."""
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "old").write_text("old")

        done = run("/bin/sh", "-c", attempt.format(outside=outside), bounds=bounds(root), directory=root)

        assert done.returncode != 0
        assert "denied" in done.stderr or "cross-device" in done.stderr.lower() or "not permitted" in done.stderr
        assert [(one.name, one.read_text()) for one in outside.iterdir()] == [("old", "old")]

    @pytest.mark.parametrize("abi", range(1, ABI + 1))
    def test_older_kernels_keep_to_the_root_as_well(self, root: Path, tmp_path: Path, abi: int) -> None:
        script = f"mkdir a b; echo in > a/f && mv a/f b/f && cat b/f; echo x > {tmp_path}/new; cat {tmp_path}/old"
        (tmp_path / "old").write_text("canary")

        done = run("/bin/sh", "-c", script, bounds=bounds(root), directory=root, way=Landlock(abi=abi))

        assert (done.returncode, done.stdout) == (1, "in\n")
        assert done.stderr.count("enied") == 2
        assert not (tmp_path / "new").exists()

    @pytest.mark.parametrize("what", ["/etc/shadow", "/proc/1/environ", "{outside}", "/dev/mem", "/etc"])
    def test_what_no_program_needs_cannot_be_read(self, root: Path, tmp_path: Path, what: str) -> None:
        """R-PROC-4: `/proc/1/environ`, also for uid 0."""
        secret = tmp_path / "secret"
        secret.write_text("canary")
        path = what.format(outside=secret)

        done = run("/bin/sh", "-c", f"if [ -d {path} ]; then ls {path}; else cat {path}; fi", bounds=bounds(root))

        assert (done.returncode != 0, done.stdout) == (True, "")
        assert "enied" in done.stderr or "No such file" in done.stderr

    def test_the_environment_of_the_process_that_started_it_cannot_be_read(self, root: Path) -> None:
        done = run("/bin/sh", "-c", f"cat /proc/{os.getpid()}/environ", bounds=bounds(root))

        assert (done.returncode, done.stdout) == (1, "")
        assert "denied" in done.stderr or "not permitted" in done.stderr

    def test_a_named_path_is_read_and_not_written(self, root: Path, tmp_path: Path) -> None:
        named = tmp_path / "named"
        named.mkdir()
        (named / "file").write_text("text")
        given = Bounds(writable=(root,), readable=(named,))

        done = run("/bin/sh", "-c", f"cat {named}/file; echo x > {named}/file", bounds=given)

        assert (done.returncode != 0, done.stdout) == (True, "text")
        assert (named / "file").read_text() == "text"

    def test_it_has_a_folder_for_temporary_files_that_is_gone_afterwards(self, root: Path) -> None:
        script = 'echo kept > "$TMPDIR/x" && cat "$TMPDIR/x" && echo "$TMPDIR" && stat -c %a "$TMPDIR"'

        done = run("/bin/sh", "-c", script, bounds=bounds(root))

        kept, folder, mode = done.stdout.splitlines()
        assert (done.returncode, kept, mode) == (0, "kept", "700")
        assert not Path(folder).exists()

    def test_the_home_directory_is_an_empty_one_unless_it_is_in_reach(self, root: Path, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("canary")
        script = 'ls -A "$HOME" && echo "$HOME"'

        elsewhere = run("/bin/sh", "-c", script, bounds=bounds(root, home=tmp_path))
        in_reach = run(
            "/bin/sh", "-c", script, bounds=bounds(root, home=root), environment={"PATH": PATH, "HOME": str(root)}
        )

        assert elsewhere.stdout.rstrip().endswith("/home") and len(elsewhere.stdout.splitlines()) == 1
        assert in_reach.stdout == f"{root}\n"

    def test_a_writable_path_that_is_not_there_is_said_before_anything_starts(self, root: Path) -> None:
        job = Job(arguments=("/bin/true",), directory=root, environment={}, bounds=Bounds(writable=(root / "missing",)))

        with pytest.raises(FileNotFoundError):
            Landlock().launch(job)


@needs_landlock
class TestNetwork:
    @pytest.mark.skipif(ABI < TCP_ABI, reason="this kernel's Landlock knows no TCP")
    def test_tcp_is_refused_by_landlock_itself(self, root: Path, listener: socket.socket) -> None:
        """R-PROC-4: TCP; on a machine for which there is no filter of system calls."""
        port = listener.getsockname()[1]
        program = f"""
import socket
for what in (lambda s: s.connect(("127.0.0.1", {port})), lambda s: s.bind(("127.0.0.1", 0))):
    with socket.socket() as one:
        try: what(one); print("done")
        except OSError as problem: print(problem.strerror)
"""
        readable = tuple({Path(sys.base_prefix).resolve(), Path(sys.prefix)})

        done = run(
            sys.executable,
            *("-I", "-S", "-c", program),
            bounds=Bounds(writable=(root,), readable=readable),
            way=Landlock(machine="none"),
        )

        assert (done.stdout, done.stderr) == ("Permission denied\nPermission denied\n", "")

    @pytest.mark.parametrize(
        ("network", "refused"),
        [
            (Network.DENY, ["unix", "unix datagram", "tcp", "tcp 6", "udp", "raw", "vsock", "datagram pair"]),
            (Network.DOMAINS, ["unix", "unix datagram", "udp", "raw", "vsock", "datagram pair"]),
            (Network.ALLOW, ["unix", "unix datagram", "vsock", "datagram pair"]),
        ],
    )
    def test_which_sockets_can_be_made(
        self, root: Path, listener: socket.socket, network: Network, refused: list[str]
    ) -> None:
        if Landlock()._filters is False:  # type: ignore[reportPrivateUsage]  # what this machine can do is told nowhere else
            pytest.skip("no filter of system calls for this machine")
        program = """
import socket
wanted = {"unix": (1, 1), "unix datagram": (1, 2), "tcp": (2, 1), "tcp 6": (10, 1), "udp": (2, 2), "raw": (2, 3, 255),
          "vsock": (40, 1), "netlink": (16, 3)}
for name, one in wanted.items():
    try: socket.socket(*one).close()
    except OSError as problem:
        print(name)
socket.socketpair()[0].close()
try: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
except OSError: print("datagram pair")
"""
        if os.geteuid() != 0 and network is Network.ALLOW:
            refused = [*refused, "raw"]  # the system refuses it to ordinary users
        port = listener.getsockname()[1]

        done = python(root, program, bounds(root, network, proxy=access(port)))

        # Capabilities are gone, so a raw socket is refused everywhere.
        assert done.stderr == ""
        assert sorted(done.stdout.splitlines()) == sorted({*refused, "raw"})

    @pytest.mark.skipif(ABI < TCP_ABI, reason="this kernel's Landlock knows no TCP")
    def test_with_domains_only_the_proxys_port_is_reached(self, root: Path, listener: socket.socket) -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            ports = [listener.getsockname()[1], other.getsockname()[1]]
            program = f"""
import os, socket
print(os.environ["HTTPS_PROXY"])
for port in {ports}:
    with socket.socket() as one:
        try: one.connect(("127.0.0.1", port)); print("connected")
        except OSError as problem: print(problem.strerror)
with socket.socket() as fast:
    try: fast.sendto(b"x", 0x20000000, ("127.0.0.1", {ports[1]})); print("sent")
    except OSError as problem: print(problem.strerror)
"""
            done = python(root, program, bounds(root, Network.DOMAINS, proxy=access(ports[0])))

        assert done.stderr == ""
        assert done.stdout.splitlines() == [
            f"http://127.0.0.1:{ports[0]}",
            "connected",
            "Permission denied",
            "Operation not permitted",
        ]

    @pytest.mark.skipif(ABI < SCOPES_ABI, reason="this kernel's Landlock knows no signals")
    def test_other_processes_get_no_signal(self, root: Path) -> None:
        done = run("/bin/sh", "-c", f"kill -0 {os.getpid()}; kill -0 $$ && echo own", bounds=bounds(root))

        assert (done.returncode, done.stdout) == (0, "own\n")
        assert "ermi" in done.stderr

    def test_other_processes_get_no_limits(self, root: Path) -> None:
        if not Landlock()._filters:  # type: ignore[reportPrivateUsage]  # what this machine can do is told nowhere else
            pytest.skip("no filter of system calls for this machine")
        given = f"import resource; resource.prlimit({os.getpid()}, resource.RLIMIT_CORE, (0, 0))"
        before = resource.getrlimit(resource.RLIMIT_CORE)

        other = python(root, given, bounds(root))
        own = python(root, "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))", bounds(root))

        assert (other.returncode, own.returncode) == (1, 0)
        assert "PermissionError" in other.stderr
        assert resource.getrlimit(resource.RLIMIT_CORE) == before


@needs_landlock
class TestTheProgram:
    def test_is_what_was_started_with_its_environment_descriptors_group_and_exit_code(self, root: Path) -> None:
        read, write = os.pipe()
        script = f"echo from $$ >&{write}; cat /proc/self/environ | tr '\\0' '\\n'; exit 7"
        given = {"PATH": PATH, "GOAT_MCP_CALL": "mark"}
        job = Job(
            arguments=("/bin/bash", "-c", script),
            directory=root,
            environment=given,
            bounds=bounds(root),
            pass_fds=(write,),
        )
        launch = Landlock().launch(job)

        process = subprocess.Popen(
            launch.arguments,
            env=launch.environment,
            cwd=launch.directory,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            pass_fds=launch.pass_fds,
        )
        os.close(write)
        stdout, _ = process.communicate(timeout=LIMIT_S)
        launch.finish()
        with os.fdopen(read) as pipe:
            said = pipe.read()

        assert (process.returncode, said) == (7, f"from {process.pid}\n")
        assert {line for line in stdout.splitlines() if not line.startswith(("PWD=", "TMPDIR=", "SHLVL=", "_="))} == {
            f"PATH={PATH}",
            "GOAT_MCP_CALL=mark",
        }

    def test_dies_of_a_closed_pipe_as_usual(self, root: Path) -> None:
        done = run("/bin/bash", "-c", "yes | head -1; echo ${PIPESTATUS[0]}", bounds=bounds(root))

        assert done.stdout == f"y\n{128 + signal.SIGPIPE}\n"

    def test_has_no_capabilities_and_gets_none_again(self, root: Path) -> None:
        done = run(
            "/bin/sh", "-c", "grep -E '^(Cap(Inh|Prm|Eff|Amb)|NoNewPrivs)' /proc/self/status", bounds=bounds(root)
        )

        none = "0000000000000000"
        assert done.stdout.split() == [
            *("CapInh:", none, "CapPrm:", none, "CapEff:", none, "CapAmb:", none, "NoNewPrivs:", "1")
        ]

    def test_gets_no_user_namespace(self, root: Path) -> None:
        done = run("unshare", "-Ur", "true", bounds=bounds(root))

        assert done.returncode != 0
        assert "not permitted" in done.stderr

    def test_that_is_missing_or_no_program_says_so(self, root: Path) -> None:
        missing = run("no-such-program", bounds=bounds(root))
        refused = run(str(root), bounds=bounds(root))

        assert (missing.returncode, missing.stderr) == (127, "goat-mcp: no-such-program: not found\n")
        assert (refused.returncode, refused.stderr) == (126, f"goat-mcp: {root}: Permission denied\n")

    def test_does_not_run_where_the_restriction_cannot_be_kept(self, root: Path) -> None:
        job = Job(arguments=("/bin/echo", "ran"), directory=root, environment={}, bounds=bounds(root))
        launch = Landlock().launch(job)
        shutil.rmtree(root)

        done = subprocess.run(launch.arguments, env={}, cwd="/", capture_output=True, text=True, timeout=LIMIT_S)
        launch.finish()

        assert (done.returncode, done.stdout) == (125, "")
        assert done.stderr.startswith("goat-mcp: the sandbox could not be set up, so nothing ran:")

    @pytest.mark.skipif(shutil.which("git") is None or shutil.which("make") is None, reason="no git or make here")
    def test_can_be_git_or_make(self, root: Path) -> None:
        (root / "Makefile").write_text("all:\n\t@echo made\n")
        script = (
            "git init -q . && git add Makefile && git -c user.name=a -c user.email=b@c commit -qm first "
            "&& git log --format=%s && make"
        )

        done = run("/bin/sh", "-c", script, bounds=bounds(root, home=Path.home()), directory=root)

        assert (done.returncode, done.stdout, done.stderr) == (0, "first\nmade\n", "")

    @pytest.mark.parametrize(
        ("script", "changed"),
        [
            ("echo x > .git/hooks/pre-commit", [".git/hooks"]),
            ("echo x >> .git/config && touch -d 2001-01-01 .git/config", [".git/config"]),
            ("mv .git g2 && mkdir -p .git/hooks && cp g2/config .git", [".git/hooks", ".git/config"]),
            ("echo {} > .mcp.json", [".mcp.json"]),
            ("chmod 777 .git/config", [".git/config"]),
            ("cat .git/config && git status && touch new && mkdir .git/objects/ab", []),
        ],
    )
    def test_may_change_protected_paths_of_a_writable_root_which_is_told(
        self, root: Path, script: str, changed: list[str]
    ) -> None:
        """R-FILE-9 is not kept by Landlock, and here so that nobody believes it is."""
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        given = bounds(root, read_only=(root / ".git/hooks", root / ".git/config"), absent=(root / ".mcp.json",))
        job = Job(arguments=("/bin/sh", "-c", script), directory=root, environment={"PATH": PATH}, bounds=given)

        launch = Landlock().launch(job)
        done = subprocess.run(launch.arguments, env=launch.environment, cwd=root, timeout=LIMIT_S)
        told = launch.finish()

        assert done.returncode == 0
        assert OPEN_INSIDE in Landlock().limits
        assert told == (
            (
                f"changed while the command ran: {', '.join(str(root / one) for one in changed)}. These are protected, "
                "but Landlock cannot keep a command from them: look at them before anything obeys them",
            )
            if changed
            else ()
        )

    def test_may_change_the_modes_of_its_users_files_outside_which_the_limits_say(
        self, root: Path, tmp_path: Path
    ) -> None:
        """Not covered either."""
        outside = tmp_path / "outside"
        outside.write_text("text")

        done = run("chmod", "700", str(outside), bounds=bounds(root))

        assert (done.returncode, outside.stat().st_mode & 0o777) == (0, 0o700)
        assert METADATA in Landlock().limits


NO_PID_NAMESPACE = "no PID namespace: names and arguments of other processes are seen"
METADATA = "modes, owners and times of files outside can be changed, and their names and sizes asked for"
IPC = "shared memory and message queues of other processes stay"
OPEN_INSIDE = "protected paths inside writable directories can be changed, which is reported afterwards"
ANY_HOST = "with network domains, TCP reaches every host on the proxy's port"


class TestLimits:
    @pytest.mark.parametrize(
        ("abi", "machine", "missing"),
        [
            (
                7,
                "x86_64",
                [NO_PID_NAMESPACE, METADATA, IPC, OPEN_INSIDE, ANY_HOST],
            ),
            (
                4,
                "riscv64",
                [
                    *(NO_PID_NAMESPACE, METADATA, IPC, OPEN_INSIDE, ANY_HOST),
                    "limits of other processes can be set",
                    "UDP and Unix sockets by path stay, for want of a seccomp filter on this machine",
                    "signals reach other processes",
                    "abstract Unix sockets stay",
                ],
            ),
            (
                1,
                "aarch64",
                [
                    *(NO_PID_NAMESPACE, METADATA, IPC, OPEN_INSIDE),
                    "signals reach other processes",
                    "network domains cannot be kept: they are denied",
                    "files outside can be cut off (truncate)",
                    "a file is not moved between directories but copied",
                ],
            ),
        ],
    )
    def test_says_what_this_kernel_and_machine_lack(self, abi: int, machine: str, missing: list[str]) -> None:
        one = Landlock(abi=abi, machine=machine)

        assert list(one.limits) == missing

    def test_a_kernel_without_landlock_cannot_be_used(self) -> None:
        assert Landlock(abi=0).missing() == "this kernel has no Landlock, or it is switched off"
