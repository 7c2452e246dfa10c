"""Which system calls the filters refuse, by our reading of them for every machine, and by the kernel for this one."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from goat_mcp.commands.sandbox.seccomp import Sockets, system_call_filter, system_call_numbers
from tests.commands.sandbox.bpf import ALLOW, ERRNO, KILL, answer
from tests.commands.sandbox.bubblewrapped import PATH, bubblewrap, needs_bubblewrap

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
UNIX, INET, INET6, NETLINK, ALG, VSOCK = 1, 2, 10, 16, 38, 40
STREAM, DGRAM, RAW, SEQPACKET = 1, 2, 3, 5
CLOEXEC = 0o2000000
TCP, UDP, SCTP, MPTCP = 6, 17, 132, 262
NEWUSER, NEWNET, FASTOPEN, TIOCSTI, TIOCGWINSZ = 0x10000000, 0x40000000, 0x20000000, 0x5412, 0x5413
HIGH = 1 << 32
LIMIT_S = 60
PYTHON = os.path.realpath(sys.executable)

needs_filter = pytest.mark.skipif(
    system_call_filter(Sockets.NETWORK) is None, reason="there is no filter for this machine"
)


def ask(machine: str, sockets: Sockets, call: str, *arguments: int) -> int | str:
    """`allow`, `kill`, or the errno."""
    program = system_call_filter(sockets, machine)
    assert program is not None
    said = answer(program, MACHINES[machine], system_call_numbers(machine)[call], arguments)
    return {ALLOW: "allow", KILL: "kill"}.get(said, said ^ ERRNO)


@pytest.mark.parametrize("machine", MACHINES)
class TestEveryMachine:
    @pytest.mark.parametrize(
        ("arguments", "network", "tcp", "none"),
        [
            ((UNIX, STREAM), errno.EACCES, errno.EACCES, errno.EACCES),
            ((UNIX, DGRAM | CLOEXEC), errno.EACCES, errno.EACCES, errno.EACCES),
            ((UNIX + HIGH, STREAM), errno.EACCES, errno.EACCES, errno.EACCES),
            ((INET, STREAM | CLOEXEC), "allow", "allow", errno.EACCES),
            ((INET6, STREAM, TCP), "allow", "allow", errno.EACCES),
            ((INET, DGRAM), "allow", errno.EACCES, errno.EACCES),
            ((INET6, DGRAM, UDP), "allow", errno.EACCES, errno.EACCES),
            ((INET, RAW, 1), "allow", errno.EACCES, errno.EACCES),
            ((INET, STREAM, SCTP), "allow", errno.EACCES, errno.EACCES),
            ((INET, STREAM, MPTCP), "allow", errno.EACCES, errno.EACCES),
            ((NETLINK, RAW), "allow", "allow", "allow"),
            ((VSOCK, STREAM), errno.EAFNOSUPPORT, errno.EAFNOSUPPORT, errno.EAFNOSUPPORT),
            ((ALG, SEQPACKET), errno.EAFNOSUPPORT, errno.EAFNOSUPPORT, errno.EAFNOSUPPORT),
        ],
    )
    def test_sockets(
        self, machine: str, arguments: tuple[int, ...], network: int | str, tcp: int | str, none: int | str
    ) -> None:
        """R-PROC-3, trap 2."""
        answers = [ask(machine, one, "socket", *arguments) for one in (Sockets.NETWORK, Sockets.TCP, Sockets.NONE)]

        assert answers == [network, tcp, none]

    @pytest.mark.parametrize(
        ("kind", "said"),
        [(STREAM, "allow"), (SEQPACKET | CLOEXEC, "allow"), (DGRAM, errno.EACCES), (RAW | CLOEXEC, errno.EACCES)],
    )
    def test_pairs_of_sockets_but_those_that_can_be_connected_anew(
        self, machine: str, kind: int, said: int | str
    ) -> None:
        assert [ask(machine, one, "socketpair", UNIX, kind) for one in Sockets] == [said] * 3

    @pytest.mark.parametrize(
        ("call", "arguments", "said"),
        [
            ("io_uring_setup", (), errno.ENOSYS),
            ("clone3", (), errno.ENOSYS),
            ("mount", (), errno.EPERM),
            ("keyctl", (), errno.EPERM),
            ("bpf", (), errno.EPERM),
            ("setns", (), errno.EPERM),
            ("clone", (NEWUSER | 17,), errno.EPERM),
            ("clone", (17,), "allow"),
            ("unshare", (NEWUSER | NEWNET,), errno.EPERM),
            ("unshare", (0x200,), "allow"),
            ("ioctl", (0, TIOCSTI), errno.EPERM),
            ("ioctl", (0, TIOCSTI + HIGH), errno.EPERM),
            ("ioctl", (0, TIOCGWINSZ), "allow"),
        ],
    )
    def test_other_calls(self, machine: str, call: str, arguments: tuple[int, ...], said: int | str) -> None:
        assert [ask(machine, one, call, *arguments) for one in Sockets] == [said] * 3

    @pytest.mark.parametrize(
        ("call", "arguments"),
        [("sendto", (3, 0, 9, FASTOPEN)), ("sendmsg", (3, 0, FASTOPEN)), ("sendmmsg", (3, 0, 1, FASTOPEN))],
    )
    def test_connecting_in_the_first_packet(self, machine: str, call: str, arguments: tuple[int, ...]) -> None:
        answers = [ask(machine, one, call, *arguments) for one in (Sockets.NETWORK, Sockets.TCP)]
        without = ask(machine, Sockets.TCP, call, *(0 for _ in arguments))

        assert (answers, without) == (["allow", errno.EPERM], "allow")

    def test_limits_of_other_processes_where_they_are_seen(self, machine: str) -> None:
        number, answers = system_call_numbers(machine)["prlimit64"], list[int]()
        for sees in (True, False):
            program = system_call_filter(Sockets.NONE, machine, sees_other_processes=sees)
            assert program is not None
            answers += [answer(program, MACHINES[machine], number, (pid,)) for pid in (0, 1234)]

        assert answers == [ALLOW, ERRNO | errno.EPERM, ALLOW, ALLOW]

    def test_calls_that_nothing_is_said_about_are_allowed(self, machine: str) -> None:
        named = set(system_call_numbers(machine).values())
        program = system_call_filter(Sockets.NETWORK, machine)
        assert program is not None

        said = {answer(program, MACHINES[machine], number) for number in range(470) if number not in named}

        assert said == {ALLOW}

    def test_calls_under_the_numbers_of_another_machine_end_the_program(self, machine: str) -> None:
        program = system_call_filter(Sockets.NETWORK, machine)
        assert program is not None

        assert answer(program, 0x40000003, 102) == KILL  # i386, socketcall

    def test_the_program_is_short_enough_for_the_kernel(self, machine: str) -> None:
        for sockets in Sockets:
            program = system_call_filter(sockets, machine)
            assert program is not None and len(program) % 8 == 0 and len(program) // 8 < 4096


def test_the_second_numbers_of_x86_64_are_as_if_not_there() -> None:
    program = system_call_filter(Sockets.NETWORK, "x86_64")
    assert program is not None

    assert answer(program, MACHINES["x86_64"], 0x40000000 | 41, (UNIX, STREAM)) == ERRNO | errno.ENOSYS


def test_other_machines_have_no_filter() -> None:
    assert system_call_filter(Sockets.NETWORK, "riscv64") is None


@needs_filter
@needs_bubblewrap
class TestInBubblewrap:
    def run(self, root: Path, *arguments: str, filtered: bool = True) -> subprocess.CompletedProcess[str]:
        program = system_call_filter(Sockets.NETWORK)
        assert program is not None
        descriptor = os.memfd_create("filter", 0)
        try:
            os.write(descriptor, program)
            os.lseek(descriptor, 0, os.SEEK_SET)
            readable = tuple({Path(os.path.realpath(sys.base_prefix)), Path(__file__).parent})
            options = ["--seccomp", str(descriptor)] if filtered else []
            return subprocess.run(
                [*bubblewrap(root, readable, options), *arguments],
                env={"PATH": PATH, "HOME": str(root)},
                pass_fds=(descriptor,),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
            )
        finally:
            os.close(descriptor)

    @pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
    def test_a_unix_socket_by_path_is_not_reached(self, tmp_path: Path, kind: str) -> None:
        """R-PROC-3, trap 2; without the filter it is, so this does not pass for another reason."""
        (tmp_path / "s").unlink(missing_ok=True)
        program = f"""
import socket
try:
    one = socket.socket(socket.AF_UNIX, socket.{kind})
    one.connect("s")
    one.send(b"hello")
    print("sent")
except OSError as problem: print(problem.strerror)
"""
        with socket.socket(socket.AF_UNIX, getattr(socket, kind)) as server:
            before = Path.cwd()
            os.chdir(tmp_path)  # the path of a socket has 107 characters at most
            try:
                server.bind("s")
            finally:
                os.chdir(before)
            if kind == "SOCK_STREAM":
                server.listen()
            open_ = self.run(tmp_path, PYTHON, "-I", "-c", program, filtered=False)
            filtered = self.run(tmp_path, PYTHON, "-I", "-c", program)

        assert (open_.stdout, open_.stderr) == ("sent\n", "")
        assert (filtered.stdout, filtered.stderr) == ("Permission denied\n", "")

    def test_a_pair_of_datagram_sockets_is_no_way_around_it(self, tmp_path: Path) -> None:
        program = "import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)"

        ended = self.run(tmp_path, PYTHON, "-I", "-c", program)

        assert ended.returncode == 1
        assert "PermissionError" in ended.stderr

    def test_python_has_its_processes_threads_pairs_and_network_of_its_own(self, tmp_path: Path) -> None:
        program = """
import asyncio, multiprocessing, socket, subprocess, threading
threading.Thread(target=print, args=("thread",), daemon=True).start()
with multiprocessing.get_context("fork").Pool(2) as pool: print(sum(pool.map(abs, [-1, -2])))
async def echo():
    server = await asyncio.start_server(lambda r, w: (w.write(b"tcp"), w.close()), "127.0.0.1", 0)
    reader, _ = await asyncio.open_connection(*server.sockets[0].getsockname())
    process = await asyncio.create_subprocess_exec("echo", "child")
    await process.wait()
    return (await reader.read()).decode()
print(asyncio.run(echo()), flush=True)
"""
        ended = self.run(tmp_path, PYTHON, "-I", "-c", program)

        assert (sorted(ended.stdout.split()), ended.stderr) == (["3", "child", "tcp", "thread"], "")

    @pytest.mark.skipif(shutil.which("git") is None or shutil.which("make") is None, reason="no git or make here")
    def test_git_and_make_work(self, tmp_path: Path) -> None:
        (tmp_path / "Makefile").write_text("all: one two\none two:\n\t@echo $@\n")
        script = (
            "git init -q . && git add Makefile && git -c user.name=a -c user.email=b@c commit -qm first "
            "&& git clone -q . copy && git -C copy log --format=%s && make -j2 | sort"
        )

        ended = self.run(tmp_path, "/bin/sh", "-c", script)

        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "first\none\ntwo\n", "")
