"""A server of the SDK that offers all there is beside tools, in both eras.

`python shelf.py NAME [MODE]` over stdio, `python shelf.py http PORT NAME [MODE]` over HTTP. URIs begin with NAME. MODE:
`deaf` has no subscriptions, `mute` no completions, `slow` lists after a while, `long` has one resource more, `many` has
thousands, `endless` lists prompts without an end, `twice` lists one twice, `odd` has a prompt
that reports progress and says what `_meta` it saw. `tooled` grows by a tool as well, `old_only` knows the older era
only (it must be run as a module). `also=URI` lists that URI as well, `greedy` has a template that
fits every URI and answers to any.
"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    # Importing the SDK takes a tenth longer with it, and tests start this hundreds of times.
    gc.disable()

import json
import os
import sys
import warnings
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

warnings.simplefilter("ignore")
ARGUMENTS = sys.argv[1:]
PORT = int(ARGUMENTS.pop(1)) if ARGUMENTS[0] == "http" else 0
NAME, *MODES = ARGUMENTS[1:] if PORT else ARGUMENTS
BUS = InMemorySubscriptionBus()
EXTRA: list[str] = ["extra0"] if "long" in MODES else []
LISTS = {"resources": 0, "prompts": 0}
SUBSCRIBED: list[str] = []
ALSO = [mode.removeprefix("also=") for mode in MODES if mode.startswith("also=")]
TEXTS = {"one": "first", "two": "second"}


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    names = ("grow", "touch", "give", "subscribed", "die", "drop", "flood", "lists")
    shown = (*names, *EXTRA) if "tooled" in MODES else names
    tools = [types.Tool(name=name, input_schema={"type": "object"}) for name in shown]
    return types.ListToolsResult(tools=tools, ttl_ms=7_000)


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> Any:
    is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    match params.name:
        case "grow":
            EXTRA.append(f"extra{len(EXTRA)}")
            if is_modern:
                await BUS.publish(ResourcesListChanged())
                await BUS.publish(PromptsListChanged())
                await BUS.publish(ToolsListChanged())
            else:
                await ctx.session.send_resource_list_changed()
                await ctx.session.send_prompt_list_changed()
                if "tooled" in MODES:
                    await ctx.session.send_tool_list_changed()
        case "touch":
            uri = (params.arguments or {})["uri"]
            if is_modern:
                await BUS.publish(ResourceUpdated(uri))
            else:
                await ctx.session.send_resource_updated(uri)
        case "die":
            os._exit(1)
        case "drop":
            # Grows without a word, and ends the streams that could have told of it.
            EXTRA.append(f"extra{len(EXTRA)}")
            LISTEN.close()
        case "flood":
            for _ in range(1_000):
                if is_modern:
                    await BUS.publish(ResourcesListChanged())
                    await BUS.publish(PromptsListChanged())
                else:
                    await ctx.session.send_resource_list_changed()
                    await ctx.session.send_prompt_list_changed()
        case "lists":
            text = f"{LISTS['resources']} {LISTS['prompts']}"
            return types.CallToolResult(content=[types.TextContent(type="text", text=text)])
        case "give":
            link = {"type": "resource_link", "uri": f"{NAME}://hidden", "name": "hidden"}
            return {"content": [link], "resultType": "complete"}
        case _:
            pass
    return types.CallToolResult(content=[types.TextContent(type="text", text=" ".join(SUBSCRIBED))])


async def list_resources(ctx: Any, params: Any) -> Any:
    if "slow" in MODES:
        await anyio.sleep(0.4)
    LISTS["resources"] += params is None or params.cursor is None
    if "many" in MODES:
        crowd = [{"uri": f"{NAME}://{number}", "name": "n"} for number in range(2_500 + len(EXTRA))]
        return {"resources": crowd, "ttlMs": 0, "cacheScope": "public", "resultType": "complete"}
    names = [*TEXTS, *EXTRA]
    step = int(params.cursor or 0) if params is not None else 0
    shown = names[step : step + 1]
    listed = [
        {
            "uri": f"{NAME}://{name}",
            "name": name,
            "title": f"Text {name}",
            "mimeType": "text/plain",
            "annotations": {"audience": ["user"], "priority": 0.5},
            "icons": [{"src": "https://example.org/i.png"}],
            "_meta": {"vendor/key": [1, {"deep": True}]},
        }
        for name in shown
    ]
    if "shared" in MODES and step == 0:
        listed.append({"uri": "shared://everyone", "name": NAME})
    if step == 0:
        listed += [{"uri": uri, "name": NAME} for uri in ALSO]
    cursor = {"nextCursor": str(step + 1)} if step + 1 < len(names) else {}
    return {"resources": listed, "ttlMs": 5_000, "cacheScope": "public", "resultType": "complete", **cursor}


async def list_templates(ctx: Any, params: Any) -> Any:
    listed = [{"uriTemplate": f"{NAME}://page/{{number}}", "name": "page", "_meta": {"vendor/t": 1}}]
    if "greedy" in MODES:
        listed.append({"uriTemplate": "{+any}", "name": "all"})
    return {"resourceTemplates": listed, "ttlMs": 9_000, "cacheScope": "private", "resultType": "complete"}


async def read_resource(ctx: Any, params: types.ReadResourceRequestParams) -> Any:
    uri = str(params.uri)
    meta: dict[str, Any] = ctx.meta or {}
    seen = {key: value for key, value in meta.items() if not key.startswith("io.modelcontextprotocol/")}
    name = uri.removeprefix(f"{NAME}://")
    text = {**TEXTS, "hidden": "given", **dict.fromkeys(EXTRA, "extra")}.get(name)
    if uri == "shared://everyone":
        text = f"of {NAME}"
    if text is None and (uri in ALSO or "greedy" in MODES) and not name.startswith("page/"):
        text = f"of {NAME}"
    contents: list[dict[str, Any]]
    if name == "page/blob":
        contents = [{"uri": uri, "blob": "AAECAw==", "mimeType": "application/octet-stream", "_meta": {"b": 1}}]
    elif name.startswith("page/"):
        contents = [{"uri": uri, "text": f"page {name[5:]}"}]
    elif text is not None:
        contents = [{"uri": uri, "text": text, "mimeType": "text/plain", "_meta": {"vendor/seen": seen}}]
    else:
        raise MCPError(code=-32002, message=f"no such thing: {uri}", data={"uri": uri, "hint": "try one"})
    return {
        "contents": contents,
        "_meta": {"vendor/answer": 7, "io.modelcontextprotocol/serverInfo": {"name": "liar", "version": "0"}},
        "ttlMs": 0,
        "cacheScope": "private",
        "resultType": "complete",
    }


async def list_prompts(ctx: Any, params: Any) -> Any:
    LISTS["prompts"] += params is None or params.cursor is None
    if "endless" in MODES:
        step = int((params.cursor if params is not None else None) or 0)
        page = {"prompts": [{"name": f"p{step}"}], "nextCursor": str(step + 1)}
        return {**page, "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
    listed: list[Any] = [
        {
            "name": "greet",
            "title": "Greet somebody",
            "description": "Says hello.",
            "arguments": [{"name": "who", "description": "whom", "required": True}],
            "icons": [{"src": "https://example.org/p.png"}],
            "_meta": {"vendor/p": None, "vendor/q": 2},
        },
        *({"name": name} for name in ("all kinds", *EXTRA)),
    ]
    if "odd" in MODES:
        listed.append({"name": "odd"})
    if "twice" in MODES:
        listed.append({"name": "greet", "title": "Another"})
    return {"prompts": listed, "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}


async def get_prompt(ctx: Any, params: types.GetPromptRequestParams) -> Any:
    if params.name == "greet":
        who = (params.arguments or {}).get("who")
        if who is None:
            raise MCPError(code=-32602, message="who is missing", data={"missing": ["who"]})
        messages: list[Any] = [{"role": "user", "content": {"type": "text", "text": f"Hello {who}"}}]
    elif params.name == "all kinds":
        blocks = [
            {"type": "text", "text": "t", "annotations": {"priority": 0.5}, "_meta": {"c": 1}},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": f"{NAME}://one", "name": "one"},
            {"type": "resource", "resource": {"uri": f"{NAME}://hidden", "blob": "AAEC"}},
        ]
        messages = [
            {"role": "assistant" if index % 2 else "user", "content": block} for index, block in enumerate(blocks)
        ]
    elif params.name == "odd":
        meta: dict[str, Any] = ctx.meta or {}
        await ctx.session.report_progress(1, 2, "half")
        await ctx.session.report_progress(2, 2, "whole")
        seen = {key: value for key, value in meta.items() if key != "progressToken"}
        messages = [
            {"role": "user", "content": {"type": "text", "text": json.dumps(seen, sort_keys=True)}},
        ]
    else:
        raise MCPError(code=-32602, message=f"no such prompt: {params.name}")
    return {"description": "d", "messages": messages, "_meta": {"vendor/answer": [1]}, "resultType": "complete"}


async def boast(ctx: Any, params: types.CompleteRequestParams) -> Any:
    """It says that it has completions, and knows no such method."""
    raise MCPError(types.METHOD_NOT_FOUND, "Method not found")


async def complete(ctx: Any, params: types.CompleteRequestParams) -> Any:
    ref = params.ref
    about = ref.name if isinstance(ref, types.PromptReference) else ref.uri
    before = (params.context.arguments if params.context is not None else None) or {}
    values = [f"{about}:{params.argument.name}:{params.argument.value}", *sorted(f"{k}={v}" for k, v in before.items())]
    return {"completion": {"values": values, "total": 7, "hasMore": True}, "resultType": "complete"}


async def subscribe(ctx: Any, params: Any) -> types.EmptyResult:
    if str(params.uri).endswith("two"):
        raise MCPError(code=-32099, message="not this one", data={"why": "because"})
    SUBSCRIBED.append(f"+{params.uri}")
    return types.EmptyResult()


async def unsubscribe(ctx: Any, params: Any) -> types.EmptyResult:
    SUBSCRIBED.append(f"-{params.uri}")
    return types.EmptyResult()


LISTEN = ListenHandler(BUS)


async def listen(ctx: Any, params: types.SubscriptionsListenRequestParams) -> Any:
    wanted = [str(uri) for uri in params.notifications.resource_subscriptions or () if not str(uri).endswith("two")]
    SUBSCRIBED.append(f"listen:{','.join(wanted)}")
    filter = params.notifications.model_copy(update={"resource_subscriptions": wanted or None})
    return await LISTEN(ctx, params.model_copy(update={"notifications": filter}))


class Shelf(Server[Any]):
    def get_capabilities(self, *args: Any, **options: Any) -> types.ServerCapabilities:
        told = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        return super().get_capabilities(told, *args[1:], **options)


SERVER = Shelf(
    NAME,
    version="1",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_list_resource_templates=list_templates,
    on_read_resource=read_resource,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_completion=None if "mute" in MODES else boast if "boasting" in MODES else complete,
    on_subscribe_resource=None if "deaf" in MODES else subscribe,
    on_unsubscribe_resource=None if "deaf" in MODES else unsubscribe,
    on_subscriptions_listen=None if "old" in MODES else listen,
)


async def refuse_handshake(ctx: Any, call_next: Any) -> Any:
    if ctx.method == "initialize":
        raise MCPError(code=types.METHOD_NOT_FOUND, message="Method not found")
    return await call_next(ctx)


if "new_only" in MODES:
    SERVER.middleware.append(refuse_handshake)


async def over_stdio() -> None:
    streams = stdio_server()
    if "old_only" in MODES:
        from tests.conformance.fixture.one_era import HANDSHAKE, one_era

        streams = one_era(HANDSHAKE)
    async with streams as (read, write):
        await SERVER.run(read, write, SERVER.create_initialization_options())


if __name__ == "__main__":
    if PORT:
        import uvicorn

        uvicorn.run(SERVER.streamable_http_app(), host="127.0.0.1", port=PORT, log_level="error")
    else:
        anyio.run(over_stdio)
