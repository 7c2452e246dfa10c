"""The built-in tools and the meta-tools, built over a gateway's services.

Importing this loads the code of every tool: it happens with the first call, not at start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goat_mcp.calls.script_calls import CallTool as CallInner
from goat_mcp.catalog.catalog import Catalog
from goat_mcp.catalog.registry import AnyTool
from goat_mcp.catalog.script_functions import script_functions
from goat_mcp.catalog.search import CatalogSearch
from goat_mcp.core.context import ToolContext
from goat_mcp.core.lazy import Lazy
from goat_mcp.core.resources import McpResources
from goat_mcp.core.rights import Rights
from goat_mcp.core.spec import ToolSpec
from goat_mcp.core.tool import BuiltinTool
from goat_mcp.files.search.engine import SearchEngine
from goat_mcp.files.search.priority import SearchPriority
from goat_mcp.gateway.build.services import Services
from goat_mcp.processes.computing.script_sandbox import ScriptSandbox
from goat_mcp.state.directory import search_priority_files
from goat_mcp.tools.agent import Agent
from goat_mcp.tools.ask_user_question import AskUserQuestion
from goat_mcp.tools.bash import Bash
from goat_mcp.tools.call_tool import CallTool
from goat_mcp.tools.call_tool_readonly import CallToolReadonly
from goat_mcp.tools.config import Config
from goat_mcp.tools.describe_tool import DescribeTool
from goat_mcp.tools.edit import Edit
from goat_mcp.tools.exit_plan_mode import ExitPlanMode
from goat_mcp.tools.glob import Glob
from goat_mcp.tools.grep import Grep
from goat_mcp.tools.list_mcp_resources import ListMcpResources
from goat_mcp.tools.notebook_edit import NotebookEdit
from goat_mcp.tools.read import Read
from goat_mcp.tools.read_mcp_resource import ReadMcpResource
from goat_mcp.tools.run_script import RunScript
from goat_mcp.tools.search_tools import SearchTools
from goat_mcp.tools.send_message import SendMessage
from goat_mcp.tools.show_approvals import PrincipalApprovals, ShowApprovals
from goat_mcp.tools.show_catalog import ShowCatalog
from goat_mcp.tools.task_output import TaskOutput
from goat_mcp.tools.task_stop import TaskStop
from goat_mcp.tools.team_create import TeamCreate
from goat_mcp.tools.team_delete import TeamDelete
from goat_mcp.tools.todo_write import TodoWrite
from goat_mcp.tools.web_fetch import WebFetch
from goat_mcp.tools.web_search import WebSearch
from goat_mcp.tools.write import Write

if TYPE_CHECKING:  # loaded when the first agent is started, and with the first page
    from goat_mcp.agents.spawner import Spawner
    from goat_mcp.agents.teams.coordinator import TeamCoordinator
    from goat_mcp.gateway.build.agents import GatewayAgents
    from goat_mcp.web.pages.pages import Pages

META_CLASSES: tuple[type[BuiltinTool[Any]], ...] = (SearchTools, DescribeTool, CallTool, CallToolReadonly)
"""The meta-tools, in the order they are listed: by them a model reaches the tools that are not listed (DEF-2)."""


APP_CLASSES: tuple[type[BuiltinTool[Any]], ...] = (ShowApprovals, ShowCatalog)
"""Those whose result a host shows as an MCP App, for clients that render such."""


def app_tools(catalog: Catalog, approvals: PrincipalApprovals) -> Sequence[AnyTool]:
    return (ShowApprovals(approvals), ShowCatalog(catalog))


def meta_tools(catalog: Catalog, is_denied: Callable[[ToolSpec], bool]) -> Sequence[AnyTool]:
    """The meta-tools over one catalog. `is_denied`: whether rules deny every call of a tool."""
    search = CatalogSearch(catalog, is_denied)
    return (SearchTools(search), DescribeTool(catalog, search), CallTool(), CallToolReadonly())


@dataclass(frozen=True)
class _Parts:
    """What several tools share, beside the services."""

    services: Services
    agents: Callable[[], GatewayAgents]
    upstream_resources: Callable[[Rights], McpResources]
    catalog: Catalog
    call: CallInner

    @cached_property
    def engine(self) -> SearchEngine:
        s = self.services
        shows, hides_some = _shown_in_searches(s)
        return SearchEngine(threads=s.settings.search.threads, guard=s.guard, shows=shows, hides_some=hides_some)

    @property
    def max_chars(self) -> int:
        return self.services.settings.output.max_chars

    def spawner(self) -> Spawner:
        return self.agents().spawner

    def teams(self) -> TeamCoordinator:
        return self.agents().teams

    def functions_of(self, ctx: ToolContext) -> Mapping[str, str]:
        """The tools that a script of this call can call, by the names of their functions."""
        return {name: spec.name for name, spec in script_functions(self.catalog, ctx.rights).items()}


_BUILDERS: Mapping[type[BuiltinTool[Any]], Callable[[Services, _Parts], BuiltinTool[Any]]] = {
    Bash: lambda s, parts: Bash(
        s.workspace,
        s.sessions,
        s.tasks(),
        s.spill,
        s.guard,
        s.environment,
        options=s.settings.bash,
        max_chars=parts.max_chars,
        sandbox=s.sandbox(),
        cgroups=s.cgroups(),
    ),
    Read: lambda s, parts: Read(s.workspace, s.sessions, s.settings.files, changes=s.changes()),
    Write: lambda s, parts: Write(s.workspace, s.sessions, s.settings.files, s.changes()),
    Edit: lambda s, parts: Edit(s.workspace, s.sessions, s.settings.files, s.settings.edit, s.changes()),
    Glob: lambda s, parts: Glob(s.workspace, parts.engine, s.settings.search),
    Grep: lambda s, parts: Grep(s.workspace, parts.engine, s.settings.search, SearchPriority(search_priority_files())),
    TaskOutput: lambda s, parts: TaskOutput(s.tasks(), parts.max_chars),
    TaskStop: lambda s, parts: TaskStop(s.tasks()),
    TodoWrite: lambda s, parts: TodoWrite(s.todos),
    Config: lambda s, parts: Config(s.config_view, s.session_settings, s.plan_approval.modes),
    ExitPlanMode: lambda s, parts: ExitPlanMode(s.plan_approval, s.plan_queue()),
    AskUserQuestion: lambda s, parts: AskUserQuestion(),
    WebFetch: lambda s, parts: WebFetch(
        _pages(s), s.spill, s.models, s.settings.web.cache_s, s.telemetry.warning, parts.max_chars
    ),
    WebSearch: lambda s, parts: WebSearch(s.http, s.sessions, s.settings.web.search, s.references),
    Agent: lambda s, parts: Agent(parts.spawner, parts.teams),
    ListMcpResources: lambda s, parts: ListMcpResources(parts.upstream_resources, s.spill, parts.max_chars),
    ReadMcpResource: lambda s, parts: ReadMcpResource(parts.upstream_resources, s.spill),
    NotebookEdit: lambda s, parts: NotebookEdit(s.workspace, s.sessions, s.settings.files, s.changes()),
    TeamCreate: lambda s, parts: TeamCreate(parts.teams),
    SendMessage: lambda s, parts: SendMessage(parts.teams),
    TeamDelete: lambda s, parts: TeamDelete(parts.teams),
    RunScript: lambda s, parts: RunScript(
        ScriptSandbox(s.settings.code), parts.functions_of, parts.call, s.settings.code
    ),
}
"""Every built-in tool, in the order of the list (Goat's), with the services it needs. A new tool is one line here."""
TOOL_CLASSES = tuple(_BUILDERS)


def build_tools(
    services: Services,
    agents: Callable[[], GatewayAgents],
    upstream_resources: Callable[[Rights], McpResources],
    catalog: Catalog,
    call: CallInner,
) -> Sequence[AnyTool]:
    """Every built-in tool, in the order of the list. `agents` are loaded when one is needed. `call`: of a script."""
    parts = _Parts(services, agents, upstream_resources, catalog, call)
    return tuple(build(services, parts) for build in _BUILDERS.values())


def _pages(services: Services) -> Callable[[], Pages]:
    """The pages of this gateway. What it takes to fetch one is loaded when the first is needed."""

    def make() -> Pages:
        from goat_mcp.web.pages.pages import Pages

        return Pages(services.http, services.settings.web, services.guard)

    return Lazy(make)


def _shown_in_searches(services: Services) -> tuple[Callable[[str], bool], Callable[[], bool]]:
    """What a search may name: all but what may not be read unasked, and the server's own state below a root; and
    whether that leaves out anything now."""
    roots, rules = services.workspace.roots, services.directories.file_rules
    state = services.state.path.resolve()
    has_state = not roots or any(state.is_relative_to(root) for root in roots)

    def shows(path: str) -> bool:
        return not rules.hides(path) and (not path.startswith(f"{state}/") or services.spill.is_open(Path(path)))

    return shows, lambda: has_state or rules.hide_some()
