"""A limit on the processes of one command that holds for root too: a pids cgroup below the server's own (R-PROC-8).

The kernel does not hold root to `ulimit -u`. Ordinary users have that limit, so none is made for them.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from goat_mcp.core import platform, posix
from goat_mcp.processes.mount_table import mounts_of_kind
from goat_mcp.processes.process_table import living_process

_PREFIX = "goat-mcp-"
# The first process of a sandbox is seen to be gone some milliseconds before the kernel counts it out of its cgroup.
_TRIED_AGAIN_AFTER_S = (0.02, 0.1, 0.5)


@dataclass(frozen=True)
class OwnCgroup:
    """The directory of this process's cgroup with the controller pids. `is_v2`: in the unified hierarchy."""

    path: Path
    is_v2: bool

    @property
    def join_file(self) -> str:
        """What a process writes 0 to. The file for threads, and so for programs that have one: with the other one the
        kernel waits some 10 ms for all processors."""
        return "cgroup.threads" if self.is_v2 else "tasks"


@dataclass(frozen=True)
class CommandCgroup:
    """The cgroup of one command, still empty.

    `join_descriptor` is written by the command's bash, wherever it is confined to; the caller closes it.
    """

    path: Path
    join_descriptor: int
    _remove: Callable[[Path], None]

    def forbid_more(self) -> None:
        """From now on none of its processes can start another one: what is being killed does not grow again."""
        with suppress(OSError):
            _write(self.path / "pids.max", "0")

    def remove(self) -> None:
        """When its last process is gone; on the event loop. One that is still in use is removed later."""
        self._remove(self.path)


class PidsCgroups:
    """Makes them. For the thread of the event loop.

    `own` finds this process's cgroup and raises `OSError` if there is none; `is_needed` whether the limit of users does
    not hold for this one.
    """

    def __init__(
        self, *, own: Callable[[], OwnCgroup] | None = None, is_needed: Callable[[], bool] | None = None
    ) -> None:
        self._find_own = own or own_cgroup
        self.is_needed = platform.HAS_CGROUPS and (is_needed or _is_root)()
        self._own: OwnCgroup | None = None
        self._why_not: str | None = None
        self._left: set[Path] = set()

    def make(self, max_processes: int) -> CommandCgroup | None:
        """One for a command; None if none is needed, or can be made: then `why_not` says why.

        Raises `OSError` if one could be made before and this one could not: the next call tries again.
        """
        if not max_processes or not self.is_needed or self.why_not:
            return None
        try:
            return self._make(max_processes)
        except OSError:
            self._why_not = None
            raise

    @property
    def why_not(self) -> str:
        """Why none can be made, in words; empty if one can. Found out by making one, the first time; a millisecond."""
        if self._why_not is None:
            self._why_not = self._tried()
        return self._why_not

    def _tried(self) -> str:
        try:
            self._own = own = self._find_own()
            _remove_stale(own.path)
            if own.is_v2 and "pids" not in (own.path / "cgroup.subtree_control").read_text().split():
                _write(own.path / "cgroup.subtree_control", "+pids")
            trial = self._make(1)
        except OSError as problem:
            return _reason(problem)
        os.close(trial.join_descriptor)
        self._remove(trial.path)
        return ""

    def _make(self, max_processes: int) -> CommandCgroup:
        own = self._own
        if own is None:
            raise FileNotFoundError(2, "no cgroup was found")
        for path in list(self._left):
            self._remove(path)
        path = own.path / f"{_PREFIX}{_own_name()}-{secrets.token_hex(4)}"
        path.mkdir()
        try:
            if own.is_v2:
                # A cgroup that holds processes, as ours does, can only have children of this type.
                _write(path / "cgroup.type", "threaded")
            _write(path / "pids.max", str(max_processes))
            descriptor = os.open(path / own.join_file, os.O_WRONLY)
        except OSError:
            self._remove(path)
            raise
        return CommandCgroup(path, descriptor, self._remove_soon)

    def _remove_soon(self, path: Path, again_after_s: tuple[float, ...] = _TRIED_AGAIN_AFTER_S) -> None:
        self._remove(path)
        if path in self._left and again_after_s:
            asyncio.get_running_loop().call_later(again_after_s[0], self._remove_soon, path, again_after_s[1:])

    def _remove(self, path: Path) -> None:
        if _is_removed(path):
            self._left.discard(path)
        else:
            self._left.add(path)


def join_line(descriptor: int) -> str:
    """What bash runs to put itself, and so all that it starts, into the cgroup behind `descriptor`."""
    return (
        f"{{ builtin echo 0 >&{descriptor}; }} 2>/dev/null || "
        f"builtin echo 'goat-mcp: the number of processes is not limited' >&2; exec {descriptor}>&-; "
    )


def own_cgroup(cgroups: str = "/proc/self/cgroup", mounts: str = "/proc/self/mountinfo") -> OwnCgroup:
    """Source: man 7 cgroups. Raises `OSError` if the controller pids is not mounted here."""
    with open(cgroups, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123  # a path of the kernel
        lines = [line.rstrip("\n").split(":", 2) for line in file]
    for _, controllers, path in (line for line in lines if len(line) == 3):
        names = controllers.split(",")
        is_v2 = names == [""]
        if not is_v2 and "pids" not in names:
            continue
        for mount in mounts_of_kind({"cgroup2" if is_v2 else "cgroup"}, mounts):
            if is_v2 or "pids" in mount.options:
                found = _below(mount.path, mount.root, path)
                if found is not None and (not is_v2 or _has_pids(found)):
                    return OwnCgroup(found, is_v2)
    raise FileNotFoundError(2, "no cgroup with the controller pids is mounted")


def _below(mounted_at: str, root: str, path: str) -> Path | None:
    """Where the cgroup `path` is seen in a mount that shows the hierarchy from `root` on."""
    if ".." in path.split("/") or not Path(path).is_relative_to(root):
        return None
    return Path(mounted_at) / Path(path).relative_to(root)


def _has_pids(directory: Path) -> bool:
    with suppress(OSError):
        return "pids" in (directory / "cgroup.controllers").read_text().split()
    return False


def _remove_stale(own: Path) -> None:
    """What servers have left that are gone. The kernel removes no cgroup that has processes."""
    for path in own.glob(f"{_PREFIX}*-*-*"):
        pid, _, started = path.name.removeprefix(_PREFIX).rpartition("-")[0].partition("-")
        if pid.isdigit():
            process = living_process(int(pid))
            if process is None or str(process.started) != started:
                _is_removed(path)


def _is_removed(path: Path) -> bool:
    # A server that was started by a command and did not end well has left its own in there.
    for inner in path.glob(f"{_PREFIX}*"):
        _is_removed(inner)
    try:
        path.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _own_name() -> str:
    process = living_process(os.getpid())
    return f"{os.getpid()}-{process.started if process is not None else 0}"


def _write(path: Path, text: str) -> None:
    """Not `Path.write_text`, which makes a file if there is none."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _is_root() -> bool:
    return posix.geteuid() == 0


def _reason(problem: OSError) -> str:
    where = f"{problem.filename}: " if problem.filename else ""
    return f"{where}{problem.strerror or problem}"
