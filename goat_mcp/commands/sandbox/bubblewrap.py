"""Confinement by bubblewrap: namespaces of its own, and only what `Bounds` names is visible (R-PROC-2, R-PROC-3)."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from goat_mcp.commands.sandbox.confinement import (
    ETC,
    Bounds,
    ConfinementName,
    InnerListener,
    Job,
    Launch,
    trial_problem,
)
from goat_mcp.commands.sandbox.mounts import Mount, MountKind, mounts_of
from goat_mcp.commands.sandbox.no_follow import NoFollow
from goat_mcp.commands.sandbox.options import Network
from goat_mcp.commands.sandbox.placeholders import Placeholders
from goat_mcp.core import posix
from goat_mcp.processes.mount_table import mounts_of_kind

_PROGRAM_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin", "/run/wrappers/bin", "/run/current-system/sw/bin")
"""Not the user's PATH: a workspace may be on it."""
_SYSTEM = Path("/usr")
_SCRATCH = ("/tmp", "/run", "/var/tmp")
_BESIDE_USR = ("bin", "lib", "lib32", "lib64", "libx32", "sbin")
_NAMESPACES = (
    *("--unshare-all", "--unshare-user", "--uid", "65534", "--gid", "65534"),
    *("--cap-drop", "ALL", "--disable-userns", "--die-with-parent", "--new-session", "--clearenv"),
)
_TRIAL = (
    # A mount that is read-only refuses to open any file on it for writing, whatever the file and whoever asks.
    "while read -r _ _ _ _ place options rest; do "
    'case "$place - $rest" in /proc*|/sys*|*" - proc "*|*" - sysfs "*) proc=seen; '
    'case $options in ro|ro,*) ;; *) echo "files below $place could be opened for writing" >&2; exit 8;; esac;; esac; '
    'done </proc/self/mountinfo; [ "$proc" = seen ] || exit 8; '
    'while read -r name value; do [ "$name" = CapEff: ] && [ "$value" = 0000000000000000 ] && exit 0; done '
    "</proc/self/status; exit 9"
)
_KERNEL_FILE_SYSTEMS = frozenset(
    [
        *("proc", "sysfs", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "configfs", "efivarfs", "bpf"),
        *("pstore", "binfmt_misc", "selinuxfs", "smackfs", "fusectl", "resctrl", "nfsd"),
    ]
)
_TEMPORARY = ("/tmp", "/var/tmp")
_UNREACHABLE = ("SSH_AUTH_SOCK",)
"""Variables that name a socket of the user's, which no sandbox shows."""


def find_bubblewrap() -> str | None:
    """The system's bwrap."""
    return shutil.which("bwrap", path=os.pathsep.join(_PROGRAM_FOLDERS))


class Bubblewrap:
    """`system_call_filter` gives the BPF program that refuses Unix sockets; None where there is none."""

    name: ConfinementName = "bubblewrap"
    has_process_namespace = True
    protects_paths = True

    def __init__(
        self,
        placeholders: Placeholders,
        *,
        find: Callable[[], str | None] = find_bubblewrap,
        system_call_filter: Callable[[], bytes | None] = lambda: None,
    ) -> None:
        self._placeholders = placeholders
        self._find = find
        self._system_call_filter = system_call_filter

    @property
    def limits(self) -> tuple[str, ...]:
        """What this way does not protect, in words."""
        if self._filter is None:
            return ("Unix sockets in the workspace, and with sandbox_network=allow abstract ones, can be reached",)
        return ()

    def missing(self) -> str:
        """Why bubblewrap cannot be used; empty if it can."""
        if self._find() is None:
            return "bubblewrap is not installed (no bwrap in the system's program folders)"
        job = Job(
            arguments=("/bin/sh", "-c", _TRIAL),
            directory=Path("/"),
            environment={},
            # A second mount of a directory that is there anyway: is this version able to mount what is open?
            bounds=Bounds(writable=(), readable=(_SYSTEM / "bin",)),
        )
        try:
            launch = self.launch(job)
        except OSError as problem:
            return f"bubblewrap cannot be started: {problem}"
        try:
            return trial_problem(launch, self.name)
        except (OSError, subprocess.TimeoutExpired) as problem:
            return f"bubblewrap cannot be started: {problem}"
        finally:
            for descriptor in launch.own_fds:
                os.close(descriptor)
            launch.finish()

    def launch(self, job: Job) -> Launch:
        """How to start `job`. Raises `OSError` if a path of it cannot be opened, or became a link."""
        program = self._find()
        if program is None:
            raise FileNotFoundError(2, "bubblewrap is not installed", "bwrap")
        bounds, inner = job.bounds, None
        if bounds.network is Network.DOMAINS:
            if bounds.proxy is None:
                raise ValueError("a network of domains needs a proxy")
            inner = bounds.proxy.listen_inside()
            bounds = replace(bounds, readable=(*bounds.readable, *inner.readable))
        mounts = mounts_of(bounds, (_SYSTEM,))
        covered = [mount.path for mount in mounts if mount.kind is MountKind.ABSENT]
        watched = bounds.watched
        own_fds: list[int] = [] if inner is None else [inner.descriptor]
        try:
            with NoFollow() as opener:
                options = [*_parent_options(mounts), *_mount_options(mounts, opener, own_fds)]
            options += [word for path in _kernel_mounts(bounds) for word in ("--remount-ro", str(path))]
            options += _link_options(bounds, mounts)
            temporary = _temporary_mount(bounds, mounts)
            if bounds.temporary is not None and temporary:
                folder = os.open(bounds.temporary, posix.O_PATH | posix.O_DIRECTORY | posix.O_NOFOLLOW)
                options += ["--bind-fd", _keep(folder, own_fds), temporary, "--setenv", "TMPDIR", temporary]
            options += [*_environment_options(job, mounts, inner, temporary), "--chdir", str(job.directory)]
            # The root only leads to mounts, too. After all mounts: their directories are made in it.
            if all(mount.path != Path("/") for mount in mounts):
                options += ["--remount-ro", "/"]
            if (program_text := self._filter) is not None:
                options += ["--seccomp", _keep(_file_of(program_text), own_fds)]
            if bounds.network is Network.ALLOW:
                options = ["--share-net", *options]
            options = [*_NAMESPACES, *_system_options(own_fds), *options]
            arguments = _keep(_file_of(b"".join(os.fsencode(option) + b"\0" for option in options)), own_fds)
            taken = self._placeholders.acquire(covered, watched)
        except BaseException:
            for descriptor in own_fds:
                os.close(descriptor)
            if inner is not None:
                inner.close()
            raise

        def finish() -> tuple[str, ...]:
            if inner is not None:
                inner.close()
            return self._placeholders.release(taken, watched)

        launcher = () if inner is None else inner.launcher
        launch = Launch(
            # By a descriptor: everybody on the machine can read a program's arguments, and values are in these.
            arguments=(program, "--args", arguments, "--", *launcher, *job.arguments),
            # Whatever is in bwrap's own environment can be read inside (R-PROC-3, 3).
            environment=dict(job.marker),
            directory="/",
            pass_fds=(*job.pass_fds, *own_fds),
            own_fds=tuple(own_fds),
            has_process_namespace=True,
        )
        return replace(launch, finish=finish) if taken or watched or inner is not None else launch

    @cached_property
    def _filter(self) -> bytes | None:
        return self._system_call_filter()


def _system_options(own_fds: list[int]) -> list[str]:
    """What every program needs: /usr, the C library's and TLS's files of /etc, devices, scratch directories.

    Files of /etc are copied: that takes a tenth of the time of a mount.
    """
    options = ["--ro-bind", str(_SYSTEM), str(_SYSTEM)]
    for name in _BESIDE_USR:
        path = Path("/", name)
        if path.is_symlink():
            options += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            options += ["--ro-bind", str(path), str(path)]
    for name in ETC:
        path = Path(name)
        if path.is_symlink() and (target := path.resolve()).is_relative_to(_SYSTEM):
            options += ["--symlink", str(target), name]
        elif path.is_dir():
            options += ["--ro-bind", name, name]
        else:
            with suppress(FileNotFoundError, PermissionError):
                file = os.open(path, os.O_RDONLY | posix.O_NONBLOCK)
                options += ["--perms", "0444", "--file", _keep(file, own_fds), name]
    # Read-only as a whole: for root the modes of files below /proc/sys refuse nothing, and which files there are
    # differs from kernel to kernel. What a program has open it can still write by /proc/self/fd.
    options += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]
    return [*options, *(word for path in _SCRATCH for word in ("--tmpfs", path))]


def _parent_options(mounts: Sequence[Mount]) -> list[str]:
    """Directories in scratch space that only lead to a mount: nothing can be written into them.

    Else a file made beside the workspace would seem to exist, and be gone at the command's end.
    """
    ends = [mount.path for mount in mounts if mount.kind in (MountKind.READABLE, MountKind.WRITABLE)]
    folders = {above for end in ends for above in end.parents if any(Path(path) in above.parents for path in _SCRATCH)}
    return [word for folder in sorted(folders) for word in ("--perms", "0555", "--dir", str(folder))]


def _mount_options(mounts: Sequence[Mount], opener: NoFollow, own_fds: list[int]) -> list[str]:
    options: list[str] = []
    for mount in mounts:
        path = str(mount.path)
        match mount.kind:
            case MountKind.EMPTY:
                options += ["--tmpfs", path]
            case MountKind.WRITABLE:
                options += ["--bind-fd", _keep(opener.open(mount.path), own_fds), path]
            case MountKind.READABLE:
                options += ["--ro-bind-fd", _keep(opener.open(mount.path), own_fds), path]
            # What has gone, or become a link, since it was found cannot be protected, and must not fail the others.
            case MountKind.PINNED:
                with _unless_gone():
                    options += ["--bind-fd", _keep(opener.open(mount.path), own_fds), path]
            case MountKind.READ_ONLY:
                with _unless_gone():
                    options += ["--ro-bind-fd", _keep(opener.open(mount.path), own_fds), path]
            case MountKind.ABSENT:
                with _unless_gone():
                    opener.folder(mount.path.parent)
                    options += ["--perms", "0555", "--tmpfs", path]
            case MountKind.HIDDEN:
                if os.path.isdir(path):  # noqa: PTH112  # `Path` raises for what may not be looked at
                    options += ["--tmpfs", path]
                elif os.path.exists(path):  # noqa: PTH110  # as above
                    options += ["--ro-bind", os.devnull, path]
    return options


def _kernel_mounts(bounds: Bounds) -> list[Path]:
    """Mounts of the kernel's own files below writable paths, as in the directory of another system: a bind mount
    includes them."""
    kernels = [Path(mount.path) for mount in mounts_of_kind(_KERNEL_FILE_SYSTEMS)]
    return [path for path in kernels if _is_writable(path, bounds) and os.path.ismount(path)]


def _is_writable(path: Path, bounds: Bounds) -> bool:
    return any(path.is_relative_to(one) for one in bounds.writable) and not any(
        path.is_relative_to(one) for one in (*bounds.read_only, *bounds.absent, *bounds.hidden)
    )


@contextmanager
def _unless_gone() -> Generator[None]:
    try:
        yield
    except OSError as problem:
        if problem.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise


def _link_options(bounds: Bounds, mounts: Sequence[Mount]) -> list[str]:
    """Links that are in no mount."""
    visible = [mount.path for mount in mounts if mount.kind is not MountKind.EMPTY]
    options: list[str] = []
    for link, target in bounds.links:
        if not any(link.is_relative_to(path) for path in (_SYSTEM, *visible)):
            options += ["--symlink", str(target), str(link)]
    return options


def _temporary_mount(bounds: Bounds, mounts: Sequence[Mount]) -> str:
    """Where the session's temporary files are mounted; empty for nowhere.

    Not where something else is mounted below: a command could leave a link there, which the next mount would follow.
    """
    below = [*(mount.path for mount in mounts), *(link for link, _ in bounds.links)]
    free = [folder for folder in _TEMPORARY if not any(path.is_relative_to(folder) for path in below)]
    return free[0] if free and bounds.temporary is not None else ""


def _environment_options(job: Job, mounts: Sequence[Mount], inner: InnerListener | None, temporary: str) -> list[str]:
    environment: Mapping[str, str] = {**job.environment, **job.marker}
    if inner is not None:
        environment = {**environment, **inner.environment}
    visible = [mount.path for mount in mounts if mount.kind is not MountKind.HIDDEN]
    options: list[str] = []
    for name, value in environment.items():
        if name in _UNREACHABLE or (name == "TMPDIR" and temporary):
            continue
        if name == "TMPDIR" and not any(Path(value).is_relative_to(path) for path in visible):
            value = "/tmp"
        options += ["--setenv", name, value]
    return options


def _file_of(data: bytes) -> int:
    """A descriptor that reads `data`."""
    descriptor = posix.memfd_create("sandbox")
    while data:
        data = data[os.write(descriptor, data) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _keep(descriptor: int, own_fds: list[int]) -> str:
    own_fds.append(descriptor)
    return str(descriptor)
