"""A 2026-07-28 client of tests that knows tasks, or does not: JSON-RPC as it travels, over memory."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage

from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import Adapter
from goat_mcp.server.caller_identity import TASKS_EXTENSION, Transport

WAIT_S = 30
DECLARED: Mapping[str, Any] = {"elicitation": {}, "extensions": {TASKS_EXTENSION: {}}}


class Refused(Exception):
    """A JSON-RPC error."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")


class TaskClient:
    """`capabilities` are what each request declares."""

    def __init__(self, streams: Any, capabilities: Mapping[str, Any]) -> None:
        self.capabilities = capabilities
        self.notices: list[dict[str, Any]] = []
        self.heard = anyio.Event()
        self._read, self._write = streams
        self._ids = itertools.count(1)
        self._answers: dict[int, dict[str, Any]] = {}
        self._waiting: dict[int, anyio.Event] = {}

    async def read(self) -> None:
        async for item in self._read:
            message = item.message.model_dump(by_alias=True, mode="json", exclude_none=True)
            if "method" in message:
                self.notices.append(message)
                heard, self.heard = self.heard, anyio.Event()
                heard.set()
            elif message.get("id") in self._waiting:
                self._answers[message["id"]] = message
                self._waiting[message["id"]].set()

    async def send(self, method: str, params: Mapping[str, Any], **members: Any) -> int:
        """Send a request. Returns its id."""
        number = next(self._ids)
        self._waiting[number] = anyio.Event()
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": dict(members.get("capabilities", self.capabilities)),
        }
        request = types.JSONRPCRequest(jsonrpc="2.0", id=number, method=method, params={**params, "_meta": meta})
        await self._write.send(SessionMessage(request))
        return number

    async def answer_to(self, number: int) -> dict[str, Any]:
        """Raises `Refused`."""
        with anyio.fail_after(WAIT_S):
            await self._waiting[number].wait()
        answer = self._answers[number]
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]

    async def request(self, method: str, params: Mapping[str, Any], **members: Any) -> dict[str, Any]:
        return await self.answer_to(await self.send(method, params, **members))

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None, **members: Any) -> dict[str, Any]:
        return await self.request("tools/call", {"name": name, "arguments": arguments or {}}, **members)

    async def get(self, task_id: str, **members: Any) -> dict[str, Any]:
        return await self.request("tasks/get", {"taskId": task_id}, **members)

    async def update(self, task_id: str, answers: Mapping[str, Any]) -> dict[str, Any]:
        return await self.request("tasks/update", {"taskId": task_id, "inputResponses": answers})

    async def cancel(self, task_id: str, **members: Any) -> dict[str, Any]:
        return await self.request("tasks/cancel", {"taskId": task_id}, **members)

    async def until(self, task_id: str, *statuses: str) -> dict[str, Any]:
        """The task in one of these states, by default one that is its last."""
        wanted = statuses or ("completed", "failed", "cancelled")
        with anyio.fail_after(WAIT_S):
            while True:
                if (state := await self.get(task_id))["status"] in wanted:
                    return state
                await anyio.sleep(0.02)

    async def notice(self, number: int) -> dict[str, Any]:
        """The notification that came as this one, from 0."""
        with anyio.fail_after(WAIT_S):
            while len(self.notices) <= number:
                await self.heard.wait()
        return self.notices[number]


@asynccontextmanager
async def task_client(
    gateway: Gateway, capabilities: Mapping[str, Any] = DECLARED, transport: Transport = "stdio"
) -> AsyncGenerator[TaskClient]:
    """A client of a gateway that runs meanwhile."""
    async with running(gateway, transport) as adapter, connected(adapter, capabilities) as client:
        yield client


@asynccontextmanager
async def running(gateway: Gateway, transport: Transport = "stdio") -> AsyncGenerator[Adapter]:
    adapter = Adapter(gateway, transport)
    async with gateway.running(), anyio.create_task_group() as group:
        await group.start(adapter.run)
        yield adapter
        group.cancel_scope.cancel()


@asynccontextmanager
async def connected(adapter: Adapter, capabilities: Mapping[str, Any] = DECLARED) -> AsyncGenerator[TaskClient]:
    """One connection; a client may have several, one after the other."""
    async with create_client_server_memory_streams() as (mine, theirs), anyio.create_task_group() as group:
        client = TaskClient(mine, capabilities)
        group.start_soon(client.read)
        group.start_soon(adapter.server.run, *theirs, adapter.server.create_initialization_options())
        yield client
        group.cancel_scope.cancel()
