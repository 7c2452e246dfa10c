"""Landlock, where bubblewrap cannot work: which rights a confined program keeps, and what that does not cover.

The kernel's side of it is in `subprocesses.landlock`, the process that restricts itself in `landlock_launcher`.

A tree that may be written is writable whole: Landlock has no rule that takes `.git/hooks` out of a root again, and
rules for each entry of a root instead of the root would let nobody make a file beside them, not even git its lock.
So `Bounds.pinned`, `read_only`, `absent`, `watched` and `hidden` are not kept here, and `limits` says so. What was
changed of them is told when the program has ended.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from goat_mcp.commands.sandbox.confinement import Bounds, Job, Launch
from goat_mcp.commands.sandbox.launcher import launcher_command
from goat_mcp.commands.sandbox.options import Network
from goat_mcp.commands.sandbox.private_folder import PrivateFolder, remove_stale_folders
from goat_mcp.commands.sandbox.protected_state import ProtectedState
from goat_mcp.commands.sandbox.seccomp import Sockets, system_call_filter
from goat_mcp.commands.sandbox.system_files import ETC
from goat_mcp.processes import landlock as kernel

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sys/devices/system/cpu")
# /proc as a whole, since programs read of themselves there what threads and stacks they have. Of other processes it
# shows names and arguments, never environments: Landlock refuses what would need the right to trace them.
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

    `abi` and `machine` are only given to be without what another kernel or machine would lack.
    """

    name = "landlock"
    has_process_namespace = False

    def __init__(self, *, abi: int | None = None, machine: str | None = None) -> None:
        self._abi = kernel.Landlock().abi if abi is None else abi
        self._machine = machine

    @property
    def description(self) -> str:
        """One line for status: `landlock ABI 7: files, TCP, abstract sockets, signals; no PID namespace, ...`."""
        kept = ["files"]
        if self._abi >= kernel.TCP_FROM_ABI:
            kept.append("TCP")
        if self._abi >= kernel.SCOPES_FROM_ABI:
            kept.append("abstract sockets, signals")
        if self._filters:
            kept.append("other sockets by seccomp")
        return f"landlock ABI {self._abi}: {', '.join(kept)}; {', '.join(self.limits)}"

    @property
    def limits(self) -> tuple[str, ...]:
        missing = [
            "no PID namespace: names and arguments of other processes are seen",
            "modes, owners and times of files outside can be changed, and their names and sizes asked for",
            "shared memory and message queues of other processes stay",
            "protected paths inside writable directories can be changed, which is told afterwards",
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
        if not sys.platform.startswith("linux"):
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
        if bounds.home is not None and not _in_reach(bounds.home, bounds):
            home = private / "home"
            home.mkdir(mode=0o700)
            environment["HOME"] = str(home)
        if bounds.network is Network.DOMAINS and bounds.door is not None:
            environment.update(bounds.door.environment)
        options = ["--abi", str(self._abi)]
        for path in dict.fromkeys((*bounds.writable, private, temporary)):
            options += ["--write", os.fspath(path)]
        for path in _DEVICES:
            options += ["--device", path]
        for path in (*_SYSTEM, *ETC, *bounds.readable):
            options += ["--read", os.fspath(path)]
        options += self._network(bounds)
        return Launch(
            arguments=(*launcher_command("landlock_launcher"), *options, "--", *job.arguments),
            environment=environment,
            directory=os.fspath(job.directory),
            pass_fds=job.pass_fds,
            finish=_ending(folder, ProtectedState.of((*bounds.read_only, *bounds.absent), bounds.watched)),
        )

    @property
    def _filters(self) -> bool:
        return system_call_filter(Sockets.NONE, self._machine) is not None

    def _network(self, bounds: Bounds) -> list[str]:
        """Options for what is left of the network. Landlock cannot tell hosts, and knows no UDP: the filter does."""
        sockets = Sockets.NETWORK
        options: list[str] = []
        if bounds.network is not Network.ALLOW:
            has_door = bounds.network is Network.DOMAINS and bounds.door is not None
            if has_door and self._abi >= kernel.TCP_FROM_ABI:
                sockets, port = Sockets.TCP, str(bounds.door.port if bounds.door else 0)
            else:
                sockets, port = Sockets.NONE, "none"
            options += ["--connect", port]
        program = system_call_filter(sockets, self._machine, sees_other_processes=True)
        if program is not None:
            options += ["--seccomp", program.hex()]
        return options


def _in_reach(path: Path, bounds: Bounds) -> bool:
    return any(path.is_relative_to(place) for place in (*bounds.writable, *bounds.readable))


def _ending(folder: PrivateFolder, protected: ProtectedState) -> Callable[[], tuple[str, ...]]:
    def end() -> tuple[str, ...]:
        folder.remove()
        return protected.changes()

    return end
