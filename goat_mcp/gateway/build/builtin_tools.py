"""The built-in tools, built over a gateway's services. Importing this loads the code of every tool, which is why it
happens with the first call and not at start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
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

TOOL_CLASSES: tuple[type[BuiltinTool[Any]], ...] = (
    *(Bash, Read, Write, Edit, Glob, Grep, TaskOutput, TaskStop),
    *(TodoWrite, Config, ExitPlanMode, AskUserQuestion, WebFetch, WebSearch, Agent),
    *(ListMcpResources, ReadMcpResource, NotebookEdit, TeamCreate, SendMessage, TeamDelete),
)
"""In the order they are listed. Source: Goat, the 21 static tools."""


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


def build_tools(services: Services) -> Sequence[AnyTool]:
    """Every built-in tool, each with the services it needs."""
    s, settings = services, services.settings
    options, max_chars = settings.files, settings.output.max_chars
    engine = SearchEngine(threads=settings.search.threads, guard=s.guard, shows=_shown_in_searches(s))
    return (
        Bash(
            s.workspace,
            s.sessions,
            s.tasks,
            s.spill,
            s.guard,
            s.environment,
            options=settings.bash,
            max_chars=max_chars,
            sandbox=s.sandbox,
            cgroups=s.cgroups,
        ),
        Read(s.workspace, s.sessions, options, changes=s.changes),
        Write(s.workspace, s.sessions, options, s.changes),
        Edit(s.workspace, s.sessions, options, settings.edit, s.changes),
        Glob(s.workspace, engine, settings.search),
        Grep(s.workspace, engine, settings.search, SearchPriority(search_priority_files())),
        TaskOutput(s.tasks, max_chars),
        TaskStop(s.tasks),
        TodoWrite(s.todos),
        Config(s.config_view, s.session_settings, s.plan_approval.modes),
        ExitPlanMode(s.plan_approval),
        AskUserQuestion(),
        WebFetch(_pages(s), s.spill, s.models, settings.web.cache_s, max_chars),
        WebSearch(s.http, s.sessions, settings.web.search, s.references),
        Agent(s.spawner),
        ListMcpResources(s.upstream_resources, s.spill, max_chars),
        ReadMcpResource(s.upstream_resources, s.spill),
        NotebookEdit(s.workspace, s.sessions, options, s.changes),
        TeamCreate(s.teams),
        SendMessage(s.teams),
        TeamDelete(s.teams),
    )


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
