"""A `Sandbox` with everything it is made of. Loaded when the first command or confined upstream is to start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from goat_mcp.commands.sandbox.bubblewrap import Bubblewrap
from goat_mcp.commands.sandbox.confinement import Confinement
from goat_mcp.commands.sandbox.existing_paths import ExistingPaths
from goat_mcp.commands.sandbox.hidden_search import HiddenSearch
from goat_mcp.commands.sandbox.landlock import Landlock
from goat_mcp.commands.sandbox.launcher import launcher_command
from goat_mcp.commands.sandbox.options import SandboxOptions
from goat_mcp.commands.sandbox.placeholders import Placeholders
from goat_mcp.commands.sandbox.policy import PolicyPaths, SandboxPolicy
from goat_mcp.commands.sandbox.sandbox import Sandbox
from goat_mcp.commands.sandbox.seccomp import Sockets, system_call_filter
from goat_mcp.commands.sandbox.session_folders import SESSIONS, SessionFolders
from goat_mcp.state.directory import StateDirectory


@dataclass(frozen=True, kw_only=True)
class SandboxServices:
    """What the gateway knows and a sandbox needs. `spill` lies in `state` and may be read by the present
    caller; nothing else of it may.

    `records` are the audit record's files where they lie elsewhere.
    `run_at_the_end` takes a command that is to run when this process is gone, however it went.
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


def sandbox(options: SandboxOptions, around: SandboxServices) -> Sandbox:
    """Nothing is tried and no file is touched yet."""

    def clear_up_at_the_end() -> None:
        around.run_at_the_end((*launcher_command("clearing_up"), str(around.state.folder("sandbox"))))

    @cache
    def placeholders() -> Placeholders:
        return Placeholders(around.state.folder("sandbox"), clear_up_at_the_end)

    def confinements() -> Sequence[Confinement]:
        return (
            Bubblewrap(placeholders(), system_call_filter=lambda: system_call_filter(Sockets.NETWORK)),
            Landlock(),
        )

    places = PolicyPaths(
        roots=around.roots,
        private=(around.state.path,),
        shown=lambda: (around.spill(),),
        records=around.records,
        home=Path.home(),
    )
    return Sandbox(
        options,
        SandboxPolicy(places, around.is_protected, ExistingPaths(lambda: around.state.folder("sandbox"))),
        runs_unasked=around.runs_unasked,
        confinements=confinements,
        placeholders=placeholders,
        temporary=SessionFolders(lambda: around.state.folder("sandbox", SESSIONS), clear_up_at_the_end),
        hidden=around.hidden,
        unchanged=around.unchanged,
    )
