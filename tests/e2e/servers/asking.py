"""An upstream that asks the client behind each call, in the way of the call's protocol era.

Usage: asking.py ERA [--http]. ERA is all that it speaks: legacy, 2026-07-28, both, or @FILE if a file says so. With
--http it listens on a free port and prints its URL.
"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    # Importing the SDK takes a tenth longer with it, and tests start this hundreds of times.
    gc.disable()

import asyncio
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

ERA = Path(sys.argv[1][1:]).read_text() if sys.argv[1].startswith("@") else sys.argv[1]
Context = ServerRequestContext[Any, Any]


def is_modern(ctx: Context) -> bool:
    return ctx.protocol_version == "2026-07-28"


FORM = types.ElicitRequest(
    params=types.ElicitRequestFormParams(
        message="Which day?",
        requested_schema={
            "type": "object",
            "properties": {"day": {"type": "string", "title": "Day", "default": "Monday"}},
            "required": ["day"],
        },
    )
)
PAGE = types.ElicitRequest(
    params=types.ElicitRequestURLParams(
        message="Pay here", url="https://pay.example/1", elicitation_id="payment-1" if ERA == "legacy" else None
    )
)
THOUGHT = types.CreateMessageRequest(
    params=types.CreateMessageRequestParams(
        messages=[types.SamplingMessage(role="user", content=types.TextContent(type="text", text="A word?"))],
        max_tokens=10,
        system_prompt="Be short.",
    )
)
TOOL_USE = types.CreateMessageRequest(
    params=types.CreateMessageRequestParams(
        messages=[types.SamplingMessage(role="user", content=types.TextContent(type="text", text="A number?"))],
        max_tokens=10,
        tools=[types.Tool(name="dice", input_schema={"type": "object"})],
    )
)
ASKED: dict[str, dict[str, types.InputRequest]] = {
    "book": {"day": FORM},
    "pay": {"page": PAGE},
    "think": {"thought": THOUGHT},
    "use": {"thought": TOOL_USE},
    "where": {"roots": types.ListRootsRequest()},
    "all": {"day": FORM, "thought": THOUGHT},
}
ANSWERS: dict[str, Any] = {
    "elicitation/create": types.ElicitResult,
    "sampling/createMessage": types.CreateMessageResult,
    "roots/list": types.ListRootsResult,
}
NAMES = (*ASKED, "twice", "locked", "noisy", "plain", "folder", "nap", "later", "moved")


def said(answer: Any) -> str:
    if isinstance(answer, types.ElicitResult):
        return f"{answer.action} {answer.content}"
    if isinstance(answer, types.ListRootsResult):
        return " ".join(str(root.uri) for root in answer.roots)
    return answer.content.text


async def ask(ctx: Context, request: Any) -> Any:
    metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
    return await ctx.session.send_request(request, ANSWERS[request.method], metadata=metadata)


def result(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


class Asking:
    """What the tools do. `opened`: whether the page of the locked tool was shown."""

    def __init__(self) -> None:
        self.opened = False
        self.calls = 0
        self.late: asyncio.Task[None] | None = None
        self.moved = anyio.Event()

    async def call(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        self.calls += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return await self._call(ctx, params)

    async def _call(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        match params.name:
            case "plain":
                return result(f"{self.calls} calls")
            case "later":
                self.late = asyncio.create_task(self._say_later(ctx))
                return result("done")
            case "nap":
                await anyio.sleep(0.5)
                return result("slept")
            case "folder":
                return result(f"{Path.cwd()} {os.environ.get('FOLDER', '')} {os.getpid()}")
            case "moved":
                # Told between two calls, or just before this one.
                with anyio.fail_after(60):
                    await self.moved.wait()
                self.moved = anyio.Event()
                return result(said(await ask(ctx, types.ListRootsRequest())))
            case "twice":
                return await self._twice(ctx, params)
            case "locked":
                return self._locked()
            case "noisy":
                for level in ("debug", "info", "error"):
                    await ctx.session.send_log_message(  # pyright: ignore[reportDeprecated]  # of the older era
                        level, f"{level}!", "engine", ctx.request_id
                    )
                return result("done")
            case name:
                asked = ASKED[name]
        if not is_modern(ctx):
            try:
                return result(", ".join([said(await ask(ctx, request)) for request in asked.values()]))
            except MCPError as refused:
                return result(f"refused: {refused.error.code} {refused.error.message}")
        given = params.input_responses or {}
        if set(asked) <= set(given):
            return result(", ".join(said(given[key]) for key in asked) + f", state {params.request_state}")
        return types.InputRequiredResult(input_requests=asked, request_state=f"state of {params.name}")

    async def roots_changed(self, ctx: Context, params: types.NotificationParams) -> None:
        self.moved.set()

    async def _say_later(self, ctx: Context) -> None:
        """When the call is over; not on its stream."""
        await anyio.sleep(0.3)
        await ctx.session.send_log_message("info", "late!", "engine")  # pyright: ignore[reportDeprecated]  # as above

    async def _twice(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        """Two questions, one after the other."""
        if not is_modern(ctx):
            first = await ask(ctx, FORM)
            return result(f"{said(first)}, {said(await ask(ctx, THOUGHT))}")
        given = params.input_responses or {}
        if "thought" in given:
            return result(f"{params.request_state}, {said(given['thought'])}")
        if "day" in given:
            return types.InputRequiredResult(input_requests={"thought": THOUGHT}, request_state=said(given["day"]))
        return types.InputRequiredResult(input_requests={"day": FORM})

    def _locked(self) -> Any:
        if self.opened:
            return result("unlocked")
        self.opened = True
        page = {"mode": "url", "message": "Unlock", "url": "https://unlock.example/", "elicitationId": "unlock-1"}
        raise MCPError(code=types.URL_ELICITATION_REQUIRED, message="unlock first", data={"elicitations": [page]})


def server() -> Server[Any]:
    asking = Asking()

    async def listed(ctx: Context, params: Any) -> types.ListToolsResult:
        tools = [types.Tool(name=name, input_schema={"type": "object"}) for name in NAMES]
        return types.ListToolsResult(tools=tools)

    async def set_level(ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        return types.EmptyResult()

    made = Server[Any]("asking", version="1", on_list_tools=listed, on_call_tool=asking.call)
    made.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
    made.add_notification_handler("notifications/roots/list_changed", types.NotificationParams, asking.roots_changed)
    return made


if __name__ == "__main__":
    serve(server(), ERA, over_http="--http" in sys.argv)
