"""The built-in tools and the meta-tools, built over a gateway's services.

Importing this loads the code of every tool: it happens with the first call, not at start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goat_mcp.core.mcp_resources import McpResources
from goat_mcp.core.rights import Rights
from goat_mcp.core.tool import BuiltinTool
from goat_mcp.catalog.catalog import Catalog
from goat_mcp.catalog.registry import AnyTool
from goat_mcp.catalog.search import CatalogSearch
from goat_mcp.core.lazy import Lazy
from goat_mcp.core.spec import ToolSpec
from goat_mcp.gateway.build.services import Services
from goat_mcp.tools.call_tool import CallTool
from goat_mcp.tools.call_tool_readonly import CallToolReadonly
from goat_mcp.tools.describe_tool import DescribeTool
from goat_mcp.tools.search_tools import SearchTools
from goat_mcp.files.search.engine import SearchEngine, show_all
from goat_mcp.files.search.priority import SearchPriority
from goat_mcp.state.directory import search_priority_files
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

if TYPE_CHECKING:  # loaded when the first agent is started, and with the first page
    from goat_mcp.agents.teams.coordinator import TeamCoordinator
    from goat_mcp.gateway.build.agents import GatewayAgents
    from goat_mcp.web.pages.pages import Pages

TOOL_CLASSES: tuple[type[BuiltinTool[Any]], ...] = (
    *(Bash, Read, Write, Edit, Glob, Grep, TaskOutput, TaskStop),
    *(TodoWrite, Config, ExitPlanMode, AskUserQuestion, WebFetch, WebSearch, Agent),
    *(ListMcpResources, ReadMcpResource, NotebookEdit, TeamCreate, SendMessage, TeamDelete),
)
"""In the order they are listed. Source: Goat, the 21 static tools."""


META_CLASSES: tuple[type[BuiltinTool[Any]], ...] = (SearchTools, DescribeTool, CallTool, CallToolReadonly)
"""The meta-tools, in the order they are listed: by them a model reaches the tools that are not listed (DEF-2)."""


def meta_tools(catalog: Catalog, is_denied: Callable[[ToolSpec], bool]) -> Sequence[AnyTool]:
    """The meta-tools over one catalog. `is_denied`: whether rules deny every call of a tool."""
    search = CatalogSearch(catalog, is_denied)
    return (SearchTools(search), DescribeTool(catalog, search), CallTool(), CallToolReadonly())


def build_tools(
    services: Services,
    agents: Callable[[], GatewayAgents],
    upstream_resources: Callable[[Rights], McpResources],
) -> Sequence[AnyTool]:
    """Every built-in tool, each with the services it needs. `agents` are loaded when one is needed."""
    s, settings = services, services.settings
    tasks, changes = s.tasks(), s.changes()
    options, max_chars = settings.files, settings.output.max_chars
    engine = SearchEngine(threads=settings.search.threads, guard=s.guard, shows=_shown_in_searches(s))

    def teams() -> TeamCoordinator:
        return agents().teams

    return (
        Bash(
            s.workspace,
            s.sessions,
            tasks,
            s.spill,
            s.guard,
            s.environment,
            options=settings.bash,
            max_chars=max_chars,
            sandbox=s.sandbox(),
            cgroups=s.cgroups(),
        ),
        Read(s.workspace, s.sessions, options, changes=changes),
        Write(s.workspace, s.sessions, options, changes),
        Edit(s.workspace, s.sessions, options, settings.edit, changes),
        Glob(s.workspace, engine, settings.search),
        Grep(s.workspace, engine, settings.search, SearchPriority(search_priority_files())),
        TaskOutput(tasks, max_chars),
        TaskStop(tasks),
        TodoWrite(s.todos),
        Config(s.config_view, s.session_settings, s.plan_approval.modes),
        ExitPlanMode(s.plan_approval),
        AskUserQuestion(),
        WebFetch(_pages(s), s.spill, s.models, settings.web.cache_s, max_chars),
        WebSearch(s.http, s.sessions, settings.web.search, s.references),
        Agent(lambda: agents().spawner),
        ListMcpResources(upstream_resources, s.spill, max_chars),
        ReadMcpResource(upstream_resources, s.spill),
        NotebookEdit(s.workspace, s.sessions, options, changes),
        TeamCreate(teams),
        SendMessage(teams),
        TeamDelete(teams),
    )


def _pages(services: Services) -> Callable[[], Pages]:
    """The pages of this gateway. What it takes to fetch one is loaded when the first is needed."""

    def make() -> Pages:
        from goat_mcp.web.pages.pages import Pages

        return Pages(services.http, services.settings.web, services.guard)

    return Lazy(make)


def _shown_in_searches(services: Services) -> Callable[[str], bool]:
    """What a search may name: all but what may not be read unasked, and the server's own state below a root."""
    roots, rules = services.workspace.roots, services.directories.file_rules
    hides = rules.hides if rules.hide_some else None
    state = services.state.path.resolve()
    has_state = not roots or any(state.is_relative_to(root) for root in roots)
    if not has_state and hides is None:
        return show_all

    def shows(path: str) -> bool:
        if hides is not None and hides(path):
            return False
        return not path.startswith(f"{state}/") or services.spill.is_open(Path(path))

    return shows
