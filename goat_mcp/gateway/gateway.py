"""The composition root: from `Settings` to a running gateway, in the order of its start.

What the settings choose of a part is in `goat_mcp.gateway.build`, what a part does in the package of its area.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.calls.permissions.rules_in_force import RulesInForce
from goat_mcp.catalog.own_lists import OwnLists
from goat_mcp.catalog.registry import BUILTIN_SOURCE, AnyTool, Registry
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError
from goat_mcp.core.gateway_chain import new_instance
from goat_mcp.core.restart import Restart
from goat_mcp.core.result import ToolResult
from goat_mcp.core.rights import Rights
from goat_mcp.gateway.build.declared_tools import DeclaredTools
from goat_mcp.gateway.build.extensions import claude_settings, read_user_code, register_tools
from goat_mcp.gateway.build.manifests import why_off
from goat_mcp.gateway.build.on_demand import OnDemand, handler_surroundings
from goat_mcp.gateway.build.program_tools import ProgramTools
from goat_mcp.gateway.build.rule_loading import rules_of
from goat_mcp.gateway.build.services import Services
from goat_mcp.gateway.build.tool_use import tools_used_most
from goat_mcp.gateway.build.tools import ToolSelection, register_ours
from goat_mcp.gateway.build.upstreams import ConfiguredUpstreams, build_upstreams
from goat_mcp.gateway.build.watched_settings import watched_settings
from goat_mcp.gateway.client_lists import ClientLists
from goat_mcp.gateway.diagnostics import Diagnostics
from goat_mcp.gateway.server_visibility import ServerVisibility
from goat_mcp.gateway.status.last_runs import LastRuns
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.session_settings import ConfigStore
from goat_mcp.state.todos import TodoStore

if TYPE_CHECKING:  # loaded with the first call, agent or resource, or when somebody logs in
    from goat_mcp.calls.batch import BatchOutcome
    from goat_mcp.calls.hooks import Hooks
    from goat_mcp.calls.pipeline import CallRequest, Pipeline
    from goat_mcp.files.changes.staged_files import FileChanges
    from goat_mcp.gateway.build.resources import OwnResources
    from goat_mcp.gateway.status.gateway_status import GatewayStatus
    from goat_mcp.upstreams.oauth.login_contract import LoginPrompt

SHUTDOWN_S = 4.0
LOAD_TOOLS_AFTER_S = 0.2


class Gateway:
    """Everything one process serves, built once. `running()` starts what lives: upstreams, tasks, the guard.

    `ask_client_for_roots`: if the settings name no workspace, leave it to `adopt_client_roots`; otherwise it is
    the current directory. `serves_http`: see `Services`. `hooks` are functions of the program that embeds us; they run
    before the programs of the settings, `tools` are tools of that program. `login_person` logs in to an upstream while
    a call waits for it. `has_queue`: a person who cannot be asked in the client may decide in the user's queue of
    approvals. Raises `BrokenSettings` if the settings name something that cannot be used.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        approval: Approval,
        ask_client_for_roots: bool = False,
        serves_http: bool = False,
        state: StateDirectory | None = None,
        todo_store: TodoStore | None = None,
        config_store: ConfigStore | None = None,
        hooks: Hooks | None = None,
        login_person: LoginPrompt | None = None,
        tools: ProgramTools | None = None,
        has_queue: bool = True,
    ) -> None:
        self.declared, as_loaded = DeclaredTools(settings), settings
        self.settings = settings = self.declared.settings
        self.program_tools = tools or ProgramTools()
        self.instance = new_instance()
        self.restart = Restart()
        self.first_list = anyio.Event()
        """Set once a client has its list: then it is time to load the tools' code."""
        claude_files = claude_settings(settings)
        rules = RulesInForce(rules_of(settings, claude_files, self.program_tools))
        self.services = s = Services(
            settings,
            rules,
            state=state or StateDirectory.default(),
            ask_client_for_roots=ask_client_for_roots,
            serves_http=serves_http,
            todo_store=todo_store,
            config_store=config_store,
            runs_unasked=lambda session_key, principal: self.on_demand.commands_run_unasked(session_key, principal),
        )
        self.state, self.database, self.redactor, self.telemetry = s.state, s.database, s.redactor, s.telemetry
        self.guard, self.environment, self.announcements, self.modes = s.guard, s.environment, s.announcements, s.modes
        self.directories, self.workspace, self.plan_approval = s.directories, s.workspace, s.plan_approval
        self.models, self.audit = s.models, s.audit
        self.registry = Registry()
        self.registry.declare(BUILTIN_SOURCE)
        self.declared.use(
            self.registry,
            s.state,
            s.directories.writable(),
            lambda: handler_surroundings(s, self.builtin, lambda ctx: self.on_demand.agents_of(ctx), self.restart),
        )
        self._configured = ConfiguredUpstreams(settings, self.declared, s, self.program_tools.names())
        chosen = self._configured.chosen
        self.own_lists = OwnLists()
        self.catalog = chosen.catalog(
            self.registry, self._why_missing, self.own_lists, tools_used_most(s.state, settings)
        )
        self.lists = lists = ClientLists(self.catalog, lambda: self.on_demand.resource_catalogs.made)
        self.watched_settings = watched_settings(
            as_loaded, s, self._configured, self.program_tools, claude_files, self._use_choice, lists.forget_resources
        )
        if settings.profile:
            # All that this process serves.
            self.catalog = self.catalog.of(Rights(profiles=(settings.profile,)))
        self.visibility = ServerVisibility(self.catalog, rules)
        self.user_code = read_user_code(claude_files, s, hooks)
        has_builtins = not self.program_tools.alone
        register_ours(self.registry, settings, self.declared.toolsets, self.builtin, builtins=has_builtins)
        self._remove_program_tools = self.program_tools.add_to(self.registry)
        register_tools(self.user_code.extensions, self.registry, lists.outdated)
        chosen.check_allowed_are_on(self.registry)
        self.upstreams = build_upstreams(
            s,
            self._configured,
            self.registry,
            instance=self.instance,
            why_denied=self.visibility.why_denied,
            login_person=login_person,
            own_lists=self.own_lists,
        )
        self.diagnostics = Diagnostics(
            s, self.user_code, self.registry, self.upstreams, self.declared, self.watched_settings, self._configured
        )
        self.problems = self.diagnostics.problems
        self.last_runs = LastRuns(s.state, s.redactor, settings.upstreams)
        self.on_demand = OnDemand(
            s,
            self.user_code,
            approval,
            registry=self.registry,
            catalog=self.catalog,
            upstreams=self.upstreams,
            visibility=self.visibility,
            call_all=self.call_all,
            problems=self.problems,
            declared_types=self.declared.agent_types,
            skills=lambda: self.declared.skills,
            has_queue=has_queue,
        )

    async def call(self, name: str, arguments: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        """`Pipeline.call`, but for a name nobody knows: it may belong to an upstream that was never seen."""
        await self.on_demand.preflight().get_ready(name, arguments, ctx)
        return await self.pipeline.call(name, arguments, ctx)

    async def call_all(self, requests: Sequence[CallRequest], *, cancelled: anyio.Event | None = None) -> BatchOutcome:
        """`Pipeline.call_all`; names nobody knows are waited for as in `call`, side by side."""
        async with anyio.create_task_group() as group:
            for request in requests:
                group.start_soon(self.on_demand.preflight().get_ready, request.name, request.arguments, request.ctx)
        return await self.pipeline.call_all(requests, cancelled=cancelled)

    def adopt_client_roots(self, roots: Sequence[Path]) -> None:
        """Work where a client said; if it named nothing, in the current directory unless that is / or home."""
        before = self.workspace.roots
        self.directories.adopt_client_roots(roots)
        if self.workspace.roots != before:
            self.upstreams.workspace_changed()
        self.declared.reached_by_tools(self.directories.writable())

    def client_roots_changed(self, session_key: str) -> None:
        """A client has said so. If its roots are the workspace, they are asked for again before its next call."""
        self.directories.client_roots_changed()
        self.upstreams.roots_changed(session_key)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Live until the block ends; then end every child, within `SHUTDOWN_S`."""
        async with anyio.create_task_group() as group:
            await group.start(self.upstreams.run)
            group.start_soon(self._configured.follow, self.upstreams)
            group.start_soon(self.declared.watch, self._manifests_read_again)
            group.start_soon(self.watched_settings.watch, self.diagnostics.log_settings_again)
            group.start_soon(self.services.run)
            group.start_soon(self._load_tools)
            try:
                yield
            finally:
                await self.on_demand.end_sessions()
                with anyio.move_on_after(SHUTDOWN_S, shield=True):
                    await self.services.end_children()
                    await self.declared.close()
                    await self.last_runs.note(self.upstreams)
                    await self.services.leave_shared_state()
                group.cancel_scope.cancel()
        self._remove_program_tools()
        self.services.close()

    async def _load_tools(self) -> None:
        """While the client's model thinks, load what its first call needs anyway."""
        await self.first_list.wait()
        await anyio.sleep(LOAD_TOOLS_AFTER_S)
        await self.on_demand.load()
        self.diagnostics.log_silent_hooks()
        await anyio.to_thread.run_sync(self.changes.prune, abandon_on_cancel=True)

    def _manifests_read_again(self) -> None:
        """What they say of upstreams, toolsets and profiles counts from now on."""
        if (chosen := self._configured.declared_again()) is not None:
            self._use_choice(chosen)
        self.declared.log_problems(self.telemetry)

    def _use_choice(self, chosen: ToolSelection) -> None:
        """Have clients see these tools from now on."""
        self.settings = self.declared.settings
        self.lists.choose(chosen)

    def builtin(self, name: str) -> AnyTool:
        """A built-in tool itself. The first one loads the code of all."""
        return self.on_demand.builtins()[name]

    def _why_missing(self, name: str) -> ToolError | None:
        """Of a name that nobody has: whether an upstream, a broken manifest, or a set that is off, would have it."""
        sources = (self.program_tools, self.upstreams, self.declared)
        return next(filter(None, (source.why_missing(name) for source in sources)), None) or why_off(name)

    @property
    def pipeline(self) -> Pipeline:
        """The way of every call; its code is loaded by the first, or in the pause after the first list."""
        return self.on_demand.pipeline()

    @property
    def changes(self) -> FileChanges:
        return self.services.changes()

    @property
    def resources(self) -> OwnResources:
        return self.on_demand.resources()

    @property
    def status(self) -> GatewayStatus:
        return self.on_demand.status()
