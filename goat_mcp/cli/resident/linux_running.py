"""Which resident processes of this user run, for `goat-mcp doctor`."""

from __future__ import annotations

import os
import socket
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import goat_mcp_launch
from goat_mcp.processes.process_table import living_processes

_TIMEOUT_S = 1.0


@dataclass(frozen=True)
class Resident:
    """`is_ours`: it serves what is started as this command was; another build or environment has its own."""

    pid: int
    sessions: int
    is_ours: bool

    def line(self) -> str:
        whose = "" if self.is_ours else " (another build or environment)"
        return f"process {self.pid}{whose}, {self.sessions} session{'' if self.sessions == 1 else 's'}"


@dataclass(frozen=True)
class Residents:
    """`off` is why none is used, empty if one is."""

    off: str
    running: tuple[Resident, ...] = ()

    def line(self) -> str:
        if self.off:
            return f"resident process: not used: {self.off}"
        if not self.running:
            return "resident process: none runs; the next start of a server starts it"
        return f"resident process: {'; '.join(one.line() for one in self.running)}"

    def wire(self) -> dict[str, Any]:
        return {"off": self.off, "running": [asdict(one) for one in self.running]}


def find_residents() -> Residents:
    """Nothing is started."""
    try:
        goat_mcp_launch.check_possible()
        folder, own = goat_mcp_launch.runtime_folder(), goat_mcp_launch.build_name()
    except (goat_mcp_launch.NotResident, OSError) as why:
        return Residents(str(why))
    # Before it is asked who listens: that forks a child, too.
    children = Counter(process.parent for process in living_processes())
    names = sorted(one.stem for one in Path(folder).glob("*.sock"))
    found = ((name, pid) for name in names if (pid := _listener(folder, name)) is not None)
    return Residents("", tuple(Resident(pid, children[pid], is_ours=name == own) for name, pid in found))


def _listener(folder: str, name: str) -> int | None:
    """Who listens there; what is left of one that was killed is nobody's."""
    if sys.platform != "linux":
        return None
    with suppress(OSError), socket.socket(socket.AF_UNIX) as server:
        server.settimeout(_TIMEOUT_S)
        goat_mcp_launch.connect(server, folder, name)
        pid, uid = goat_mcp_launch.peer_of(server)
        return pid if uid == os.geteuid() else None
    return None
