"""What of a gateway's own can be read under `goat://...`, and what tells of its changes. Loaded when somebody asks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from goat_mcp.commands.tasks.manager import TaskManager
from goat_mcp.commands.tasks.resources import TaskResources
from goat_mcp.core.announcements import Announcements
from goat_mcp.core.error_pages import ErrorPages
from goat_mcp.core.resources import ResourceProvider
from goat_mcp.core.rights import Rights
from goat_mcp.files.changes.review import REVIEW_URI, Review
from goat_mcp.files.changes.review_resource import ReviewChanges, ReviewResource
from goat_mcp.files.memory.memories import Memories
from goat_mcp.files.memory.memory_resource import MemoryResource
from goat_mcp.gateway.status.gateway_status import GatewayStatus
from goat_mcp.gateway.status.resource import StatusResource
from goat_mcp.state.call_log import CallLog
from goat_mcp.state.plans import PlanStore
from goat_mcp.state.resources import PLANS_URI, CallLogResource, PlanChanges, PlanResources, SpillResource, TodoResource
from goat_mcp.state.spill import SpillFiles
from goat_mcp.state.todos import TODOS_URI, Todos


class OwnResources:
    """`providers` read them; `looks` has, by URI, what announces changes that other processes made."""

    def __init__(
        self,
        *,
        todos: Todos,
        tasks: TaskManager,
        plans: PlanStore,
        review: Review,
        calls: CallLog,
        announcements: Announcements,
        max_chars: int,
        spill: SpillFiles,
        status: GatewayStatus,
        shows: Callable[[Rights], Callable[[str], bool]],
        memories: Memories | None = None,
    ) -> None:
        """`shows`: which servers a reader with these rights may know of."""
        self.providers: Sequence[ResourceProvider] = (
            TodoResource(todos),
            TaskResources(tasks, max_chars),
            PlanResources(plans),
            ReviewResource(review),
            CallLogResource(calls),
            SpillResource(spill),
            ErrorPages(),
            StatusResource(status, shows),
            *((MemoryResource(memories),) if memories is not None else ()),
        )
        self.looks: Mapping[str, Callable[[Collection[str]], Awaitable[None]]] = {
            TODOS_URI: todos.look,
            PLANS_URI: PlanChanges(plans, announcements).look,
            REVIEW_URI: ReviewChanges(review).look,
        }
