"""A gateway's own resources, under `goat://...`, and what announces their changes. Loaded by the first request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from goat_mcp.commands.tasks.manager import TaskResources
from goat_mcp.core.error_pages import ErrorPages
from goat_mcp.core.resources import ResourceProvider
from goat_mcp.core.rights import Rights
from goat_mcp.files.changes.review import REVIEW_URI, ReviewChanges, ReviewResource
from goat_mcp.files.memory import Memories, MemoryResource
from goat_mcp.gateway.build.services import Services
from goat_mcp.gateway.status.gateway_status import GatewayStatus, StatusResource
from goat_mcp.state.resources import PLANS_URI, CallLogResource, PlanChanges, PlanResources, SpillResource, TodoResource
from goat_mcp.state.todos import TODOS_URI


class OwnResources:
    """`providers` read them; `looks` has, by URI, what announces changes that other processes made."""

    def __init__(
        self,
        services: Services,
        status: GatewayStatus,
        shown: Callable[[Rights], Callable[[str], bool]],
        memories: Memories | None,
    ) -> None:
        """`shown`: which servers a reader with these rights may know of."""
        plans, review = services.plan_approval.plans, services.changes().review
        self.providers: Sequence[ResourceProvider] = (
            TodoResource(services.todos),
            TaskResources(services.tasks(), services.settings.output.max_chars),
            PlanResources(plans),
            ReviewResource(review),
            CallLogResource(services.calls),
            SpillResource(services.spill),
            ErrorPages(),
            StatusResource(status, shown),
            *((MemoryResource(memories),) if memories is not None else ()),
        )
        looks = {
            TODOS_URI: services.todos.look,
            PLANS_URI: PlanChanges(plans, services.announcements).look,
            REVIEW_URI: ReviewChanges(review).look,
        }
        # What is shared with other machines is announced by them.
        self.looks: Mapping[str, Callable[[Collection[str]], Awaitable[None]]] = {
            uri: look for uri, look in looks.items() if not services.is_shared(uri)
        }
