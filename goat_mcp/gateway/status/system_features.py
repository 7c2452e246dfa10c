"""What this system offers that goat-mcp uses, what it lacks, and what that changes. For people: `status` and `doctor`.

It reads `core/platform.py` and asks the kernel what that cannot know. Nothing here decides what other code does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from goat_mcp.commands.sandbox.sandbox import SandboxState
from goat_mcp.core import platform
from goat_mcp.files.workspace.beneath import Kernel
from goat_mcp.processes.environment import login_shell
from goat_mcp.processes.linux_landlock import Landlock

SANDBOX = "sandbox"
_EVERYWHERE = ("linux", "macos", "windows")
_POSIX = ("linux", "macos")
"""On Windows something else does it, or nobody needs it."""


@dataclass(frozen=True)
class SystemFeature:
    """`without` is the consequence if it is missing. `is_there` is None if nobody has asked: asking costs time."""

    name: str
    used_for: str
    without: str
    is_there: bool | None

    def wire(self) -> dict[str, Any]:
        return {"feature": self.name, "used_for": self.used_for, "used": self.is_there, "without": self.without}


@dataclass(frozen=True)
class _Row:
    name: str
    used_for: str
    without: str
    ask: Callable[[], bool]
    systems: Sequence[str] = _EVERYWHERE


_ROWS = (
    _Row(
        "directory descriptors",
        "to reach a file through directories that are held open, so that no link leads out of the workspace",
        "links and junctions are refused, and nobody can rename a directory while a file below it is used",
        lambda: platform.HAS_DIRECTORY_DESCRIPTORS,
    ),
    _Row(
        "confined open (openat2)",
        "to open a file in one step that cannot leave the workspace",
        "a path is opened name by name: as safe, and slower",
        lambda: Kernel().has_openat2,
        _POSIX,
    ),
    _Row(
        "path descriptors (O_PATH)",
        "to hold a directory without the permission to list it",
        "a directory that you may enter but not list is out of reach",
        lambda: platform.HAS_PATH_DESCRIPTORS,
        _POSIX,
    ),
    _Row(
        "Landlock",
        "to keep the search program to what it searches",
        "a link that is exchanged while Grep or Glob runs can lead the search out of the workspace",
        lambda: Landlock().is_available,
    ),
    _Row(
        "process descriptors (pidfd)",
        "to hold a process while it is ended",
        "processes are known by their number and their start",
        lambda: platform.HAS_PIDFD,
        _POSIX,
    ),
    _Row(
        "process groups",
        "to end a command with all that it started",
        "what a command started can go on after it",
        lambda: platform.HAS_PROCESS_GROUPS,
        _POSIX,
    ),
    _Row(
        "job objects",
        "to end a command with all that it started",
        "what a command started can go on after it",
        lambda: platform.HAS_JOB_OBJECTS,
        ("windows",),
    ),
    _Row(
        "/proc",
        "to find what a command started by any trace of it",
        "a program that left its command before anybody looked can go on after it",
        lambda: platform.HAS_PROC,
        _POSIX,
    ),
    _Row(
        "senders of signals",
        "to tell the SIGTERM of a command from that of the host",
        "every SIGTERM stops the server, also one that a command sends",
        lambda: platform.HAS_SIGNAL_SENDERS,
        _POSIX,
    ),
    _Row(
        "cgroups",
        "to limit the processes of a command also if root runs it",
        "bash.max_processes has no effect: the system counts all processes of a user",
        lambda: platform.HAS_CGROUPS,
        _POSIX,
    ),
    _Row(
        "memory files (memfd)",
        "to hand a script to bash without a file",
        "a script is in a file without a name while it runs",
        lambda: platform.HAS_MEMFD,
        _POSIX,
    ),
    _Row(
        "memory limits",
        "to hold handlers and conversions to their memory",
        "they are looked at ten times a second, and can take more in between; bash.max_memory_bytes has no effect",
        lambda: platform.HAS_MEMORY_LIMITS,
        _POSIX,
    ),
    _Row(
        "memory limits",
        "to hold handlers and conversions to their memory",
        "they are looked at ten times a second, and can take more in between",
        lambda: platform.HAS_MEMORY_LIMITS,
        ("windows",),
    ),
    _Row(
        "login shell",
        "to give commands the PATH of your terminal",
        "commands have the PATH that goat-mcp was started with, which a desktop may have cut short",
        lambda: login_shell() is not None,
        _POSIX,
    ),
    _Row(
        "owner-only files",
        "to keep others from tokens, records and results",
        "other accounts may be able to read the state directory: see who has rights to it",
        lambda: platform.HAS_FILE_MODES or platform.HAS_ACCESS_LISTS,
    ),
    _Row(
        "extended attributes",
        "to keep the attributes and access lists of a file that is changed",
        "a changed file loses them",
        lambda: platform.HAS_EXTENDED_ATTRIBUTES,
        ("linux",),
    ),
    _Row(
        "Unix sockets",
        "for HTTP without a port: `serve --http unix:PATH`",
        "HTTP needs a port of 127.0.0.1",
        lambda: platform.HAS_UNIX_SOCKETS,
    ),
)


def system_features(sandbox: SandboxState | None = None, *, has_keychain: bool | None = None) -> list[SystemFeature]:
    """The features that matter on this system, as they are now. Some milliseconds; nothing is started.

    `sandbox` after its trial, and whether there is a keychain, if somebody has asked.
    """
    found = [
        SystemFeature(row.name, row.used_for, row.without, row.ask()) for row in _ROWS if platform.SYSTEM in row.systems
    ]
    # Who wants no sandbox does not miss one.
    is_confined = sandbox.confined if sandbox is not None and (sandbox.confined or sandbox.unsandboxed) else None
    return [
        *found,
        SystemFeature(
            f"{SANDBOX} ({sandbox.name})" if sandbox is not None and sandbox.confined else SANDBOX,
            "to keep commands to the workspace",
            "a command can do what your account can, so it asks first, or is refused",
            is_confined,
        ),
        SystemFeature(
            "keychain",
            "to keep stored secrets and logins",
            "they are kept in a file that only you can read; a keychain needs goat-mcp[keyring] and a desktop",
            has_keychain,
        ),
    ]


def summary(features: Sequence[SystemFeature]) -> str:
    """One line: `linux: all 12 features used`."""
    missing = sum(feature.is_there is False for feature in features)
    if missing:
        return f"{platform.SYSTEM}: {missing} missing, see goat-mcp doctor"
    return f"{platform.SYSTEM}: all {sum(feature.is_there is True for feature in features)} features used"


def table(features: Sequence[SystemFeature]) -> Iterator[str]:
    """All of them in lines: those in use, then each that is missing, with its consequence."""
    asked = [feature for feature in features if feature.is_there is not None]
    used = [feature.name for feature in asked if feature.is_there]
    yield f"{platform.SYSTEM}: {len(used)} of {len(asked)} features used"
    yield f"  used: {', '.join(used)}"
    for feature in asked:
        if not feature.is_there:
            yield f"  missing: {feature.name}, {feature.used_for}: {feature.without}"


def as_document(features: Sequence[SystemFeature]) -> dict[str, Any]:
    return {"name": platform.SYSTEM, "features": [feature.wire() for feature in features]}
