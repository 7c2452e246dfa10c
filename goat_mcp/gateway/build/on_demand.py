"""The parts of a gateway whose code is loaded when something first needs them: each `Lazy` makes its part once."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.catalog.catalog import Catalog
from goat_mcp.catalog.registry import AnyTool, Registry
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError
from goat_mcp.core.lazy import Lazy
from goat_mcp.core.restart import Restart
from goat_mcp.core.result import ToolResult
from goat_mcp.core.rights import LOCAL
from goat_mcp.core.spec import ToolSpec
from goat_mcp.core.tracing import is_traced
from goat_mcp.gateway.build.extensions import UserCode
from goat_mcp.gateway.build.services import Services
from goat_mcp.gateway.server_visibility import ServerVisibility
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import config_folder
from goat_mcp.state.trust import FILE_NAME as SETTINGS_FILE
from goat_mcp.upstreams.status import UpstreamStatus
from goat_mcp.upstreams.upstreams import Upstreams

if TYPE_CHECKING:
    from goat_mcp.agents.agent_types import AgentType
    from goat_mcp.calls.approvals.asking import AsksPerson
    from goat_mcp.calls.batch import BatchOutcome
    from goat_mcp.calls.concurrency_limiter import CallLimiter
    from goat_mcp.calls.hooks.session_events import SessionEvents
    from goat_mcp.calls.long_calls import LongCalls
    from goat_mcp.calls.pipeline import CallRequest, Pipeline
    from goat_mcp.catalog.resource_catalog import ResourceCatalogs
    from goat_mcp.files.memory import Memories
    from goat_mcp.gateway.build.agents import GatewayAgents
    from goat_mcp.gateway.build.resources import OwnResources
    from goat_mcp.gateway.preflight import Preflight
    from goat_mcp.gateway.resource_calls import ResourceCalls
    from goat_mcp.gateway.skill_calls import SkillCalls
    from goat_mcp.gateway.status.gateway_status import GatewayStatus
    from goat_mcp.gateway.status.running_work import RunningWork
    from goat_mcp.gateway.upstream_tasks import UpstreamTaskCalls
    from goat_mcp.manifests.handler_api import AgentRuntime
    from goat_mcp.manifests.manifests import ManifestServices
    from goat_mcp.manifests.served_skills import ServedSkill
    from goat_mcp.manifests.skills import Skill


_NEEDED_BY_CALLS = (
    "goat_mcp.calls.pipeline",
    "goat_mcp.gateway.build.builtin_tools",
    "goat_mcp.commands.shell.plain_commands",
    "goat_mcp.commands.shell.command_extraction",
)
"""The tools, and what reads the script of a Bash call: that brings a parser, which the first command would wait for."""


class OnDemand:
    """`pipeline` and `preflight` are the way of every call, `builtins` the built-in tools and meta-tools by name.

    `resources` are our own under `goat://`; `resource_catalogs` and `resource_calls` are those of upstreams.
    """

    def __init__(
        self,
        services: Services,
        user_code: UserCode,
        approval: Approval,
        *,
        registry: Registry,
        catalog: Catalog,
        upstreams: Upstreams,
        visibility: ServerVisibility,
        call_all: Callable[[Sequence[CallRequest]], Awaitable[BatchOutcome]],
        problems: Callable[[Sequence[UpstreamStatus]], list[dict[str, Any]]],
        declared_types: Callable[[], Sequence[AgentType]],
        skills: Callable[[], Sequence[Skill]],
        has_queue: bool,
    ) -> None:
        """`declared_types` are the agent types of manifests, as they are declared now, `skills` those of the user's
        folders. `has_queue`: see `Gateway`."""
        self._services = services
        self._user_code = user_code
        self._approval = approval
        self._registry = registry
        self._catalog = catalog
        self._upstreams = upstreams
        self._visibility = visibility
        self._call_all = call_all
        self._problems = problems
        self._declared_types = declared_types
        self._own_skills = skills
        self._has_queue = has_queue
        self._started_s = time.time()
        self.session_events = Lazy(self._session_events)
        self.pipeline = Lazy(self._pipeline)
        self.preflight = Lazy(self._preflight)
        self.builtins = Lazy(self._builtins)
        self.agents = Lazy(self._agents)
        self.resources = Lazy(self._resources)
        self.running = Lazy(self._running)
        self.status = Lazy(self._status)
        self.resource_catalogs = Lazy(self._resource_catalogs)
        self.resource_calls = Lazy(self._resource_calls)
        self.upstream_tasks = Lazy(self._upstream_tasks)
        self.skill_calls = Lazy(self._skill_calls)

    async def load(self) -> None:
        """Load what the first call needs anyway. Modules are imported in a thread."""
        for module in _NEEDED_BY_CALLS:
            await anyio.to_thread.run_sync(import_module, module, abandon_on_cancel=True)
        self.pipeline()
        self._services.redactor.text("")  # compiles its patterns

    def _session_events(self) -> SessionEvents | None:
        if self._user_code.programs is None:
            return None
        from goat_mcp.calls.hooks.session_events import SessionEvents

        return SessionEvents(self._user_code.programs)

    def _pipeline(self) -> Pipeline:
        from goat_mcp.calls.concurrency_limiter import CallLimiter
        from goat_mcp.calls.hooks import Hooks
        from goat_mcp.calls.observability.call_spans import CallSpans
        from goat_mcp.calls.permissions.permission import Permission
        from goat_mcp.calls.permissions.remembered import RememberedRules
        from goat_mcp.calls.pipeline import Pipeline
        from goat_mcp.calls.scheduler import Scheduler

        s, settings, user_code = self._services, self._services.settings, self._user_code
        events = self.session_events()
        begins_sessions = (events.around,) if events is not None else ()
        tracing = (CallSpans(),) if settings.tracing.endpoint or is_traced() else ()
        wrapping = [extension for extension in user_code.extensions if extension.function is not None]

        def shell_directory(ctx: ToolContext, workdir: str) -> str:
            """The directory a command would begin in, as rules know it."""
            return s.directories.real_path(workdir or str(s.sessions.of(ctx.session_key).cwd or "@"))

        slots = CallLimiter(settings.limits.concurrent_calls, settings.limits.concurrent_calls_in_all)
        return Pipeline(
            catalog=self._catalog,
            permission=Permission(
                s.rules,
                s.modes,
                settings.approval.by or self._approval,
                lambda: s.workspace.roots,
                RememberedRules(s.state, s.spill.scope, s.telemetry.warning),
                lambda: s.sandbox().why_unconfined(),
                shell_directory,
                lambda: s.sandbox().keeps_commands_inside(),
                self._asks_person(),
                s.spill.scope,
                s.redactor,
                lambda ctx: (tool.spec for tool in self._catalog.of(ctx.rights).listed()),
                _rules_command(settings),
            ),
            scheduler=Scheduler(),
            slots=slots,
            long_calls=self._long_calls(slots),
            audit=s.audit,
            spill=s.spill,
            telemetry=s.telemetry,
            redactor=s.redactor,
            session_settings=s.session_settings,
            calls=s.calls,
            metrics=s.metrics,
            hooks=replace(user_code.functions or Hooks(), programs=user_code.programs),
            layers=(*tracing, *begins_sessions, *wrapping),
            steps=user_code.steps,
            with_mail=self._with_mail,
            max_chars=settings.output.max_chars,
        )

    def _long_calls(self, slots: CallLimiter) -> LongCalls | None:
        after_s = self._services.settings.tasks.after_s
        if not after_s:
            return None
        from goat_mcp.calls.long_calls import LongCalls

        return LongCalls(slots, self._catalog, self._services.tasks, after_s=after_s)

    def _asks_person(self) -> AsksPerson:
        from goat_mcp.calls.approvals.asking import FormOnly, QueuedApprovals

        options = self._services.settings.approval
        if options.by is Approval.DENY or not self._has_queue:
            return FormOnly()
        return QueuedApprovals(self._services.approvals(), options)

    async def revoke_grant(self, id: str) -> bool:
        """Take back the rules that an approval granted to a session of this process; False if it granted none here."""
        store = self._services.approvals()
        try:
            found = await anyio.to_thread.run_sync(store.find, id)
        except ToolError:
            return False
        process, _, session_key = found.request.session.partition("/")
        rules = found.verdict.rules if found.verdict is not None else ()
        is_ours = process == store.processes.of_session(session_key)
        return is_ours and self._services.modes.revoke(session_key, rules)

    async def _with_mail(self, spec: ToolSpec, result: ToolResult, ctx: ToolContext) -> ToolResult:
        """A call's result and the mail for its session. There is none before a call has needed agents."""
        agents = self.agents.made
        return result if agents is None else await agents.with_mail(spec, result, ctx)

    def _preflight(self) -> Preflight:
        from goat_mcp.gateway.preflight import Preflight

        plans, steps = self._services.plan_approval, self._user_code.steps
        return Preflight(self._catalog, plans, self._upstreams, self._visibility, steps)

    def _builtins(self) -> Mapping[str, AnyTool]:
        from goat_mcp.gateway.approvals.of_principal import ApprovalsOfPrincipal
        from goat_mcp.gateway.build.builtin_tools import app_tools, build_tools, meta_tools

        tools = build_tools(
            self._services,
            self.agents,
            lambda rights: self._upstreams.resources(self._visibility.listed_with_reason(rights)),
            self._catalog,
            self._call_of_script,
        )
        found_by_search = meta_tools(self._catalog, lambda spec: self._services.rules.now().denies_tool(spec))
        s = self._services
        shown_as_apps = app_tools(self._catalog, ApprovalsOfPrincipal(s.state, s.redactor, s.telemetry))
        return {tool.spec.name: tool for tool in (*tools, *found_by_search, *shown_as_apps)}

    async def _call_of_script(
        self, name: str, arguments: Mapping[str, Any], ctx: ToolContext
    ) -> tuple[ToolResult, bool]:
        from goat_mcp.calls.pipeline import CallRequest

        outcome = await self._call_all([CallRequest(name, arguments, ctx, to_the_end=True)])
        return outcome.results[0], outcome.stopped_by is not None

    def commands_run_unasked(self, session_key: str, principal: str) -> bool:
        """What the sandbox's default depends on (`RunsUnasked`)."""
        permission = self.pipeline().permission
        return self._services.serves_http or permission.allows_without_asking("Bash", session_key, principal)

    def _agents(self) -> GatewayAgents:
        from goat_mcp.gateway.build.agents import GatewayAgents

        events = self.session_events()
        return GatewayAgents(
            self._services,
            self._catalog,
            self._call_all,
            begin_step=self.preflight().begin_step if self._user_code.steps is not None else None,
            on_finished=events.agent_ended if events is not None else None,
            declared_types=self._declared_types,
        )

    def agents_of(self, ctx: ToolContext) -> AgentRuntime:
        """The agents as one call may use them."""
        from goat_mcp.agents.teams.call_runtime import CallRuntime

        return CallRuntime(lambda: self.agents().bus, ctx)

    def _memories(self) -> Memories | None:
        """What models wrote down for later; None if no tool does."""
        if self._registry.get("memento__note") is None:
            return None
        from goat_mcp.files.memory import Memories

        s = self._services
        return Memories(s.workspace, s.directories.file_rules.hides, s.changes().waiting_of)

    def more_instructions(self, room: int) -> str:
        """What the user wants clients to read at their start, after what the server says of itself. Blocking."""
        memories = self._memories()
        if memories is None or not self._services.settings.tools.get("memento", {}).get("in_instructions"):
            return ""
        # Over HTTP every principal gets the same text: nothing of the user's own is in it.
        return memories.instructions(room, "" if self._services.serves_http else LOCAL)

    def _resources(self) -> OwnResources:
        from goat_mcp.gateway.build.resources import OwnResources

        return OwnResources(self._services, self.status(), self._visibility.shown, self._memories())

    def _running(self) -> RunningWork:
        from goat_mcp.gateway.status.running_work import RunningWork

        return RunningWork(self.pipeline().slots, lambda: self._services.tasks.made, self._services.audit)

    def _status(self) -> GatewayStatus:
        from goat_mcp.gateway.status.gateway_status import GatewayStatus

        programs = self._user_code.programs
        return GatewayStatus(
            self._services,
            self._upstreams,
            asks_go_to=self.pipeline().permission.approval.value,
            hooks=programs.hooks if programs is not None else (),
            problems=self._problems,
            started_s=self._started_s,
            running=self.running(),
        )

    async def end_sessions(self) -> None:
        """Tell what follows sessions that all of them are over."""
        if (events := self.session_events.made) is not None:
            await events.end_all()

    def _resource_catalogs(self) -> ResourceCatalogs:
        from goat_mcp.catalog.resource_catalog import ResourceCatalogs

        return ResourceCatalogs(
            self._upstreams.offers,
            self._visibility.why_hidden,
            lambda source: self._upstreams.upstream(source).config.server,
            self._upstreams.own_lists,
        )

    def _upstream_tasks(self) -> UpstreamTaskCalls:
        from goat_mcp.gateway.upstream_tasks import UpstreamTaskCalls

        return UpstreamTaskCalls(self.pipeline(), self._catalog, self._upstreams, self._visibility.why_hidden)

    def _resource_calls(self) -> ResourceCalls:
        from goat_mcp.gateway.resource_calls import ResourceCalls

        return ResourceCalls(self.pipeline(), self.resource_catalogs().of, self._upstreams, self._visibility.shown)

    def _skill_calls(self) -> SkillCalls:
        from goat_mcp.gateway.skill_calls import SkillCalls

        own: Sequence[ServedSkill] = ()
        if skills := self._own_skills():
            from goat_mcp.manifests.served_skills import served_skills

            own, _ = served_skills(skills, self._services.directories.file_rules.hides)
        return SkillCalls(
            self.pipeline(),
            self._visibility.why_hidden,
            own,
            self._upstreams,
            self.resource_catalogs().of,
            self._services.telemetry,
        )

    @property
    def has_own_skills(self) -> bool:
        """Whether some folder of the user's holds one."""
        return bool(self._own_skills())


def handler_surroundings(
    services: Services,
    tool: Callable[[str], AnyTool],
    agents_of: Callable[[ToolContext], AgentRuntime],
    restart: Restart,
) -> ManifestServices:
    """What declared tools are run over. Loads what runs background tasks."""
    from goat_mcp.manifests.handler_api import Host
    from goat_mcp.manifests.handler_log import HandlerLog
    from goat_mcp.manifests.manifests import ManifestServices
    from goat_mcp.processes.computing.worker_process import ComputingLimiter

    s = services
    host = Host(
        workspace=s.workspace,
        sessions=s.sessions,
        tasks=s.tasks(),
        spill=s.spill,
        guard=s.guard,
        environment=s.environment,
        sandbox=s.sandbox,
        http=s.http,
        allow_hosts=s.settings.web.allow_hosts,
        state=s.state,
        references=s.references,
        announcements=s.announcements,
        hides=s.directories.file_rules.hides,
        tool=tool,
        restart=lambda: restart,
        computing=ComputingLimiter(),
        max_chars=s.settings.output.max_chars,
    )
    return ManifestServices(host=host, config=s.settings.tools, agents=agents_of, log=HandlerLog(s.telemetry))


def _rules_command(settings: Settings) -> str:
    """It changes the user's own file, which not every program reads that has a gateway in it."""
    return "goat-mcp rules allow" if config_folder() / SETTINGS_FILE in settings.watched_files else ""
