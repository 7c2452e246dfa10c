"""Landlock, for systems where bubblewrap does not work: which rights a confined program keeps, and what stays open.

The kernel interface is in `processes.linux_landlock`; the process that restricts itself is `linux_confined_start`.

A writable tree is writable as a whole: Landlock has no rule that excludes `.git/hooks` from a root, and rules for each
entry of a root instead would let nobody make a file beside them, not even git its lock. So `Bounds.pinned`,
`read_only`, `absent`, `watched` and `hidden` are not enforced here, and `limits` says so. Changes to them are reported
when the program has ended.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from goat_mcp.commands.sandbox.confinement import ETC, Bounds, ConfinementName, Job, Launch
from goat_mcp.commands.sandbox.git_directories import WatchedFolder
from goat_mcp.commands.sandbox.launcher import launcher_command
from goat_mcp.commands.sandbox.options import Network
from goat_mcp.commands.sandbox.seccomp import Sockets, system_call_filter
from goat_mcp.commands.sandbox.temporary_folders import PrivateFolder, remove_stale_folders
from goat_mcp.core import platform
from goat_mcp.processes import linux_landlock as kernel

_MAX_ENTRIES = 2000
"""Of a protected directory. `.git/hooks` and editors' folders have some dozens."""
_MAX_SHOWN = 5

_Mark = tuple[int, int, int, int] | None
"""What changes with a file, among it its ctime, which no program can set; None for a missing file."""


@dataclass(frozen=True)
class ProtectedState:
    """Protected files and directories before a program that can change them, to report its changes.

    Nothing is restored: a person's own change in the meantime looks the same. In the directories `watched` some files
    may be new.
    """

    marks: dict[Path, dict[Path, _Mark]]
    watched: tuple[WatchedFolder, ...] = ()

    @classmethod
    def of(cls, paths: Iterable[Path], watched: Iterable[WatchedFolder] = ()) -> ProtectedState:
        return cls({path: dict(_marks(path)) for path in paths}, tuple(watched))

    def changes(self) -> tuple[str, ...]:
        """One line on what is different now; nothing if nothing is."""
        changed = [str(path) for path, before in self.marks.items() if dict(_marks(path)) != before]
        new = (str(one.path / name) for one in self.watched for name in one.new_names())
        changed.extend(path for path in new if path not in changed)
        if not changed:
            return ()
        more = f" and {len(changed) - _MAX_SHOWN} more" if len(changed) > _MAX_SHOWN else ""
        return (
            f"changed while the command ran: {', '.join(changed[:_MAX_SHOWN])}{more}. These are protected, but "
            "Landlock cannot keep a command from them: look at them before anything obeys them",
        )


def _marks(path: Path) -> Iterator[tuple[Path, _Mark]]:
    left = _MAX_ENTRIES
    waiting = [path]
    while waiting and left > 0:
        one = waiting.pop()
        left -= 1
        try:
            status = one.lstat()
        except OSError:
            yield one, None
            continue
        yield one, (status.st_mode, status.st_ino, status.st_size, status.st_ctime_ns)
        if one.is_dir() and not one.is_symlink():
            try:
                waiting += sorted(Path(one, name) for name in os.listdir(one))  # noqa: PTH208  # names are all it needs
            except OSError:
                continue


_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sys/devices/system/cpu")
# /proc as a whole, since programs read their own threads and stacks there. Of other processes it shows names and
# arguments, never environments: Landlock refuses what needs the right to trace them.
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

_REFER_FROM_ABI, _TRUNCATE_FROM_ABI = 2, 3
_TRIAL_S = 10.0
_TRIAL = (
    # /proc and what is shown of /sys are under one rule each, so some files of each speak for all.
    "for file in /proc/sysrq-trigger /proc/sys/kernel/* /proc/pressure/* /sys/devices/system/cpu/cpu0/*; do "
    '[ ! -f "$file" ] || ! true >>"$file" || { echo "$file could be opened for writing" >&3; exit 8; }; '
    "done 3>&2 2>/dev/null"
)


class Landlock:
    """Files, TCP, signals as far as this kernel's Landlock goes; sockets of other kinds by a filter of system calls.

    `abi` and `machine` are for tests: to lack what another kernel or machine lacks.
    """

    name: ConfinementName = "landlock"
    has_process_namespace = False
    protects_paths = False

    def __init__(self, *, abi: int | None = None, machine: str | None = None) -> None:
        self._abi = kernel.Landlock().abi if abi is None else abi
        self._machine = machine

    @property
    def limits(self) -> tuple[str, ...]:
        missing = [
            "no PID namespace: names and arguments of other processes are seen",
            "modes, owners and times of files outside can be changed, and their names and sizes asked for",
            "shared memory and message queues of other processes stay",
            "protected paths inside writable directories can be changed, which is reported afterwards",
        ]
        if self._abi >= kernel.TCP_FROM_ABI:
            missing.append("with network domains, TCP reaches every host on the proxy's port")
        if not self._filters:
            missing.append("limits of other processes can be set")
            missing.append("UDP and Unix sockets by path stay, for want of a seccomp filter on this machine")
        if self._abi < kernel.SCOPES_FROM_ABI:
            missing.append("signals reach other processes")
            if not self._filters:
                missing.append("abstract Unix sockets stay")
        if self._abi < kernel.TCP_FROM_ABI:
            missing.append("network domains cannot be kept: they are denied" if self._filters else "TCP stays")
        if self._abi < _TRUNCATE_FROM_ABI:
            missing.append("files outside can be cut off (truncate)")
        if self._abi < _REFER_FROM_ABI:
            missing.append("a file is not moved between directories but copied")
        return tuple(missing)

    def missing(self) -> str:
        """Why this cannot be used; empty if it can."""
        if platform.SYSTEM != "linux":
            return "Landlock is a part of Linux"
        if self._abi < 1:
            return "this kernel has no Landlock, or it is switched off"
        if not sys.executable:
            return "it is not known which Python this is"
        remove_stale_folders()
        bounds = Bounds(writable=())
        trial = Job(arguments=("/bin/sh", "-c", _TRIAL), directory=Path("/"), environment={}, bounds=bounds)
        launch = self.launch(trial)
        try:
            ran = subprocess.run(
                launch.arguments,
                env=launch.environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TRIAL_S,
            )
        except (OSError, subprocess.SubprocessError) as problem:
            return f"a trial run failed: {problem}"
        finally:
            launch.finish()
        if ran.returncode:
            return f"a trial run failed: {ran.stderr.decode('utf-8', 'replace').strip()[:300]}"
        return ""

    def launch(self, job: Job) -> Launch:
        """Restricts itself, then becomes the program: same process, group, descriptors. Raises `OSError`."""
        bounds = job.bounds
        for path in bounds.writable:
            path.stat()  # the launcher would say it too, but only as a line of the program's output
        folder = PrivateFolder()
        private = folder.path
        temporary = bounds.temporary or private
        environment = {**job.environment, **job.marker, "TMPDIR": str(temporary)}
        if bounds.home is not None and not _is_visible(bounds.home, bounds):
            home = private / "home"
            home.mkdir(mode=0o700)
            environment["HOME"] = str(home)
        if bounds.network is Network.DOMAINS and bounds.proxy is not None:
            environment.update(bounds.proxy.environment)
        options = ["--abi", str(self._abi)]
        for path in dict.fromkeys((*bounds.writable, private, temporary)):
            options += ["--write", os.fspath(path)]
        for path in _DEVICES:
            options += ["--device", path]
        for path in (*_SYSTEM, *ETC, *bounds.readable):
            options += ["--read", os.fspath(path)]
        options += self._network(bounds)
        protected = ProtectedState.of((*bounds.read_only, *bounds.absent), bounds.watched)

        def finish() -> tuple[str, ...]:
            folder.remove()
            return protected.changes()

        return Launch(
            arguments=(*launcher_command("linux_confined_start", "landlock_main"), *options, "--", *job.arguments),
            environment=environment,
            directory=os.fspath(job.directory),
            pass_fds=job.pass_fds,
            finish=finish,
        )

    @property
    def _filters(self) -> bool:
        return system_call_filter(Sockets.NONE, self._machine) is not None

    def _network(self, bounds: Bounds) -> list[str]:
        """Options for the allowed network. Landlock cannot tell hosts and knows no UDP: the filter does."""
        sockets = Sockets.NETWORK
        options: list[str] = []
        if bounds.network is not Network.ALLOW:
            has_proxy = bounds.network is Network.DOMAINS and bounds.proxy is not None
            if has_proxy and self._abi >= kernel.TCP_FROM_ABI:
                sockets, port = Sockets.TCP, str(bounds.proxy.port if bounds.proxy else 0)
            else:
                sockets, port = Sockets.NONE, "none"
            options += ["--connect", port]
        program = system_call_filter(sockets, self._machine, sees_other_processes=True)
        if program is not None:
            options += ["--seccomp", program.hex()]
        return options


def _is_visible(path: Path, bounds: Bounds) -> bool:
    return any(path.is_relative_to(one) for one in (*bounds.writable, *bounds.readable))
