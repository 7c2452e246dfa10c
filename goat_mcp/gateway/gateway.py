"""The composition root: from `Settings` to a running gateway. What is built is all here, in the order of its start;
what the settings choose of a part, and what a part does, is in the file of its area.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from goat_mcp.agents.models.choice import ModelChoice
from goat_mcp.calls.permissions.condition import RuleConditions
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.calls.permissions.plan_approval import PlanApproval
from goat_mcp.calls.permissions.session_modes import SessionModes
from goat_mcp.catalog.builtin_contracts import builtin_contracts, meta_contracts
from goat_mcp.catalog.catalog import Catalog
from goat_mcp.catalog.deferred_listing import DeferredListing
from goat_mcp.catalog.deferred_tool import DeferredTool
from goat_mcp.catalog.registry import BUILTIN_SOURCE, AnyTool, Registry
from goat_mcp.core.announcements import Announcements
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError
from goat_mcp.core.gateway_chain import new_instance
from goat_mcp.core.principals import LOCAL
from goat_mcp.core.redaction import Redactor, secrets_among
from goat_mcp.core.restart import Restart
from goat_mcp.core.result import ToolResult
from goat_mcp.core.rights import Rights
from goat_mcp.gateway.build.audit import audit_log
from goat_mcp.gateway.build.declared_tools import DeclaredTools
from goat_mcp.gateway.build.extensions import chosen_extensions, chosen_steps, register_tools
from goat_mcp.gateway.build.hooks import claude_settings, hook_programs
from goat_mcp.gateway.build.manifests import why_off
from goat_mcp.gateway.build.rule_loading import rules_of
from goat_mcp.gateway.build.upstreams import ConfiguredUpstreams
from goat_mcp.gateway.build.working_directories import WorkingDirectories
from goat_mcp.gateway.diagnostics import configuration_problems, log_problems, silent_hooks
from goat_mcp.gateway.path_checks import check_state, scope_of
from goat_mcp.gateway.server_visibility import ServerVisibility
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.environment import CommandEnvironment
from goat_mcp.settings.settings import Settings
from goat_mcp.settings.view import ConfigView
from goat_mcp.state.call_log import CallLog
from goat_mcp.state.database import Database
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.plans import PlanStore
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.state.session_settings import ConfigStore, DatabaseConfigStore, SessionSettings
from goat_mcp.state.sessions import Sessions
from goat_mcp.state.spill import SpillFiles
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.state.todos import DatabaseTodoStore, Todos, TodoStore
from goat_mcp.upstreams.oauth.logins import Logins
from goat_mcp.upstreams.upstreams import Upstreams
from goat_mcp.web.http import HttpClient

if TYPE_CHECKING:  # loaded with the first call, agent or resource, or when somebody logs in
    from goat_mcp.calls.batch import BatchOutcome
    from goat_mcp.calls.hooks import Hooks
    from goat_mcp.calls.hooks.session_events import SessionEvents
    from goat_mcp.calls.pipeline import CallRequest, Pipeline
    from goat_mcp.catalog.resource_catalog import ResourceCatalogs
    from goat_mcp.commands.sandbox.options import SandboxOptions
    from goat_mcp.commands.sandbox.sandbox import Sandbox
    from goat_mcp.commands.tasks.manager import TaskManager
    from goat_mcp.core.agent_runtime import AgentRuntime
    from goat_mcp.files.changes.file_changes import FileChanges
    from goat_mcp.files.memory.memories import Memories
    from goat_mcp.gateway.build.agents import GatewayAgents
    from goat_mcp.gateway.middleware import Middleware
    from goat_mcp.gateway.own_resources import OwnResources
    from goat_mcp.gateway.preflight import Preflight
    from goat_mcp.gateway.resource_calls import ResourceCalls
    from goat_mcp.gateway.status.gateway_status import GatewayStatus
    from goat_mcp.manifests.manifests import ManifestServices
    from goat_mcp.processes.launch import Confined
    from goat_mcp.processes.pids_cgroup import PidsCgroups
    from goat_mcp.upstreams.oauth.login_prompt import LoginPrompt

SHUTDOWN_S = 4.0
LOAD_TOOLS_AFTER_S = 0.2
_LOADED_AFTER_THE_LIST = (
    "goat_mcp.calls.pipeline",
    "goat_mcp.gateway.build.builtin_tools",
    "goat_mcp.commands.shell.plain",
    "goat_mcp.commands.shell.command_extraction",
)
"""The tools, and what reads the script of a Bash call: that brings a parser, which the first command would wait for."""


def _nobody_listens() -> None:
    """There are no clients to tell."""


class Gateway:
    """Everything one process serves, built once. `running()` starts what lives: upstreams, tasks, the guard.

    `ask_client_for_roots`: where the settings name no workspace, leave it to `adopt_client_roots`; otherwise it is
    the current directory. `serves_http`: nobody need have seen a call before it comes (design D8). Without stores,
    todos and changed settings are in the state directory's database. `hooks` are functions of the program that embeds
    us; they run before the programs of the settings. `login_person` logs in to an upstream while a call waits for it.
    Raises `BrokenSettings` where the settings name something that cannot be used.
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
    ) -> None:
        self.declared = DeclaredTools(settings)
        self.settings = settings = self.declared.settings
        self.started_s = time.time()
        self.instance = new_instance()
        self._serves_http = serves_http
        self.claude_settings = claude_settings(settings)
        self.state = state or StateDirectory.default()
        check_state(self.state)
        self.redactor = Redactor(secrets_among(os.environ))
        self.telemetry = Telemetry(settings.log_level, self.redactor)
        self.guard = ProcessGuard()
        self.environment = CommandEnvironment()
        self.sessions = Sessions()
        self.http = HttpClient(settings.web)
        self.references = SecretReferences(redactor=self.redactor)
        self.models = ModelChoice(self.http, settings.agent, self.references)
        self.modes = SessionModes(settings.mode)
        self.announcements = Announcements()
        scope = scope_of(settings.workspace or (Path.cwd(),))
        self.plan_approval = PlanApproval(
            PlanStore(self.state, scope, self.telemetry.warning),
            self.modes,
            settings.plan,
            self.announcements,
        )
        self.spill = SpillFiles(self.state, scope)
        self.rules = rules_of(settings, self.claude_settings)
        self.directories = WorkingDirectories(
            settings,
            self.rules,
            self.state,
            self.spill,
            self.telemetry,
            ask_client_for_roots=ask_client_for_roots,
            serves_http=serves_http,
        )
        self.workspace = self.directories.workspace
        self.database = Database(self.state, self.telemetry.warning)
        self.todos = Todos(todo_store or DatabaseTodoStore(self.database), self.directories.first, self.announcements)
        self.calls = CallLog(self.announcements)
        self.config_view = ConfigView(settings)
        self.session_settings = SessionSettings(
            config_store or DatabaseConfigStore(self.database), self.config_view.check, self.telemetry.warning
        )
        self.registry = Registry()
        self.registry.declare(BUILTIN_SOURCE)
        self.declared.use(self.registry, self.state, self.directories.writable(), self._around_handlers)
        self._configured = ConfiguredUpstreams(
            settings, self.declared, self.references, self.telemetry, writable=self.directories.writable
        )
        chosen = self._configured.chosen
        self._whole_catalog = self.catalog = Catalog(
            self.registry,
            chosen.filter(),
            self._why_missing,
            DeferredListing(settings.catalog.mode, settings.catalog.token_budget),
            settings.catalog.schema_dialect,
            chosen.profiles(),
        )
        if settings.profile:
            # All that this process serves.
            self.catalog = self.catalog.of(Rights(profiles=(settings.profile,)))
        self.servers = ServerVisibility(self.catalog, self.rules)
        self._hook_programs = hook_programs(
            settings,
            self.claude_settings,
            matches_rule=RuleConditions(lambda: tuple(map(str, self.workspace.roots)), self.directories.real_path),
            environment=self.environment,
            guard=self.guard,
            sessions=self.sessions,
            telemetry=self.telemetry,
            project=lambda: next(iter(self.workspace.roots), None),
            mode_of=lambda session_key: self.modes.of(session_key).value,
        )
        self._extensions = chosen_extensions(settings.extensions)
        self.steps = chosen_steps(
            self._extensions, lambda name, bug: self.telemetry.unexpected("step", f"extension {name}", bug)
        )
        self.audit = audit_log(settings.audit, self.state, self.workspace.roots, self.redactor, self.telemetry)
        self._approval = settings.approval or approval
        self._hooks = hooks
        self.restart = Restart()
        self.listed = anyio.Event()
        """Set once a client has its list: then it is time to load the tools' code."""
        self._builtins: dict[str, AnyTool] = {}
        for contract in (*builtin_contracts(), *meta_contracts()):
            self.registry.register(DeferredTool(contract, self.builtin))
        self.lists_outdated: Callable[[], None] = _nobody_listens
        """Told when clients have to list again though the registry is the same; whoever serves them replaces it."""
        register_tools(self._extensions, self.registry, lambda: self.lists_outdated())
        chosen.check_allowed_are_on(self.registry)
        self.upstreams = Upstreams(
            self._configured.at_start.configs,
            registry=self.registry,
            state=self.state,
            telemetry=self.telemetry,
            guard=self.guard,
            problems=self._configured.at_start.problems,
            why_denied=self.servers.why_denied,
            confine=self._confine_upstream,
            roots=self.directories.roots_for_upstreams,
            on_change=self._status_changed,
            logins=Logins(
                self.state, self.http, self.references.hide, warn=self.telemetry.warning, person=login_person
            ),
            instance=self.instance,
            on_updated=self.announcements.changed,
        )
        self.upstreams.load_warm_catalogs()

    # What is asked of it

    async def call(self, name: str, arguments: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        """`Pipeline.call`, but for a name nobody knows: it may belong to an upstream that was never seen."""
        await self.arrival.get_ready(name, arguments, ctx)
        return await self.pipeline.call(name, arguments, ctx)

    async def call_all(self, requests: Sequence[CallRequest], *, cancelled: anyio.Event | None = None) -> BatchOutcome:
        """`Pipeline.call_all`; names nobody knows are waited for as in `call`, side by side."""
        async with anyio.create_task_group() as group:
            for request in requests:
                group.start_soon(self.arrival.get_ready, request.name, request.arguments, request.ctx)
        return await self.pipeline.call_all(requests, cancelled=cancelled)

    def adopt_client_roots(self, roots: Sequence[Path]) -> None:
        """Work where a client said; where it named nothing, in the current directory unless that is / or home."""
        before = self.workspace.roots
        self.directories.adopt_client_roots(roots)
        if self.workspace.roots != before:
            self.upstreams.workspace_changed()
        self.declared.reached_by_tools(self.directories.writable())

    def client_roots_changed(self, session_key: str) -> None:
        """A client has said so. Where its roots are the workspace, they are asked for again before its next call."""
        self.directories.client_roots_changed()
        self.upstreams.roots_changed(session_key)

    def more_instructions(self, room: int) -> str:
        """What the user wants clients told at their start beside what the server says of itself. Blocking."""
        if self._memories is None or not self.settings.tools.get("memento", {}).get("in_instructions"):
            return ""
        # Over HTTP every principal gets the same text: nothing of the user's own is in it.
        return self._memories.instructions(room, "" if self._serves_http else LOCAL)

    def problems(self) -> list[dict[str, Any]]:
        """What is wrong now, for people: `name`, `reason_code`, `detail`, without secrets."""
        found = configuration_problems(self.upstreams, self.registry, self._configured.chosen, self.audit, self.rules)
        found += self.declared.problems()
        return self.redactor.tree(found)

    def log_problems(self) -> None:
        """One log line for each thing in the settings, their files and upstreams that has no effect or is wrong."""
        log_problems(self.telemetry, self.settings, self.claude_settings, self.upstreams, self.rules)
        self.declared.log_problems(self.telemetry)

    def silent_hooks(self) -> Sequence[tuple[str, str]]:
        """Hooks whose matcher means no tool that is there now, and why."""
        return silent_hooks(self._hook_programs, self.registry, self.upstreams)

    # Its life

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Live until the block ends; then end every child, within `SHUTDOWN_S`."""
        async with anyio.create_task_group() as group:
            await group.start(self.upstreams.run)
            group.start_soon(self._configured.follow, self.upstreams)
            group.start_soon(self.declared.watch, self._declared_again)
            group.start_soon(self.spill.keep_pruned)
            group.start_soon(self._load_tools)
            try:
                yield
            finally:
                if self._session_events is not None:
                    await self._session_events.end_all()
                with anyio.move_on_after(SHUTDOWN_S, shield=True):
                    if "tasks" in self.__dict__:
                        await self.tasks.stop_all()
                    await self.declared.close()
                    if "sandbox" in self.__dict__:
                        await self.sandbox.close()
                group.cancel_scope.cancel()
        self.audit.close()
        self.database.close()

    async def _load_tools(self) -> None:
        """While the client's model thinks, load what its first call needs anyway."""
        await self.listed.wait()
        await anyio.sleep(LOAD_TOOLS_AFTER_S)
        for module in _LOADED_AFTER_THE_LIST:
            await anyio.to_thread.run_sync(import_module, module, abandon_on_cancel=True)
        _ = self.pipeline
        self.redactor.text("")  # compiles its patterns
        for place, problem in self.silent_hooks():
            self.telemetry.warning("hook", hook=place, problem=problem)
        await anyio.to_thread.run_sync(self.changes.prune, abandon_on_cancel=True)

    def _declared_again(self) -> None:
        """Manifests were read again: what they say of upstreams, toolsets and profiles counts from now on."""
        if (chosen := self._configured.declared_again()) is not None:
            self.settings = self.declared.settings
            self._whole_catalog.choose(chosen.filter(), chosen.profiles())
            if "item_catalogs" in self.__dict__:
                self.item_catalogs.forget()
            self.lists_outdated()
        self.declared.log_problems(self.telemetry)

    # Parts that are loaded when something first needs them

    @cached_property
    def pipeline(self) -> Pipeline:
        """The way of every call; its modules are loaded by the first, or in the pause after the first list."""
        from goat_mcp.calls.concurrency_limiter import ConcurrencyLimiter
        from goat_mcp.calls.extensions import Extensions
        from goat_mcp.calls.hooks import Hooks
        from goat_mcp.calls.permissions.permission import Permission
        from goat_mcp.calls.permissions.remembered import RememberedRules
        from goat_mcp.calls.pipeline import Pipeline
        from goat_mcp.calls.scheduler import Scheduler

        settings = self.settings
        return Pipeline(
            catalog=self.catalog,
            permission=Permission(
                self.rules,
                self.modes,
                self._approval,
                lambda: self.workspace.roots,
                RememberedRules(self.state, self.spill.scope, self.telemetry.warning),
                lambda: self.sandbox.why_unconfined(),
                self._shell_directory,
            ),
            scheduler=Scheduler(),
            slots=ConcurrencyLimiter(settings.limits.concurrent_calls, settings.limits.concurrent_calls_in_all),
            audit=self.audit,
            spill=self.spill,
            telemetry=self.telemetry,
            redactor=self.redactor,
            session_settings=self.session_settings,
            calls=self.calls,
            hooks=replace(self._hooks or Hooks(), programs=self._hook_programs),
            extensions=Extensions(self._around.layers),
            steps=self.steps,
            max_chars=settings.output.max_chars,
        )

    @cached_property
    def arrival(self) -> Preflight:
        """What is seen to before a call enters the pipeline; loaded by the first."""
        from goat_mcp.gateway.preflight import Preflight

        return Preflight(self.catalog, self.plan_approval, self.upstreams, self.servers, self.steps)

    @cached_property
    def _around(self) -> Middleware:
        from goat_mcp.gateway.middleware import Middleware

        return Middleware(self._session_events, self._extensions)

    @cached_property
    def _session_events(self) -> SessionEvents | None:
        if self._hook_programs is None:
            return None
        from goat_mcp.calls.hooks.session_events import SessionEvents

        return SessionEvents(self._hook_programs)

    def builtin(self, name: str) -> AnyTool:
        """A built-in tool itself. The first one loads the code of all."""
        if not self._builtins:
            from goat_mcp.gateway.build.builtin_tools import Services, build_tools
            from goat_mcp.gateway.build.meta_tools import meta_tools

            services = Services(
                settings=self.settings,
                workspace=self.workspace,
                sessions=self.sessions,
                tasks=self.tasks,
                spill=self.spill,
                guard=self.guard,
                state=self.state,
                todos=self.todos,
                config_view=self.config_view,
                session_settings=self.session_settings,
                plan_approval=self.plan_approval,
                http=self.http,
                models=self.models,
                environment=self.environment,
                sandbox=self.sandbox,
                cgroups=self.cgroups,
                references=self.references,
                spawner=lambda: self.agents.spawner,
                teams=lambda: self.agents.teams,
                upstream_resources=lambda rights: self.upstreams.resources(self.servers.told_of(rights)),
                hides=self.directories.file_rules.hides if self.directories.file_rules.hide_some else None,
                changes=self.changes,
            )
            found_by_search = meta_tools(self.catalog, self.rules.denies_tool)
            self._builtins = {tool.spec.name: tool for tool in (*build_tools(services), *found_by_search)}
        return self._builtins[name]

    @cached_property
    def tasks(self) -> TaskManager:
        """Background work; loaded with the tools."""
        from goat_mcp.commands.tasks.manager import TaskManager

        return TaskManager(
            self.state, self.directories.first, announcements=self.announcements, warn=self.telemetry.warning
        )

    @cached_property
    def sandbox(self) -> Sandbox:
        """What commands and upstreams are confined by. Nothing is tried before the first of them needs it."""
        from goat_mcp.gateway.build.sandbox import chosen_sandbox

        return chosen_sandbox(
            self.settings,
            self.workspace,
            self.directories.file_rules,
            self.state,
            self.spill,
            self.guard,
            runs_unasked=self._commands_run_unasked,
        )

    @cached_property
    def cgroups(self) -> PidsCgroups:
        """What limits the processes of commands if this runs as root."""
        from goat_mcp.processes.pids_cgroup import PidsCgroups

        return PidsCgroups()

    @cached_property
    def changes(self) -> FileChanges:
        """What keeps the old bytes of files, or queues their changes; loaded with the tools."""
        from goat_mcp.gateway.build.changes import file_changes

        return file_changes(
            self.settings.files,
            self.workspace,
            self.state,
            announcements=self.announcements,
            environment=self.environment,
            telemetry=self.telemetry,
            record=self.audit,
        )

    @cached_property
    def agents(self) -> GatewayAgents:
        """What runs agents, and teams of them; loaded by the first call that needs one."""
        from goat_mcp.gateway.build.agents import GatewayAgents

        agents = self._around.agents = GatewayAgents(
            options=self.settings.agent,
            workspace=self.workspace,
            state=self.state,
            sessions=self.sessions,
            tasks=self.tasks,
            spill=self.spill,
            telemetry=self.telemetry,
            redactor=self.redactor,
            models=self.models,
            guard=self.guard,
            environment=self.environment,
            catalog=self.catalog,
            call_all=self.call_all,
            begin_step=self.arrival.begin_step if self.steps is not None else None,
            on_finished=self._session_events.agent_ended if self._session_events is not None else None,
        )
        return agents

    def _around_handlers(self) -> ManifestServices:
        """What declared tools are run over."""
        from goat_mcp.manifests.handler_api import Host
        from goat_mcp.manifests.handler_log import HandlerLog
        from goat_mcp.manifests.manifests import ManifestServices
        from goat_mcp.processes.computing.fair_queue import FairQueue

        host = Host(
            workspace=self.workspace,
            sessions=self.sessions,
            tasks=self.tasks,
            spill=self.spill,
            guard=self.guard,
            environment=self.environment,
            sandbox=lambda: self.sandbox,
            http=self.http,
            allow_hosts=self.settings.web.allow_hosts,
            state=self.state,
            references=self.references,
            announcements=self.announcements,
            hides=self.directories.file_rules.hides,
            tool=self.builtin,
            restart=lambda: self.restart,
            computing=FairQueue(),
            max_chars=self.settings.output.max_chars,
        )
        return ManifestServices(
            host=host, config=self.settings.tools, agents=self._agents_of, log=HandlerLog(self.telemetry)
        )

    @cached_property
    def resources(self) -> OwnResources:
        """What of our own can be read under `goat://...`; its modules are loaded when somebody asks."""
        from goat_mcp.gateway.own_resources import OwnResources

        return OwnResources(
            todos=self.todos,
            tasks=self.tasks,
            plans=self.plan_approval.plans,
            review=self.changes.review,
            calls=self.calls,
            announcements=self.announcements,
            max_chars=self.settings.output.max_chars,
            spill=self.spill,
            status=self.status,
            shows=self.servers.shown,
            memories=self._memories,
        )

    @property
    def _memories(self) -> Memories | None:
        """What models wrote down for later; None where no tool does."""
        if self.registry.get("memento__note") is None:
            return None
        from goat_mcp.files.memory.memories import Memories

        return Memories(self.workspace, self.directories.file_rules.hides, self.changes.waiting_of)

    @cached_property
    def status(self) -> GatewayStatus:
        """What there is to know of this gateway and its upstreams; loaded when somebody asks, or after the start."""
        from goat_mcp.gateway.status.gateway_status import GatewayStatus

        permission = self.pipeline.permission
        return GatewayStatus(
            self.settings,
            upstreams=self.upstreams,
            redactor=self.redactor,
            approval=permission.approval.value,
            mode=self.modes.default.value,
            rules=self.rules,
            roots=lambda: self.workspace.roots,
            sandbox=lambda: self.sandbox.known_state() if "sandbox" in self.__dict__ else None,
            cgroups=self.cgroups,
            hooks=self._hook_programs.hooks if self._hook_programs is not None else (),
            problems=self.problems,
            transport="http" if self._serves_http else "stdio",
            started_s=self.started_s,
        )

    @cached_property
    def item_catalogs(self) -> ResourceCatalogs:
        """What clients see of the upstreams' resources, templates and prompts; loaded when somebody asks."""
        from goat_mcp.catalog.resource_catalog import ResourceCatalogs

        return ResourceCatalogs(
            self.upstreams.offers,
            self.servers.why_hidden,
            lambda source: self.upstreams.upstream(source).config.server,
        )

    @cached_property
    def items(self) -> ResourceCalls:
        """The way of requests for them; its modules are loaded by the first."""
        from goat_mcp.gateway.resource_calls import ResourceCalls

        return ResourceCalls(
            self.pipeline,
            self.item_catalogs.of,
            self.upstreams.given,
            self.upstreams.given_by_reads,
            lambda source: self.upstreams.upstream(source).requests,
            lambda rights: self.upstreams.first_offers(shows=self.servers.shown(rights)),
            lambda wait_s, rights: self.upstreams.all_offers(wait_s, self.servers.shown(rights)),
        )

    # What parts ask about each other

    def _agents_of(self, ctx: ToolContext) -> AgentRuntime:
        from goat_mcp.agents.teams.call_runtime import CallRuntime

        return CallRuntime(lambda: self.agents.bus, ctx)

    def _why_missing(self, name: str) -> ToolError | None:
        """Of a name that nobody has: whether an upstream, a broken manifest, or a set that is off, would have it."""
        return self.upstreams.why_missing(name) or self.declared.why_missing(name) or why_off(name)

    async def _confine_upstream(self, options: SandboxOptions, directory: Path) -> Confined | None:
        return await self.sandbox.confine_upstream(options, directory)

    def _shell_directory(self, ctx: ToolContext, workdir: str) -> str:
        """Where a command would begin, as rules know it."""
        return self.directories.real_path(workdir or str(self.sessions.of(ctx.session_key).cwd or "@"))

    def _commands_run_unasked(self, session_key: str, principal: str) -> bool:
        """Whether commands may run without a person seeing each (design D8): what the sandbox's default depends on."""
        return self._serves_http or self.pipeline.permission.runs_some_unasked("Bash", session_key, principal)

    def _status_changed(self) -> None:
        self.announcements.changed("goat://status")
