"""The services of the gateway that tools which ship with us are built over: their one way to files, processes, hosts
and agents, so that they keep the same rules as the built-in tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from goat_mcp.commands.tasks.manager import TaskManager
from goat_mcp.core.resources import Announcements
from goat_mcp.core.restart import Restart
from goat_mcp.files.workspace import Workspace
from goat_mcp.processes.computing.fair_queue import FairQueue
from goat_mcp.processes.environment import CommandEnvironment
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.state.sessions import Sessions
from goat_mcp.state.spill import SpillFiles
from goat_mcp.web.http import HttpClient

if TYPE_CHECKING:  # loaded with the first command
    from goat_mcp.commands.sandbox.sandbox import Sandbox


@dataclass(frozen=True, kw_only=True)
class Host:
    """What a module's `build_handlers(host)` may take.

    `tool` is a built-in tool by its name, so that `file-system__write` is Write with another face. `hides` says which
    files the rules keep out of lists, `max_chars` how much of a result is shown (`output.max_chars`).
    """

    workspace: Workspace
    sessions: Sessions
    tasks: TaskManager
    spill: SpillFiles
    guard: ProcessGuard
    environment: CommandEnvironment
    sandbox: Callable[[], Sandbox]
    http: HttpClient
    allow_hosts: tuple[str, ...]
    state: StateDirectory
    references: SecretReferences
    announcements: Announcements
    hides: Callable[[str], bool]
    tool: Callable[[str], Any]
    restart: Callable[[], Restart]
    computing: FairQueue
    max_chars: int
