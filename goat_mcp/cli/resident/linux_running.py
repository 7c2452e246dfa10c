"""Which resident processes of this user run, for `goat-mcp doctor`."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
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
        each = (
            f"process {one.pid}{'' if one.is_ours else ' (another build or environment)'}, "
            f"{one.sessions} session{'' if one.sessions == 1 else 's'}"
            for one in self.running
        )
        return f"resident process: {'; '.join(each)}"

    def wire(self) -> dict[str, Any]:
        running = [{"pid": one.pid, "sessions": one.sessions, "is_ours": one.is_ours} for one in self.running]
        return {"off": self.off, "running": running}


def find_residents() -> Residents:
    """Nothing is started."""
    try:
        goat_mcp_launch.check_possible()
        folder, own = goat_mcp_launch.runtime_folder(), goat_mcp_launch.build_name()
    except (goat_mcp_launch.NotResident, OSError) as why:
        return Residents(str(why))
    listening = {name: _listener(folder, name) for name in sorted(one.stem for one in Path(folder).glob("*.sock"))}
    children: dict[int, int] = {}
    for process in living_processes():
        children[process.parent] = children.get(process.parent, 0) + 1
    found = (Resident(pid, children.get(pid, 0), name == own) for name, pid in listening.items() if pid is not None)
    return Residents("", tuple(found))


def _listener(folder: str, name: str) -> int | None:
    """Who listens there; what is left of one that was killed is nobody's."""
    if sys.platform != "linux":
        return None
    with suppress(OSError), socket.socket(socket.AF_UNIX) as server:
        server.settimeout(_TIMEOUT_S)
        goat_mcp_launch.connect(server, folder, name)
        credentials = server.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        pid, uid = (int.from_bytes(credentials[at : at + 4], sys.byteorder) for at in (0, 4))
        return pid if uid == os.geteuid() else None
    return None
