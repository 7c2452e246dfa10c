"""The contract between `Sandbox`, which chooses, and the ways to confine a process; the /etc files that they show."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from goat_mcp.commands.sandbox.git_directories import WatchedFolder
from goat_mcp.commands.sandbox.options import Network
from goat_mcp.processes.launch import Launch

ETC = (
    *("/etc/alternatives", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/crypto-policies"),
    *("/etc/debian_version", "/etc/fonts", "/etc/gai.conf", "/etc/gitconfig", "/etc/group", "/etc/host.conf"),
    *("/etc/hosts", "/etc/java", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/locale.alias"),
    *("/etc/locale.conf", "/etc/localtime", "/etc/lsb-release", "/etc/magic", "/etc/mime.types"),
    *("/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd", "/etc/pki/ca-trust", "/etc/pki/tls/certs"),
    *("/etc/pki/tls/cert.pem", "/etc/pki/tls/openssl.cnf", "/etc/protocols", "/etc/resolv.conf", "/etc/services"),
    *("/etc/shells", "/etc/ssl/cert.pem", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/terminfo", "/etc/timezone"),
)
"""What programs need of /etc, if it exists. Not /etc itself: for root it holds password hashes and keys (R-PROC-2)."""


__all__ = ["Bounds", "Confinement", "ConfinementName", "InnerListener", "Job", "Launch", "ProxyAccess", "trial_problem"]

ConfinementName = Literal["bubblewrap", "landlock", "seatbelt"]


@dataclass(frozen=True)
class InnerListener:
    """The proxy's listening socket inside one sandbox that has a network of its own.

    Attributes:
        launcher: put before a program's arguments. Inside, it listens on 127.0.0.1, sends that socket to the proxy
            through `descriptor`, and becomes the program: nothing of it stays. It needs no Unix socket, so the system
            call filter holds for it too.
        readable: what `launcher` must be able to read inside, beside the system's programs.
        descriptor: has to stay open down to `launcher`; the caller closes it once the program was started, or not.
        environment: the proxy variables.
        close: call it when the last process is gone, or nothing was started. From any thread.
    """

    launcher: tuple[str, ...]
    readable: tuple[Path, ...]
    descriptor: int
    environment: Mapping[str, str]
    close: Callable[[], None]


@dataclass(frozen=True)
class ProxyAccess:
    """How programs reach our proxy, the only way out of a sandbox whose network is `domains`.

    Attributes:
        port: where it listens on 127.0.0.1, for a sandbox that shares our network.
        environment: the proxy variables for that port, with a password in them.
        listen_inside: makes a listener for one sandbox with a network of its own. From any thread.
    """

    port: int
    environment: Mapping[str, str]
    listen_inside: Callable[[], InnerListener]


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What one confined process may reach. All paths are absolute and real; the system's programs come on top.

    Attributes:
        writable: directories and files it may read and change.
        readable: more that it may only read; one below a writable path stays readable only.
        pinned: directories below writable paths that it may not move or replace; it may change their content.
        read_only: below writable paths, existing, that it may read and not change.
        absent: below writable paths, missing, and not to be made by it.
        hidden: not visible, whatever directory they lie in.
        watched: git directories below writable paths; what git would obey and is new afterwards is set aside.
        missed: why more paths may need protection, in words.
        links: symbolic links to make, each with its target, so that a path leads where it does outside.
        temporary: a directory for temporary files, mounted in place of an empty one.
        home: the user's home directory; an empty one is in its place, unless it is readable anyway.
        proxy: set if `network` is DOMAINS.
    """

    writable: tuple[Path, ...]
    readable: tuple[Path, ...] = ()
    pinned: tuple[Path, ...] = ()
    read_only: tuple[Path, ...] = ()
    absent: tuple[Path, ...] = ()
    watched: tuple[WatchedFolder, ...] = ()
    missed: tuple[str, ...] = ()
    hidden: tuple[Path, ...] = ()
    links: tuple[tuple[Path, Path], ...] = ()
    temporary: Path | None = None
    home: Path | None = None
    network: Network = Network.DENY
    proxy: ProxyAccess | None = None


@dataclass(frozen=True, kw_only=True)
class Job:
    """A program to confine. `marker` is the variable that finds its processes (`MARKER_VARIABLE=value`); it has to
    be in the environment of the launched program itself, too. `pass_fds` stay open down to the program."""

    arguments: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]
    bounds: Bounds
    marker: Mapping[str, str] = field(default_factory=dict[str, str])
    pass_fds: tuple[int, ...] = ()


class Confinement(Protocol):
    """One way to confine processes."""

    @property
    def name(self) -> ConfinementName: ...

    @property
    def has_process_namespace(self) -> bool:
        """Whether it has processes of its own. Then `Launch.has_process_namespace` is True."""
        ...

    @property
    def protects_paths(self) -> bool:
        """Whether protected and hidden paths below writable ones stay protected and hidden."""
        ...

    @property
    def limits(self) -> tuple[str, ...]:
        """What this way does not protect, in words, for status."""
        ...

    def missing(self) -> str:
        """Why this way cannot be used, by a trial run; empty if it can. Blocking, some 20 ms."""
        ...

    def launch(self, job: Job) -> Launch:
        """How to start `job`. Raises `OSError` if a path of it cannot be opened. Blocking, a millisecond."""
        ...


_TRIAL_S = 10.0


def trial_problem(launch: Launch, title: str) -> str:
    """Run a trial to its end: what it said first, behind `title`, if it failed; else nothing.

    The caller finishes the launch. Raises `OSError` and `subprocess.TimeoutExpired`.
    """
    run = subprocess.run(
        launch.arguments,
        env=launch.environment,
        cwd=launch.directory,
        pass_fds=launch.pass_fds,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_TRIAL_S,
        check=False,
    )
    if run.returncode == 0:
        return ""
    said = run.stderr.strip().splitlines()
    return f"{title} does not work here: {said[0][:200] if said else f'exit code {run.returncode}'}"
