"""Servers that only fill a catalog: tools as other services have them, near enough to ours to be mistaken for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

TOOLS_OF_ONE = 98
_SERVICES = (
    *("crm", "billing", "payroll", "helpdesk", "wiki", "chat", "mailbox", "maps", "weather", "payments", "builds"),
    *("logs", "storage", "dns", "cdn", "accounts", "adverts", "video", "translation", "warehouse", "shipping"),
    *("contracts", "surveys", "bookings", "forms", "flights", "hotels", "news", "photos", "music", "sensors"),
)
_THINGS = (
    *("ticket", "customer", "invoice", "page", "message", "folder", "record", "report", "user", "team", "project"),
    *("template", "schedule", "event", "file", "order", "product", "comment", "alert", "metric"),
)
_VERBS: dict[str, str] = {
    "list": "List the {thing}s of {service} with their main fields, newest first",
    "get": "Get one {thing} of {service} by its id, with all fields",
    "create": "Create a {thing} in {service} and return its id",
    "update": "Change fields of a {thing} in {service}; fields that are left out stay as they are",
    "archive": "Archive a {thing} of {service}; it can be brought back later",
    "search": "Search the {thing}s of {service} by words, status and owner",
    "export": "Export the {thing}s of {service} as a file in the format asked for",
}


def filler_tools(count: int) -> Sequence[tuple[str, types.Tool]]:
    """The first `count` pairs of server and tool; more of them begin with the same ones."""
    made: list[tuple[str, types.Tool]] = []
    for thing in _THINGS:
        for verb, purpose in _VERBS.items():
            for service in _SERVICES:
                if len(made) == count:
                    return made
                name = f"{verb}_{thing}s" if verb in ("list", "search", "export") else f"{verb}_{thing}"
                text = f"{purpose.format(thing=thing, service=service)}. Needs the right to see {service}."
                tool = types.Tool(name=f"{service}_{name}", description=text, input_schema=_schema(verb, thing))
                made.append((f"filler{len(made) // TOOLS_OF_ONE}", tool))
    raise ValueError(f"there are only {len(made)} fillers")


def _schema(verb: str, thing: str) -> dict[str, object]:
    fields: dict[str, object] = {}
    required: list[str] = []
    if verb in ("get", "update", "archive"):
        fields["id"] = {"type": "string", "description": f"Id of the {thing}."}
        required.append("id")
    if verb in ("create", "update"):
        fields["title"] = {"type": "string", "description": f"Title of the {thing}, one line."}
        fields["owner"] = {"type": "string", "description": "Login of the person in charge."}
        fields["tags"] = {"type": "array", "items": {"type": "string"}, "description": "Tags to set."}
    if verb in ("list", "search", "export"):
        fields["query"] = {"type": "string", "description": f"Words that the {thing} contains."}
        fields["status"] = {"type": "string", "enum": ["open", "done", "any"], "description": "Only with this status."}
        fields["limit"] = {"type": "integer", "minimum": 1, "maximum": 200, "description": "At most so many."}
    if verb == "export":
        fields["format"] = {"type": "string", "enum": ["csv", "json", "pdf"], "description": "Format of the file."}
        required.append("format")
    return {"type": "object", "properties": fields, "required": required}


def filler_server(name: str, tools: Sequence[types.Tool]) -> Server[Any]:
    """Lists its tools; a call is refused: no task needs one."""

    async def list_tools(
        ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[*tools])

    async def call_tool(
        ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        raise MCPError(code=types.INVALID_PARAMS, message=f"{params.name} is not available on this account")

    return Server(name, version="1.0.0", on_list_tools=list_tools, on_call_tool=call_tool)
