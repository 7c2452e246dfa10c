"""The server behind the gateways that are compared: for each row of the table one tool, resource or prompt.

`python -m tests.passthrough.upstream handshake` refuses 2026-07-28, `... stateless` refuses a handshake, and `... both`
speaks both.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated, ToolsListChanged

from tests.conformance.fixture.asking import ask, completion, one_field, said
from tests.conformance.fixture.call import Answer, Call, Context, text
from tests.conformance.fixture.one_era import one_era
from tests.conformance.fixture.skills import FILES, Shelf
from tests.conformance.fixture.tasks import Tasks

BOTH = "both"
VENDOR_KEY = "example.org/trace"
KEPT_KEY = "example.org/kept"
WATCHED = "test://watched"
PAGE = "ui://board/page.html"
APP_META = {"ui": {"resourceUri": PAGE, "visibility": ["model", "app"]}, "openai/outputTemplate": PAGE}
PAGE_META = {"ui": {"csp": {"connectDomains": ["https://example.org"]}, "prefersBorder": True}}
PAGE_TYPE = "text/html;profile=mcp-app"
STEP_S = 0.02

_NUMBERS: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}
_SUM: dict[str, Any] = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
_NOTHING: dict[str, Any] = {"type": "object", "properties": {}}


class Everything:
    """One server, and what it has counted."""

    def __init__(self) -> None:
        self.cancelled = 0
        self.bus = InMemorySubscriptionBus()
        self.grown = 0
        self.tasks = Tasks(offers=True)
        self.tools: dict[str, Callable[[Call], Awaitable[Answer]]] = {
            "add": _add,
            "blocks": _blocks,
            "log": _log,
            "count": _count,
            "wait": self._wait,
            "cancelled": self._cancelled,
            "ask_form": _asking(one_field("Your name?", "name")),
            "ask_url": _asking(_URL),
            "ask_model": _asking(completion("Say hello.")),
            "ask_roots": _asking(types.ListRootsRequest()),
            "touch": self._touch,
            "grow": self._grow,
            "meta": _meta,
            "board": _board,
            **{tool.name: tool.run for tool in self.tasks.tools},
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # log levels and subscriptions belong to the older revisions
            self.server: Server[Any] = Server(  # pyright: ignore[reportDeprecated]  # as said above
                "everything",
                version="1.0.0",
                on_list_tools=self._list_tools,
                on_call_tool=self._call_tool,
                on_list_prompts=_list_prompts,
                on_get_prompt=_get_prompt,
                on_list_resources=_list_resources,
                on_list_resource_templates=_list_templates,
                on_read_resource=_read_resource,
                on_subscribe_resource=_done,
                on_unsubscribe_resource=_done,
                on_completion=_complete,
                on_set_logging_level=_done,
                on_subscriptions_listen=ListenHandler(self.bus),
            )
        self.tasks.add_to(self.server)
        Shelf().add_methods_to(self.server)

    async def _list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        more = ["grown", *(f"grown_{number}" for number in range(2, self.grown + 1))] if self.grown else []
        of_tasks = {tool.name: tool.listed for tool in self.tasks.tools}
        return types.ListToolsResult(tools=[of_tasks.get(name) or _listed(name) for name in (*self.tools, *more)])

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Answer:
        if params.name not in self.tools:
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name}")
        call = Call(ctx, params.arguments or {}, params.input_responses or {}, params.request_state)
        return await self.tools[params.name](call)

    async def _wait(self, call: Call) -> Answer:
        await call.ctx.session.report_progress(1, 2)
        try:
            await anyio.sleep(30)
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        return text("nobody cancelled")

    async def _cancelled(self, call: Call) -> Answer:
        return text(str(self.cancelled))

    async def _touch(self, call: Call) -> Answer:
        await self.bus.publish(ResourceUpdated(WATCHED))
        if not call.is_stateless:
            await call.ctx.session.send_resource_updated(WATCHED)
        return text("touched")

    async def _grow(self, call: Call) -> Answer:
        self.grown += 1
        await self.bus.publish(ToolsListChanged())
        if not call.is_stateless:
            await call.ctx.session.send_tool_list_changed()
        return text("grown")


_URL = types.ElicitRequest(
    params=types.ElicitRequestURLParams(message="Open this", url="https://example.org/open", elicitation_id="one")
)


def _listed(name: str) -> types.Tool:
    if name == "add":
        hints = types.ToolAnnotations(title="Add", read_only_hint=True)
        return types.Tool(name=name, description="Adds.", input_schema=_NUMBERS, output_schema=_SUM, annotations=hints)
    if name == "board":
        return types.Tool(name=name, description="Shows a board.", input_schema=_NOTHING, _meta=APP_META)
    return types.Tool(name=name, description=f"The row {name}.", input_schema=_NOTHING)


async def _add(call: Call) -> Answer:
    total = call.arguments["a"] + call.arguments["b"]
    content = types.TextContent(type="text", text=str(total))
    return types.CallToolResult(content=[content], structured_content={"sum": total})


async def _blocks(call: Call) -> Answer:
    return types.CallToolResult(
        content=[
            types.ImageContent(type="image", data="aW1hZ2U=", mime_type="image/png"),
            types.AudioContent(type="audio", data="YXVkaW8=", mime_type="audio/wav"),
            types.ResourceLink(type="resource_link", uri="test://text", name="text"),
            types.EmbeddedResource(
                type="resource", resource=types.TextResourceContents(uri="test://inside", text="inside")
            ),
        ]
    )


async def _log(call: Call) -> Answer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        await call.ctx.session.send_log_message("warning", "noted", "row", call.ctx.request_id)  # pyright: ignore[reportDeprecated]  # of the older era
    return text("logged")


async def _count(call: Call) -> Answer:
    for step in (1, 2, 3):
        await call.ctx.session.report_progress(step, 3, f"step {step}")
        await anyio.sleep(STEP_S)
    return text("counted")


def _asking(question: types.InputRequest) -> Callable[[Call], Awaitable[Answer]]:
    async def run(call: Call) -> Answer:
        answers = await ask(call, None, question=question)
        return answers if isinstance(answers, types.InputRequiredResult) else text(said(answers["question"]))

    return run


async def _meta(call: Call) -> Answer:
    heard: Any = (call.ctx.meta or {}).get(VENDOR_KEY)
    answer = text(str(heard))
    answer.meta = {KEPT_KEY: {"n": 12345678901234567890, "list": []}}
    return answer


async def _board(call: Call) -> Answer:
    answer = text("a board")
    answer.meta = {"openai/widget": {"kept": True}}
    return answer


async def _list_prompts(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    argument = types.PromptArgument(name="name", required=True)
    return types.ListPromptsResult(prompts=[types.Prompt(name="greet", title="Greet", arguments=[argument])])


async def _get_prompt(ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    content = types.TextContent(type="text", text=f"Greet {(params.arguments or {}).get('name')}.")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


async def _list_resources(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    return types.ListResourcesResult(
        resources=[
            types.Resource(uri="test://text", name="text", mime_type="text/plain"),
            types.Resource(uri="test://data", name="data", mime_type="application/octet-stream"),
            types.Resource(uri=WATCHED, name="watched"),
            types.Resource(uri=PAGE, name="page", mime_type=PAGE_TYPE, _meta=PAGE_META),
        ]
    )


async def _list_templates(
    ctx: Context, params: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(uri_template="test://item/{id}", name="item")
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def _read_resource(ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = str(params.uri)
    if uri in FILES:
        return await Shelf().read(ctx, params)
    if uri == "test://data":
        return types.ReadResourceResult(contents=[types.BlobResourceContents(uri=uri, blob="AAEC")])
    if uri == PAGE:
        page = types.TextResourceContents(uri=uri, mime_type=PAGE_TYPE, text="<p>board</p>", _meta=PAGE_META)
        return types.ReadResourceResult(contents=[page])
    if uri in ("test://text", WATCHED) or uri.startswith("test://item/"):
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, text=f"content of {uri}")])
    raise MCPError(code=types.INVALID_PARAMS, message="Resource not found", data={"uri": uri})


async def _complete(ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    named = params.ref.name if isinstance(params.ref, types.PromptReference) else params.ref.uri
    known = (params.context.arguments if params.context else None) or {}
    values = [f"{named}:{params.argument.value}:{known.get('before', '')}"]
    return types.CompleteResult(completion=types.Completion(values=values))


async def _done(ctx: Context, params: Any) -> types.EmptyResult:
    return types.EmptyResult()


async def serve(era: str) -> None:
    server = Everything().server
    async with stdio_server() if era == BOTH else one_era(era) as (read, write):
        options = server.create_initialization_options(NotificationOptions(tools_changed=True, resources_changed=True))
        await server.run(read, write, options)


if __name__ == "__main__":
    anyio.run(serve, sys.argv[1])
