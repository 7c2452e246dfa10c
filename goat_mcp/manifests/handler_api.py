"""What handlers of tools that ship with us are given: the gateway's services once, and a context with each call."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from goat_mcp.commands.tasks.manager import TaskManager
from goat_mcp.core.context import ToolContext
from goat_mcp.core.lazy import Lazy
from goat_mcp.core.resources import Announcements
from goat_mcp.core.restart import Restart
from goat_mcp.files.workspace import Workspace
from goat_mcp.processes.computing.worker_process import ComputingLimiter
from goat_mcp.processes.environment import CommandEnvironment
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.state.sessions import Sessions
from goat_mcp.state.spill import SpillFiles
from goat_mcp.web.http import HttpClient

if TYPE_CHECKING:
    from goat_mcp.commands.sandbox.sandbox import Sandbox


class AgentRuntime(Protocol):
    """The agents of one call's caller. Every method answers with JSON values and raises `ToolError`."""

    async def request(
        self, target: str, message: str = "", *, timeout_s: float | None = None, correlation_id: str = ""
    ) -> Mapping[str, Any]:
        """Say something to an agent and wait for its answer: `{"answer": ...}`, or after the wait a
        `{"correlationId": ...}` under which the answer will be: ask again with it alone, or look at that task."""
        ...

    async def send(self, target: str, message: str) -> Mapping[str, Any]:
        """Say something and do not wait."""
        ...

    async def spawn(self, type: str, *, name: str = "", message: str = "") -> Mapping[str, Any]:
        """Start an agent of a type: `{"name": ..., "type": ..., "taskId": ...}`, and the
        `correlationId` of its answer to `message`, if there is one."""
        ...

    async def list(self) -> Sequence[Mapping[str, Any]]:
        """The agents that are there."""
        ...

    async def catalog(self) -> Sequence[Mapping[str, Any]]:
        """The types of agents that can be started."""
        ...


Handler = Callable[["HandlerContext", Mapping[str, Any]], Awaitable[Any]]


@dataclass(frozen=True, kw_only=True)
class HandlerContext:
    """One call of an export.

    Attributes:
        workdir: the workspace's first directory; empty where there is none.
        runtime: agents; None where the gateway has none.
        message: the assistant's message that holds the call; None outside an agent.
        tool_call_id: this call, as the log and the record name it.
        config: what the user set under `tools.RESOURCE`, with references resolved.
        call: the whole context, for tools that ship with us; handlers of users do not have it.
    """

    workdir: str
    lazy_logger: Lazy[logging.Logger]
    tool_call_id: str
    call: ToolContext
    runtime: AgentRuntime | None = None
    message: Mapping[str, Any] | None = None
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def logger(self) -> logging.Logger:
        """Goes to the server's log, never to a client. Made when something is logged: most calls log nothing."""
        return self.lazy_logger()

    def end(self) -> None:
        """The call is over: report the log lines that were dropped."""
        if (logger := self.lazy_logger.made) is not None:
            for handler in logger.handlers:
                handler.close()

    def for_other_processes(self) -> dict[str, Any]:
        """Its members that are JSON."""
        return {"workdir": self.workdir, "toolCallId": self.tool_call_id, "message": self.message}


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
    computing: ComputingLimiter
    max_chars: int
