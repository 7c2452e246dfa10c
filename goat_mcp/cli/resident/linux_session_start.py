"""A fork takes the place of the process that the host started: its streams, folder, environment, arguments and limits.
What it cannot take over must be the same already, or the launcher serves by itself (design/0029).
"""

from __future__ import annotations

import array
import locale
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import goat_mcp_launch
from goat_mcp.cli.serve import set_dumpable
from goat_mcp.processes.linux_confinement import status_of, why_confined
from goat_mcp.server.host_process import LAUNCHER, STARTED

if sys.platform != "linux":
    raise ImportError("only Linux has a resident process")

_STREAMS = 3
_MAX_BODY = 8 * 1024 * 1024
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts")
_SAME_PROCESSORS = ("Cpus_allowed", "Mems_allowed")
_SAME_FILES = ("attr/current", "loginuid", "sessionid")
_NICE, _POLICY = 16, 38
"""Fields of `/proc/PID/stat` after the name."""


class HostDiffers(Exception):
    """Why a fork cannot be what the host started."""


@dataclass(frozen=True)
class Host:
    """The process that connected. `pidfd` is readable once it has ended; from then on its number can be another's."""

    pid: int
    pidfd: int

    @classmethod
    def of(cls, connection: socket.socket) -> Host:
        """Raises `HostDiffers` if it is gone already."""
        pid, _ = goat_mcp_launch.peer_of(connection)
        try:
            pidfd = goat_mcp_launch.peer_pidfd(connection)
            if pidfd is None:  # since it connected, a moment has passed
                pidfd = os.pidfd_open(pid)
        except OSError as problem:
            raise HostDiffers(f"the host's process cannot be seen from here: {problem.strerror}") from None
        return cls(pid, pidfd)

    def has_ended(self) -> bool:
        return bool(select.select([self.pidfd], [], [], 0)[0])


@dataclass(frozen=True)
class Signals:
    """What the host's process ignores and blocks, as masks."""

    ignored: int
    blocked: int


@dataclass(frozen=True)
class Request:
    """What the launcher sent, and its streams and folder as descriptors."""

    arguments: list[str]
    original_arguments: list[str]
    environment: Mapping[bytes, bytes]
    umask: int
    first_path: str
    """Where Python looks for modules first: the folder of the program, or with `-m` the current one."""
    descriptors: list[int]


def read_request(connection: socket.socket) -> Request:
    """Raises `HostDiffers` if it is none."""
    head, ancillary, _, _ = connection.recvmsg(8, socket.CMSG_SPACE(4 * (_STREAMS + 1)))
    descriptors = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    size = int.from_bytes(head, "big")
    if len(head) != 8 or len(descriptors) != _STREAMS + 1 or size > _MAX_BODY:
        raise HostDiffers("the launcher's request cannot be read")
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    body = bytearray()
    while len(body) < size:
        if not (data := connection.recv(min(size - len(body), 1 << 16))):
            raise HostDiffers("the launcher's request is not whole")
        body += data
    umask, arguments, original, first_path, *words = bytes(body).split(b"\0")
    first, second = int(arguments), int(arguments) + int(original)
    variables = (word.partition(b"=") for word in words[second:] if b"=" in word[1:])
    return Request(
        [os.fsdecode(word) for word in words[:first]],
        [os.fsdecode(word) for word in words[first:second]],
        {name: value for name, _, value in variables},
        int(umask, 8),
        os.fsdecode(first_path),
        list(descriptors),
    )


def join_host(host: Host) -> Signals:
    """Compare the host's process with this one, and take its limits and its control group. Raises `HostDiffers`, also
    if the kernel does not tell."""
    theirs, ours = f"/proc/{host.pid}", "/proc/self"
    try:
        check(theirs, ours)
        for limit in _limits():
            if (values := resource.prlimit(host.pid, limit)) != resource.getrlimit(limit):
                _set_limit(limit, values)
        _take_oom_score(_text(f"{theirs}/oom_score_adj"), _text(f"{ours}/oom_score_adj"))
        _join_cgroup(_text(f"{theirs}/cgroup"), _text(f"{ours}/cgroup"))
        status = status_of(theirs)
        signals = Signals(int(status["SigIgn"], 16), int(status["SigBlk"], 16))
    except OSError as problem:
        raise HostDiffers(f"the host's process cannot be compared: {problem}") from None
    if host.has_ended():
        raise HostDiffers("the host's process ended while it was compared")
    os.close(host.pidfd)
    return signals


def check(theirs: str, ours: str) -> None:
    """Compare two processes, as their folders below `/proc`. Raises `HostDiffers`, and `OSError` if one is not seen."""
    if why := why_confined(theirs, ours):
        raise HostDiffers(f"the host's process is confined: {why}")
    for kind in _NAMESPACES:
        if os.readlink(f"{theirs}/ns/{kind}") != os.readlink(f"{ours}/ns/{kind}"):
            raise HostDiffers(f"the host's process has a {kind} namespace of its own")
    if not os.path.samestat(os.stat(f"{theirs}/root"), os.stat(f"{ours}/root")):
        raise HostDiffers("the host's process has a root directory of its own")
    status, own = status_of(theirs), status_of(ours)
    for name in _SAME_PROCESSORS:
        if status.get(name) != own.get(name):
            raise HostDiffers(f"{name} of the host's process is another")
    for name in _SAME_FILES:
        if _text_or_error(f"{theirs}/{name}") != _text_or_error(f"{ours}/{name}"):
            raise HostDiffers(f"{name} of the host's process is another")
    stat, own_stat = (_text(f"{one}/stat").rpartition(")")[2].split() for one in (theirs, ours))
    for field, what in ((_NICE, "nice value"), (_POLICY, "scheduling policy")):
        if stat[field] != own_stat[field]:
            raise HostDiffers(f"the {what} of the host's process is another")


def _set_limit(limit: int, values: tuple[int, int]) -> None:
    try:
        resource.setrlimit(limit, values)
    except (OSError, ValueError):
        raise HostDiffers(f"limit {limit} of the host's process is higher") from None


def _take_oom_score(theirs: str, ours: str) -> None:
    """Desktops and editors raise it for what they start. Everybody may raise their own, and lower it again."""
    if theirs == ours:
        return
    set_dumpable(True)  # the files in `/proc` of an undumpable process are root's
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write(theirs)
    except OSError:
        raise HostDiffers("oom_score_adj of the host's process is lower than this user may set") from None
    finally:
        set_dumpable(False)


def _join_cgroup(theirs: str, ours: str) -> None:
    if theirs == ours:
        return
    path = theirs.strip().removeprefix("0::")
    try:
        with open(f"/sys/fs/cgroup{path}/cgroup.procs", "w", encoding="ascii") as file:
            file.write("0")
    except OSError:
        raise HostDiffers("the host's process is in another control group") from None


def become(request: Request, signals: Signals, connection: socket.socket) -> None:
    """Take the place of the host's process. What is left of the resident process is what it has imported."""
    *streams, folder = request.descriptors
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.fchdir(folder)
    os.close(folder)
    os.umask(request.umask)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signals.ignored >> (number - 1) & 1:
            signal.signal(number, signal.SIG_IGN)
        else:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    blocked = {number for number in signal.valid_signals() if signals.blocked >> (number - 1) & 1}
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    os.environ.clear()
    os.environb.update(request.environment)
    os.environ[STARTED] = "resident"
    os.environ[LAUNCHER] = str(connection.fileno())
    sys.path[0] = request.first_path
    sys.argv[:] = request.arguments
    sys.orig_argv[:] = request.original_arguments
    time.tzset()
    with suppress(locale.Error):
        locale.setlocale(locale.LC_CTYPE, "")


def _limits() -> list[int]:
    return sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _text_or_error(path: str) -> str | int | None:
    try:
        return _text(path)
    except OSError as problem:  # a kernel without it
        return problem.errno
