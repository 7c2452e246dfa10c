"""The contract between `Sandbox`, which chooses, and the ways to confine a process. No way lives here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from goat_mcp.commands.sandbox.options import Network
from goat_mcp.commands.sandbox.watched_folder import WatchedFolder
from goat_mcp.processes.launch import Launch

__all__ = ["Bounds", "Confinement", "InnerDoor", "Job", "Launch", "ProxyDoor"]


@dataclass(frozen=True)
class InnerDoor:
    """The way out of one sandbox that has a network of its own.

    Attributes:
        opener: put before a program's arguments. Inside it starts listening on 127.0.0.1, hands that socket to the
            proxy through `descriptor`, and becomes the program: nothing of it stays. Needs no Unix socket, so the
            system call filter may hold for it too.
        readable: what `opener` needs to be readable inside, beside the system's programs.
        descriptor: has to stay open down to `opener`; ours to close as soon as the program was started, or not.
        environment: the proxy variables.
        close: when the last process is gone, or nothing was started. From any thread.
    """

    opener: tuple[str, ...]
    readable: tuple[Path, ...]
    descriptor: int
    environment: Mapping[str, str]
    close: Callable[[], None]


@dataclass(frozen=True)
class ProxyDoor:
    """The one way out of a sandbox whose network is `domains`: a proxy of ours, which checks names.

    Attributes:
        port: where it listens on 127.0.0.1, for a sandbox that shares our network.
        environment: the proxy variables for that port, with a password in them.
        open_inside: makes a way out for one sandbox with a network of its own. From any thread.
    """

    port: int
    environment: Mapping[str, str]
    open_inside: Callable[[], InnerDoor]


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What one confined process may reach. All paths are absolute and real; the system's programs come on top.

    Attributes:
        writable: directories and files it may read and change.
        readable: more that it may only read; one below a writable path stays readable only.
        pinned: directories below writable paths that it may not move or replace, their content it may change.
        read_only: below writable paths, existing, that it may read and not change.
        absent: below writable paths, not there, and not to be made by it.
        hidden: not to be seen, whatever directory they lie in.
        watched: git directories below writable paths; what git would obey and is new afterwards is set aside.
        missed: why there may be more that should be pinned or read-only, in words.
        links: symbolic links that are to be there, each with its target, so that a path leads where it does outside.
        temporary: a directory for temporary files that is to be in place of an empty one.
        home: the user's home directory; an empty one is in its place, unless it is in reach anyway.
        door: set where `network` is DOMAINS.
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
    door: ProxyDoor | None = None


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
    def name(self) -> str:
        """`bubblewrap`, `landlock`."""
        ...

    @property
    def has_process_namespace(self) -> bool:
        """Whether it has processes and mounts of its own: then `Launch.has_process_namespace` is True, and protected
        and hidden paths below writable ones are kept."""
        ...

    @property
    def limits(self) -> tuple[str, ...]:
        """What this way does not cover, in words, for status."""
        ...

    def missing(self) -> str:
        """Why this way cannot be used, found out by a real run; empty if it can. Blocking, some 20 ms."""
        ...

    def launch(self, job: Job) -> Launch:
        """How to start `job`. Raises `OSError` where a path of it cannot be opened. Blocking, a millisecond."""
        ...
