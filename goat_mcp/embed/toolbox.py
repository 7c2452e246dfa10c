"""A box of tools of your own: called from your program, offered to your model, or served over MCP.

Every call goes through the one pipeline: a box is a registry that a gateway takes its tools from. Source: Shelly
`toolbox`, `mcpserver`; Goat `Registry`.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.catalog.annotated_function import annotated_function
from goat_mcp.catalog.registry import AnyTool, Registry
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.lazy import Lazy
from goat_mcp.core.result import ToolResult, error_result
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.gateway.build.program_tools import ProgramTools
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import Settings, settings_of
from goat_mcp.state.directory import StateDirectory


class ToolBox:
    """Tools by name, in the order they were registered. Any thread may register.

    `allowed` are called without asking anybody, `disabled` are neither listed nor called; both may name tools that come
    later. `name` and `instructions` are what clients read of a box that is served. Without `state_directory`, what
    calls leave behind (their record, long results) is in the user's.
    """

    def __init__(
        self,
        *tools: AnyTool | Callable[..., Any],
        name: str = "tools",
        instructions: str = "",
        allowed: Iterable[str] = (),
        disabled: Iterable[str] = (),
        state_directory: Path | None = None,
    ) -> None:
        """Raises as `register`."""
        self.name = name
        self.instructions = instructions
        self.allowed = frozenset(allowed)
        self.disabled = frozenset(disabled)
        self.registry = Registry()
        self._state_directory = state_directory
        self._session_key = f"toolbox:{secrets.token_hex(8)}"
        self._gateway = Lazy(self._make_gateway)
        self.register(*tools)

    def register(
        self,
        *tools: AnyTool | Callable[..., Any],
        side_effect: SideEffect = SideEffect.NETWORK,
        replace: bool = False,
    ) -> None:
        """Add tools, or plain functions with annotations and a docstring, which have this `side_effect`.

        Raises `NameTaken` for a name that is here, unless `replace`; `TypeError` for a function that cannot be one.
        """
        made = [_tool(one, side_effect) for one in tools]
        for tool in made:
            self.registry.register(tool, replace=replace)

    def unregister(self, prefix: str) -> int:
        """Remove every tool whose name starts with `prefix`: one tool, or all of a server. Returns how many."""
        return self.registry.unregister_prefix(prefix)

    def get(self, name: str) -> AnyTool | None:
        return self.registry.get(name)

    def merge(self, other: ToolBox, *, replace: bool = False) -> None:
        """Copy all tools of another box. Raises `NameTaken` unless `replace`. What is allowed or disabled stays."""
        self.registry.merge(other.registry, replace=replace)

    def tools(self) -> tuple[AnyTool, ...]:
        return tuple(self.registry.snapshot.tools.values())

    def is_allowed(self, name: str) -> bool:
        return name in self.allowed

    def is_disabled(self, name: str) -> bool:
        return name in self.disabled

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> ToolResult:
        """Run one call of your program's. A failure is a result with `is_error`; nothing but cancellation is raised."""
        ctx = ToolContext(call_id=secrets.token_hex(8), session_key=self._session_key)
        try:
            return await self._gateway().call(name, arguments or {}, ctx)
        except UpstreamError as refused:
            return error_result(ToolError(ErrorCode.UPSTREAM, f"{refused.message} (JSON-RPC {refused.code})"))

    def serve(
        self,
        settings: Settings | Mapping[str, Any] | None = None,
        *,
        http: str | None = None,
        token_file: Path | None = None,
    ) -> None:
        """Serve the box over MCP until the client leaves: over stdio, or over HTTP at `http` (`HOST:PORT`).

        `settings` is the tree of a settings file (rules, hooks, limits). Over HTTP clients need the token of
        `token_file`, which is made if it is not there; without one it is in the state directory.
        """
        from goat_mcp.server.host_process import HostProcess
        from goat_mcp.server.run import run_http, run_stdio  # with the MCP SDK, which a box that is called never needs

        chosen = settings if isinstance(settings, Settings) else settings_of(settings or {}, "the program")
        if http is None:
            run_stdio(chosen, host=HostProcess(os.getppid()), tools=self._alone(), state=self._state())
        else:
            run_http(
                chosen,
                http,
                token_file=token_file,
                no_token=False,
                say=lambda line: print(line, file=sys.stderr, flush=True),  # noqa: T201  # where a person looks
                tools=self._alone(),
                state=self._state(),
            )

    def _alone(self) -> ProgramTools:
        return ProgramTools(
            self.registry, self.allowed, self.disabled, alone=True, name=self.name, instructions=self.instructions
        )

    def _state(self) -> StateDirectory | None:
        return None if self._state_directory is None else StateDirectory(self._state_directory)

    def _make_gateway(self) -> Gateway:
        # The program that calls is the host: it knows what it calls.
        return Gateway(
            settings_of({}, "the program"),
            approval=Approval.HOST,
            state=self._state(),
            tools=self._alone(),
            has_queue=False,
        )


def _tool(given: AnyTool | Callable[..., Any], side_effect: SideEffect) -> AnyTool:
    return cast("AnyTool", given) if hasattr(given, "spec") else annotated_function(cast("Any", given), side_effect)
