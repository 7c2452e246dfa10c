"""The built-in tools, built over a gateway's services. Importing this loads the code of every tool, which is why it
happens with the first call and not at start."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goat_mcp.agents.models.choice import ModelChoice
from goat_mcp.calls.permissions.plan_approval import PlanApproval
from goat_mcp.catalog.registry import AnyTool
from goat_mcp.commands.sandbox.sandbox import Sandbox
from goat_mcp.commands.tasks.manager import TaskManager
from goat_mcp.core.mcp_resources import McpResources
from goat_mcp.core.rights import Rights
from goat_mcp.core.tool import BuiltinTool
from goat_mcp.files.changes.call_files import Changes
from goat_mcp.files.search.engine import SearchEngine, show_all
from goat_mcp.files.search.priority import SearchPriority
from goat_mcp.files.workspace import Workspace
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.environment import CommandEnvironment
from goat_mcp.processes.pids_cgroup import PidsCgroups
from goat_mcp.settings.settings import Settings
from goat_mcp.settings.view import ConfigView
from goat_mcp.state.directory import StateDirectory, search_priority_files
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.state.session_settings import SessionSettings
from goat_mcp.state.sessions import Sessions
from goat_mcp.state.spill import SpillFiles
from goat_mcp.state.todos import Todos
from goat_mcp.tools.agent import Agent
from goat_mcp.tools.ask_user_question import AskUserQuestion
from goat_mcp.tools.bash import Bash
from goat_mcp.tools.config import Config
from goat_mcp.tools.edit import Edit
from goat_mcp.tools.exit_plan_mode import ExitPlanMode
from goat_mcp.tools.glob import Glob
from goat_mcp.tools.grep import Grep
from goat_mcp.tools.list_mcp_resources import ListMcpResources
from goat_mcp.tools.notebook_edit import NotebookEdit
from goat_mcp.tools.read import Read
from goat_mcp.tools.read_mcp_resource import ReadMcpResource
from goat_mcp.tools.send_message import SendMessage
from goat_mcp.tools.task_output import TaskOutput
from goat_mcp.tools.task_stop import TaskStop
from goat_mcp.tools.team_create import TeamCreate
from goat_mcp.tools.team_delete import TeamDelete
from goat_mcp.tools.todo_write import TodoWrite
from goat_mcp.tools.web_fetch import WebFetch
from goat_mcp.tools.web_search import WebSearch
from goat_mcp.tools.write import Write
from goat_mcp.web.http import HttpClient

if TYPE_CHECKING:  # loaded when the first agent is started, and with the first page
    from goat_mcp.agents.spawner import Spawner
    from goat_mcp.agents.teams.coordinator import TeamCoordinator
    from goat_mcp.web.pages.pages import Pages


@dataclass(frozen=True, kw_only=True)
class Services:
    """What the tools are built over."""

    settings: Settings
    workspace: Workspace
    sessions: Sessions
    tasks: TaskManager
    spill: SpillFiles
    guard: ProcessGuard
    state: StateDirectory
    todos: Todos
    config_view: ConfigView
    session_settings: SessionSettings
    plan_approval: PlanApproval
    http: HttpClient
    models: ModelChoice
    environment: CommandEnvironment
    sandbox: Sandbox
    cgroups: PidsCgroups
    references: SecretReferences
    spawner: Callable[[], Spawner]
    teams: Callable[[], TeamCoordinator]
    upstream_resources: Callable[[Rights], McpResources]
    hides: Callable[[str], bool] | None
    changes: Changes

    @property
    def max_chars(self) -> int:
        return self.settings.output.max_chars

    @cached_property
    def engine(self) -> SearchEngine:
        return SearchEngine(threads=self.settings.search.threads, guard=self.guard, shows=_shown_in_searches(self))


_BUILDERS: Mapping[type[BuiltinTool[Any]], Callable[[Services], BuiltinTool[Any]]] = {
    Bash: lambda s: Bash(
        s.workspace,
        s.sessions,
        s.tasks,
        s.spill,
        s.guard,
        s.environment,
        options=s.settings.bash,
        max_chars=s.max_chars,
        sandbox=s.sandbox,
        cgroups=s.cgroups,
    ),
    Read: lambda s: Read(s.workspace, s.sessions, s.settings.files, changes=s.changes),
    Write: lambda s: Write(s.workspace, s.sessions, s.settings.files, s.changes),
    Edit: lambda s: Edit(s.workspace, s.sessions, s.settings.files, s.settings.edit, s.changes),
    Glob: lambda s: Glob(s.workspace, s.engine, s.settings.search),
    Grep: lambda s: Grep(s.workspace, s.engine, s.settings.search, SearchPriority(search_priority_files())),
    TaskOutput: lambda s: TaskOutput(s.tasks, s.max_chars),
    TaskStop: lambda s: TaskStop(s.tasks),
    TodoWrite: lambda s: TodoWrite(s.todos),
    Config: lambda s: Config(s.config_view, s.session_settings, s.plan_approval.modes),
    ExitPlanMode: lambda s: ExitPlanMode(s.plan_approval),
    AskUserQuestion: lambda s: AskUserQuestion(),
    WebFetch: lambda s: WebFetch(_pages(s), s.spill, s.models, s.settings.web.cache_s, s.max_chars),
    WebSearch: lambda s: WebSearch(s.http, s.sessions, s.settings.web.search, s.references),
    Agent: lambda s: Agent(s.spawner),
    ListMcpResources: lambda s: ListMcpResources(s.upstream_resources, s.spill, s.max_chars),
    ReadMcpResource: lambda s: ReadMcpResource(s.upstream_resources, s.spill),
    NotebookEdit: lambda s: NotebookEdit(s.workspace, s.sessions, s.settings.files, s.changes),
    TeamCreate: lambda s: TeamCreate(s.teams),
    SendMessage: lambda s: SendMessage(s.teams),
    TeamDelete: lambda s: TeamDelete(s.teams),
}
"""Every built-in tool, in the order of the list (Goat's), with the services it needs. A new tool is one line here."""
TOOL_CLASSES = tuple(_BUILDERS)


def build_tools(services: Services) -> Sequence[AnyTool]:
    """Every built-in tool, in the order of the list."""
    return tuple(build(services) for build in _BUILDERS.values())


def _pages(services: Services) -> Callable[[], Pages]:
    """The pages of this gateway. What it takes to fetch one is loaded when the first is wanted."""

    @cache
    def pages() -> Pages:
        from goat_mcp.web.pages.pages import Pages

        return Pages(services.http, services.settings.web, services.guard)

    return pages


def _shown_in_searches(services: Services) -> Callable[[str], bool]:
    """What a search may name: all but what may not be read unasked, and the server's own state below a root."""
    roots, hides = services.workspace.roots, services.hides
    state = services.state.path.resolve()
    has_state = not roots or any(state.is_relative_to(root) for root in roots)
    if not has_state and hides is None:
        return show_all

    def shows(path: str) -> bool:
        if hides is not None and hides(path):
            return False
        return not path.startswith(f"{state}/") or services.spill.is_open(Path(path))

    return shows
