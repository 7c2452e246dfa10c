"""The services of one gateway. Making them starts and connects nothing, and loads the code of no tool."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from goat_mcp.agents.models.choice import ModelChoice
from goat_mcp.calls.permissions.plan_approval import PlanApproval
from goat_mcp.calls.permissions.rules_in_force import RulesInForce
from goat_mcp.calls.permissions.session_modes import SessionModes
from goat_mcp.commands.sandbox.options import FOLDER as SANDBOX_FOLDER
from goat_mcp.commands.sandbox.options import SandboxMode
from goat_mcp.core.lazy import Lazy
from goat_mcp.core.redaction import Redactor, secrets_among
from goat_mcp.core.resources import Announcements, UpstreamUpdates
from goat_mcp.gateway.build.audit import audit_log
from goat_mcp.gateway.build.observability import call_metrics, check_tracing
from goat_mcp.gateway.build.working_directories import WorkingDirectories, check_state, scope_of
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.environment import CommandEnvironment
from goat_mcp.settings.settings import Settings
from goat_mcp.settings.view import ConfigView
from goat_mcp.state.call_log import CallLog
from goat_mcp.state.database import Database, DatabaseTokens, OneTimeTokens
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.plans import PlanStore
from goat_mcp.state.redis.shared_state import SharedState
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.state.session_settings import ConfigStore, DatabaseConfigStore, SessionSettings
from goat_mcp.state.sessions import Sessions
from goat_mcp.state.spill import SpillFiles
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.state.todos import TODOS_URI, DatabaseTodoStore, Todos, TodoStore
from goat_mcp.web.http import HttpClient

if TYPE_CHECKING:  # loaded with the tools
    from goat_mcp.calls.approvals.plan_queue import PlanQueue
    from goat_mcp.calls.approvals.store import ApprovalStore
    from goat_mcp.calls.audit.anchors import Anchors
    from goat_mcp.commands.sandbox.sandbox import Sandbox
    from goat_mcp.commands.tasks.manager import TaskManager
    from goat_mcp.commands.tasks.team_tasks import TeamTasks
    from goat_mcp.files.changes.staged_files import FileChanges
    from goat_mcp.processes.pids_cgroup import PidsCgroups
    from goat_mcp.upstreams.owners.owners import Owners

SETTINGS_EVENT = "settings"
_SHARED_URIS = (TODOS_URI,)
RunsUnasked = Callable[[str, str], bool]
"""Whether commands of a session, and a principal, may run without a person seeing each (design D8)."""


class Services:
    """The parts that depend on settings only. Those in a `Lazy` are loaded with the tools.

    `serves_http`: nobody need have seen a call before it comes (design D8).
    """

    def __init__(
        self,
        settings: Settings,
        rules: RulesInForce,
        *,
        state: StateDirectory,
        ask_client_for_roots: bool,
        serves_http: bool,
        todo_store: TodoStore | None,
        config_store: ConfigStore | None,
        runs_unasked: RunsUnasked,
    ) -> None:
        """Without stores, todos and changed settings are in the state directory's database. Raises `BrokenSettings`."""
        check_state(state)
        self.settings = settings
        self.redactor = Redactor(secrets_among(os.environ))
        self.rules = rules
        self.references = SecretReferences(redactor=self.redactor, state=state)
        self.shared = shared = SharedState.of(settings.state, self.references)
        self.state = state = replace(state, shared=shared)
        self.serves_http = serves_http
        self.page_url = ""
        """Where this process serves the page, if it does."""
        self.how_started = ""
        """`resident`, or why a server over stdio has a process of its own."""
        self._runs_unasked = runs_unasked
        self.telemetry = Telemetry(settings.log_level, self.redactor)
        self.events = None if shared is None else shared.events(self.telemetry.warning)
        self.guard = ProcessGuard()
        self.environment = CommandEnvironment()
        self.sessions = Sessions()
        self.http = HttpClient(settings.web)
        self.models = ModelChoice(self.http, settings.agent, self.references)
        self.modes = SessionModes(settings.mode)
        self.announcements = Announcements()
        self.updates = UpstreamUpdates()
        scope = scope_of(settings.workspace or (Path.cwd(),))
        plans = PlanStore(state, scope, self.telemetry.warning)
        self.plan_approval = PlanApproval(plans, self.modes, settings.plan, self.announcements)
        self.spill = SpillFiles(state, scope)
        self.directories = WorkingDirectories(
            settings,
            rules,
            state,
            self.spill,
            self.telemetry,
            ask_client_for_roots=ask_client_for_roots,
            serves_http=serves_http,
        )
        self.workspace = self.directories.workspace
        self.database = Database(state, self.telemetry.warning)
        self.owners: Lazy[Owners] | None = None
        """Who has the processes of stdio upstreams, on one of several replicas. Set with the upstreams."""
        self.team_tasks: TeamTasks | None = None
        """The background tasks of all replicas. Set before the first call, on one of several."""
        todo_store = todo_store or (DatabaseTodoStore(self.database) if shared is None else shared.todos())
        self.todos = Todos(todo_store, self.directories.first, self.announcements)
        self.calls = CallLog(self.announcements)
        check_tracing(settings.tracing)
        self.metrics = call_metrics(settings.metrics) if serves_http else None
        self.config_view = ConfigView(settings)
        config_store = config_store or (DatabaseConfigStore(self.database) if shared is None else shared.settings())
        self.session_settings = SessionSettings(config_store, self.config_view.check, self.telemetry.warning)
        if self.events is not None:
            self.events.listen(SETTINGS_EVENT, lambda facts: self.session_settings.changed_elsewhere(*facts))
            self.events.on_gap(self.session_settings.changed_elsewhere)
            self.session_settings.on_change(partial(self.events.announce, SETTINGS_EVENT))
        self.audit = audit_log(settings.audit, state, self.workspace.roots, self.redactor, self.telemetry)
        self.tasks = Lazy(self._tasks)
        self.sandbox = Lazy(self._sandbox)
        self.cgroups = Lazy(self._cgroups)
        self.changes = Lazy(self._changes)
        self.plan_queue = Lazy(self._plan_queue)
        self.approvals = Lazy(self._approvals)

    def _tasks(self) -> TaskManager:
        from goat_mcp.commands.tasks.manager import TaskManager

        first, warn = self.directories.first, self.telemetry.warning
        return TaskManager(self.state, first, announcements=self.announcements, warn=warn, team=self.team_tasks)

    def _sandbox(self) -> Sandbox:
        from goat_mcp.commands.sandbox import factory
        from goat_mcp.commands.sandbox.protected_paths import HiddenSearch
        from goat_mcp.files.workspace.protected import protected_reason

        rules = self.directories.file_rules
        hidden = HiddenSearch(rules.forbids_to_read, rules.never_read, rules.hide_some)
        settings = self.settings
        if self.directories.are_personal:
            # Without one a command would reach the directories of others.
            settings = settings.model_copy(update={"sandbox": SandboxMode.REQUIRED})
        return factory.sandbox(
            settings,
            factory.SandboxServices(
                roots=lambda: self.workspace.roots,
                state=self.state,
                spill=lambda: self.spill.folder,
                runs_unasked=self._runs_unasked,
                is_protected=lambda path: protected_reason(path, commits=True) is not None,
                run_at_the_end=self.guard.run_at_the_end,
                hidden=hidden,
                unchanged=HiddenSearch(rules.forbids_commands_to_write, rules.never_written, rules.keep_some),
                records=self._audit_files,
            ),
        )

    async def run(self) -> None:
        """What goes on beside calls, until cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.spill.keep_pruned)
            group.start_soon(self._clean_up_sandboxes)
            group.start_soon(self.audit.keep_expired)
            if (anchors := self._anchors()) is not None:
                group.start_soon(anchors.keep, lambda: self.audit.head, self.telemetry.warning)
            if self.shared is not None:
                group.start_soon(self.shared.files(self.state.path).follow)
            if self.events is not None:
                group.start_soon(self.events.run)

    async def _clean_up_sandboxes(self) -> None:
        """Remove what sandboxes of killed processes left in workspaces. If there is nothing, nothing is loaded."""
        if any((self.state.path / SANDBOX_FOLDER).glob("*.json")):
            await anyio.to_thread.run_sync(self.sandbox().clean_up, abandon_on_cancel=True)

    async def end_children(self) -> None:
        """End what commands have started, and the sandbox."""
        if (tasks := self.tasks.made) is not None:
            await tasks.stop_all()
        if (sandbox := self.sandbox.made) is not None:
            await sandbox.close()

    def one_time_tokens(self, lifetime_s: float) -> OneTimeTokens:
        """For what may be answered once, to whatever process that has the same state."""
        return DatabaseTokens(self.database, lifetime_s) if self.shared is None else self.shared.tokens(lifetime_s)

    @property
    def shared_keys(self) -> list[str]:
        """The secrets that all replicas of this server have, the one to seal with first; none for a server alone."""
        return [] if self.shared is None else self.shared.keys

    def is_shared(self, uri: str) -> bool:
        """Whether other replicas have the same under this URI of ours."""
        return self.shared is not None and uri.startswith(_SHARED_URIS)

    def state_in_use(self) -> dict[str, Any]:
        """Where the state is, and why that could not be used the last time, if anybody has asked. Nothing is asked."""
        if self.shared is None:
            return {"where": str(self.state.path), "is_shared": False, "problem": ""}
        redis = self.shared.connection
        asked = {"reachable": not redis.problem} if redis.asked else {}
        return {"where": redis.address.shown, "is_shared": True, "problem": redis.problem, **asked}

    async def leave_shared_state(self) -> None:
        if self.shared is not None:
            if (anchors := self._anchors()) is not None:
                await anchors.add_last(self.audit.head)
            await self.shared.connection.close()

    def _anchors(self) -> Anchors | None:
        """Where heads of the record of calls are kept beside it."""
        if self.shared is None or self.audit.file is None:
            return None
        from goat_mcp.calls.audit.anchors import Anchors

        return Anchors(self.shared.connection, self.shared.keys, self.shared.machine, self.audit.file)

    def close(self) -> None:
        """After the last call."""
        self.audit.close()
        self.database.close()
        if (approvals := self.approvals.made) is not None:
            approvals.close()

    def _approvals(self) -> ApprovalStore:
        from goat_mcp.calls.approvals.store import ApprovalStore

        return ApprovalStore(self.state, self.telemetry.warning)

    def _audit_files(self) -> list[Path]:
        """The files of the record of calls, if the user wants them outside the state directory."""
        from goat_mcp.calls.audit.chain import rotated_files

        if self.settings.audit.path is None:
            return []
        path = self.settings.audit.path.expanduser()
        return [path, *(kept for _, kept in rotated_files(path))]

    def _cgroups(self) -> PidsCgroups:
        from goat_mcp.processes.pids_cgroup import PidsCgroups

        return PidsCgroups()

    def _plan_queue(self) -> PlanQueue:
        from goat_mcp.calls.approvals.plan_queue import PlanQueue

        return PlanQueue(self.approvals(), self.spill.scope, self._shown)

    def _shown(self, text: str) -> str:
        from goat_mcp.files.documents.visible_text import make_visible

        return make_visible(self.redactor.text(text))

    def _changes(self) -> FileChanges:
        from goat_mcp.files.changes.journal import Journal, JournalLimits
        from goat_mcp.files.changes.review import Review, StagedChanges
        from goat_mcp.files.changes.staged_files import FileChanges
        from goat_mcp.gateway.approvals.change_source import QueuedDecisions

        def warn(path: Path) -> None:
            self.telemetry.warning("damaged record set aside", path=str(path))

        options = self.settings.files
        journal = Journal(self.state, JournalLimits(options.journal_bytes, options.journal_days), warn)
        staged = StagedChanges(self.state, warn)
        decisions = QueuedDecisions(self.approvals(), self._shown)
        review = Review(staged, journal, self.workspace, self.announcements, self.audit, decisions)
        written = None
        if options.git_stage == "on":
            from goat_mcp.agents.repository_git import GitStager, RepositoryGit

            written = GitStager(RepositoryGit(self.environment)).stage
        return FileChanges(review, review_mode=options.review_mode, written=written)
