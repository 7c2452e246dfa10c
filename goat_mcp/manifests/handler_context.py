"""What a handler is given beside its input. Kept small on purpose (source: Goondan, "ToolContext")."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from goat_mcp.core.agent_runtime import AgentRuntime
from goat_mcp.core.context import ToolContext

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
    make_logger: Callable[[], logging.Logger]
    tool_call_id: str
    call: ToolContext
    runtime: AgentRuntime | None = None
    message: Mapping[str, Any] | None = None
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @cached_property
    def logger(self) -> logging.Logger:
        """Goes to the server's log, never to a client. Made when something is logged: most calls log nothing."""
        return self.make_logger()

    def end(self) -> None:
        """The call is over: what of its log was left out is said now."""
        if "logger" in self.__dict__:
            for handler in self.logger.handlers:
                handler.close()

    def for_other_processes(self) -> dict[str, Any]:
        """What of it is JSON."""
        return {"workdir": self.workdir, "toolCallId": self.tool_call_id, "message": self.message}
