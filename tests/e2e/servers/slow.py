"""An upstream whose tools take as long as a test wants, in the way of one protocol era.

Usage: slow.py ERA FOLDER [--http]. ERA is legacy or 2026-07-28; with --http it listens on a free port and prints its
URL. A tool that waits says so by FOLDER/waiting, goes on once FOLDER/go is there, and leaves FOLDER/cancelled if its
call is cancelled first.
"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    # Importing the SDK takes a tenth longer with it.
    gc.disable()

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata

from tests.e2e.servers.serving import serve

ERA, FOLDER = sys.argv[1], Path(sys.argv[2])
IS_MODERN = ERA == "2026-07-28"
Context = ServerRequestContext[Any, Any]
FORM = types.ElicitRequest(
    params=types.ElicitRequestFormParams(
        message="Which day?", requested_schema={"type": "object", "properties": {"day": {"type": "string"}}}
    )
)
TYPED: dict[str, Any] = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
NAMES = ("plain", "slow", "typed", "large", "fails", "refuses", "asks", "asks_first", "exits")


async def until_go() -> None:
    (FOLDER / "waiting").touch()
    try:
        while not (FOLDER / "go").exists():  # noqa: ASYNC110 - another process makes it
            await anyio.sleep(0.02)
    except anyio.get_cancelled_exc_class():
        (FOLDER / "cancelled").touch()
        raise


def result(text: str, **members: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], **members)


def rich() -> types.CallToolResult:
    return types.CallToolResult(
        content=[
            types.TextContent(type="text", text="done"),
            types.ImageContent(type="image", data="aGk=", mime_type="image/png"),
            types.ResourceLink(type="resource_link", uri="file:///report", name="report"),
        ],
        structured_content={"answer": 42},
        _meta={"example.com/cost": 3},
    )


async def ask(ctx: Context, params: types.CallToolRequestParams) -> str | types.InputRequiredResult:
    if not IS_MODERN:
        try:
            metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answer = await ctx.session.send_request(FORM, types.ElicitResult, metadata=metadata)
        except MCPError as refused:
            return f"refused: {refused.error.message}"
        return f"{answer.action} {answer.content}"
    given = (params.input_responses or {}).get("day")
    if given is None:
        return types.InputRequiredResult(input_requests={"day": FORM})
    return f"{given.action} {given.content}" if isinstance(given, types.ElicitResult) else "what is that?"


async def call(ctx: Context, params: types.CallToolRequestParams) -> Any:
    match params.name:
        case "plain":
            return result("plain")
        case "slow" | "typed":
            await ctx.session.report_progress(1, 3, "step one")
            await until_go()
            return rich()
        case "large":
            await until_go()
            return result("x" * 50_000)
        case "fails":
            await until_go()
            return result("it did not work", is_error=True)
        case "refuses":
            await until_go()
            raise MCPError(code=-32050, message="not today")
        case "asks":
            await until_go()
            asked = await ask(ctx, params)
            return result(asked) if isinstance(asked, str) else asked
        case "asks_first":
            if isinstance(asked := await ask(ctx, params), str):
                await until_go()
                return result(asked)
            return asked
        case _:
            await until_go()
            os._exit(3)


async def listed(ctx: Context, params: Any) -> types.ListToolsResult:
    tools = [
        types.Tool(name=name, input_schema={"type": "object"}, output_schema=TYPED if name == "typed" else None)
        for name in NAMES
    ]
    return types.ListToolsResult(tools=tools)


def server() -> Server[Any]:
    return Server[Any]("slow", version="1", on_list_tools=listed, on_call_tool=call)


if __name__ == "__main__":
    serve(server(), ERA, over_http="--http" in sys.argv)
