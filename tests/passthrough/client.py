"""A client of the table's checks: what it can do, what it was sent, and what it was asked."""

from __future__ import annotations

import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim, advertise

from tests.conformance.fixture import skills
from tests.conformance.fixture.one_era import HANDSHAKE, STATELESS
from tests.conformance.fixture.tasks import EXTENSION as TASKS
from tests.passthrough.upstream import PAGE_TYPE

WAIT_S = 20.0
LISTED_WITHIN_S = 12.0
MODES = {HANDSHAKE: "legacy", STATELESS: "2026-07-28"}
T = TypeVar("T")
UI = "io.modelcontextprotocol/ui"
ROOT = Path(__file__).parent.as_uri()
"""A folder that exists: others are not passed on as roots."""


class _Task(types.Result):
    """What a call is answered with if it became a task."""

    result_type: Literal["task"]
    task_id: str
    ttl_ms: int


class Tasks(ClientExtension):
    """The extension of a client that reads its tasks itself: a call's result is the task."""

    identifier = TASKS

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=_Task, resolve=_as_it_is)]


async def _as_it_is(task: _Task, ctx: ClaimContext) -> types.CallToolResult:
    return types.CallToolResult(content=[], structured_content=task.model_dump(by_alias=True))


@dataclass
class Seen:
    """A client, and what it was sent and asked."""

    client: Client
    era: str
    asked: list[str] = field(default_factory=list[str])
    logs: list[Any] = field(default_factory=list[Any])
    heard: list[Any] = field(default_factory=list[Any])

    async def listed(self, look: Callable[[], Awaitable[T | None]], problem: str) -> T:
        """What a list has; a first list may come before the server behind the gateway has started."""
        with anyio.move_on_after(LISTED_WITHIN_S):
            while True:
                if (found := await look()) is not None:
                    return found
                await anyio.sleep(0.2)
        raise AssertionError(problem)

    async def tool(self, name: str) -> types.Tool:
        async def look() -> types.Tool | None:
            for tool in (await self.client.list_tools()).tools:
                if tool.name == name or tool.name.endswith(f"_{name}"):
                    return tool
            return None

        return await self.listed(look, f"{name} is not listed")

    async def resource(self, uri: str) -> types.Resource:
        async def look() -> types.Resource | None:
            return next((one for one in (await self.client.list_resources()).resources if str(one.uri) == uri), None)

        return await self.listed(look, f"{uri} is not listed")

    async def call(self, name: str, arguments: dict[str, Any] | None = None, **more: Any) -> types.CallToolResult:
        result = await self.client.call_tool((await self.tool(name)).name, arguments, **more)
        if result.is_error:
            raise AssertionError(text_of(result))
        return result

    async def until(self, is_there: Callable[[], bool], what: str) -> None:
        with anyio.move_on_after(WAIT_S):
            while not is_there():  # noqa: ASYNC110  # messages arrive in callbacks of the SDK
                await anyio.sleep(0.02)
            return
        raise AssertionError(f"{what} did not arrive")


@asynccontextmanager
async def connected(target: StdioServerParameters | str, era: str) -> AsyncGenerator[Seen]:
    """A client of one era that can do everything. `target` may be a URL."""
    seen: Seen

    async def elicit(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        seen.asked.append(params.mode)
        return types.ElicitResult(action="accept", content={"name": "Ada"} if params.mode == "form" else None)

    async def sample(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        seen.asked.append("sampling")
        content = types.TextContent(type="text", text="hello from the model")
        return types.CreateMessageResult(role="assistant", content=content, model="scripted")

    async def roots(context: Any) -> types.ListRootsResult:
        seen.asked.append("roots")
        return types.ListRootsResult(roots=[types.Root(uri=ROOT)])  # pyright: ignore[reportArgumentType]  # a URL as text

    async def logged(params: types.LoggingMessageNotificationParams) -> None:
        seen.logs.append(params)

    async def heard(message: Any) -> None:
        seen.heard.append(message)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the newer revision no longer has
        client = Client(
            target,
            mode=MODES[era],
            elicitation_callback=elicit,
            sampling_callback=sample,
            list_roots_callback=roots,
            logging_callback=logged,
            log_level="info",
            message_handler=heard,
            extensions=[
                advertise(UI, {"mimeTypes": [PAGE_TYPE]}),
                Tasks(),
                advertise(skills.EXTENSION),
            ],
            cache=None,
            read_timeout_seconds=WAIT_S,
        )
        async with client:
            seen = Seen(client, era)
            yield seen


def text_of(result: types.CallToolResult) -> str:
    return "".join(block.text for block in result.content if isinstance(block, types.TextContent))
