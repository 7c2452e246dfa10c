"""Builds a `Sandbox`. Loaded when the first command or confined upstream starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from goat_mcp.commands.sandbox.bubblewrap import Bubblewrap
from goat_mcp.commands.sandbox.confinement import Confinement
from goat_mcp.commands.sandbox.landlock import Landlock
from goat_mcp.commands.sandbox.launcher import launcher_command
from goat_mcp.commands.sandbox.macos_seatbelt import Seatbelt
from goat_mcp.commands.sandbox.options import FOLDER, SandboxOptions
from goat_mcp.commands.sandbox.placeholders import Placeholders
from goat_mcp.commands.sandbox.policy import PolicyPaths, SandboxPolicy
from goat_mcp.commands.sandbox.protected_paths import ExistingPaths, HiddenSearch
from goat_mcp.commands.sandbox.sandbox import Sandbox
from goat_mcp.commands.sandbox.seccomp import Sockets, system_call_filter
from goat_mcp.commands.sandbox.temporary_folders import SESSIONS, SessionFolders
from goat_mcp.core import platform
from goat_mcp.state.directory import StateDirectory


@dataclass(frozen=True, kw_only=True)
class SandboxServices:
    """What a sandbox needs of the gateway. The present caller may read `spill`, which lies in `state`, and nothing
    else of it.

    `records` are the audit record's files outside of `state`. `run_at_the_end` takes a command to run when this process
    is gone, however it ended. `hidden` and `unchanged` find what the user's rules let no command read, or change.
    """

    roots: Callable[[], Sequence[Path]]
    state: StateDirectory
    spill: Callable[[], Path]
    runs_unasked: Callable[[str, str], bool]
    is_protected: Callable[[str], bool]
    run_at_the_end: Callable[[Sequence[str]], None]
    hidden: HiddenSearch | None = None
    unchanged: HiddenSearch | None = None
    records: Callable[[], Sequence[Path]] = tuple


def sandbox(options: SandboxOptions, services: SandboxServices) -> Sandbox:
    """Tries nothing and touches no file yet."""

    def clean_up_at_the_end() -> None:
        services.run_at_the_end((*launcher_command("placeholders", "main"), str(services.state.folder(FOLDER))))

    @cache
    def placeholders() -> Placeholders:
        return Placeholders(services.state.folder(FOLDER), clean_up_at_the_end)

    def confinements() -> Sequence[Confinement]:
        if platform.HAS_SEATBELT:
            return (Seatbelt(placeholders()),)
        if platform.HAS_NAMESPACES:
            return (
                Bubblewrap(placeholders(), system_call_filter=lambda: system_call_filter(Sockets.NETWORK)),
                Landlock(),
            )
        return ()

    paths = PolicyPaths(
        roots=services.roots,
        private=(services.state.path,),
        shown=lambda: (services.spill(),),
        records=services.records,
        home=Path.home(),
    )
    return Sandbox(
        options,
        SandboxPolicy(paths, services.is_protected, ExistingPaths(lambda: services.state.folder(FOLDER))),
        runs_unasked=services.runs_unasked,
        confinements=confinements,
        placeholders=placeholders,
        temporary=SessionFolders(lambda: services.state.folder(FOLDER, SESSIONS), clean_up_at_the_end),
        hidden=services.hidden,
        unchanged=services.unchanged,
    )
