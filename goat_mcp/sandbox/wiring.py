"""A `Sandbox` with everything it is made of. Loaded when the first command or confined upstream is to start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from goat_mcp.sandbox.bubblewrap import Bubblewrap
from goat_mcp.sandbox.confinement import Confinement
from goat_mcp.sandbox.found_before import FoundBefore
from goat_mcp.sandbox.hidden_search import HiddenSearch
from goat_mcp.sandbox.landlock import Landlock
from goat_mcp.sandbox.launcher import launcher_command
from goat_mcp.sandbox.options import SandboxOptions
from goat_mcp.sandbox.placeholders import Placeholders
from goat_mcp.sandbox.reach import Places, Reach
from goat_mcp.sandbox.sandbox import Sandbox
from goat_mcp.sandbox.seccomp import Sockets, system_call_filter
from goat_mcp.sandbox.session_folders import SESSIONS, SessionFolders
from goat_mcp.state.directory import StateDirectory


@dataclass(frozen=True, kw_only=True)
class Surroundings:
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


def sandbox(options: SandboxOptions, around: Surroundings) -> Sandbox:
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

    places = Places(
        roots=around.roots,
        private=(around.state.path,),
        shown=lambda: (around.spill(),),
        records=around.records,
        home=Path.home(),
    )
    return Sandbox(
        options,
        Reach(places, around.is_protected, FoundBefore(lambda: around.state.folder("sandbox"))),
        runs_unasked=around.runs_unasked,
        confinements=confinements,
        placeholders=placeholders,
        temporary=SessionFolders(lambda: around.state.folder("sandbox", SESSIONS), clear_up_at_the_end),
        hidden=around.hidden,
        unchanged=around.unchanged,
    )
