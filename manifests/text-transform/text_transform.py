"""`text-transform__transform`: operations on a text, done in a process that is ended when they take too long."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio.to_thread

from goat_mcp.core.coercion import input_error
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.manifests.handler_api import Handler, HandlerContext, Host
from goat_mcp.processes.computing.worker_main import MAX_BYTES
from goat_mcp.processes.computing.worker_process import Computation


def build_handlers(host: Host) -> Mapping[str, Handler]:
    return {"transform": Transform(Computation(host.guard, host.computing, "goat_mcp.processes.computing.text_work"))}


@dataclass(frozen=True)
class Transform:
    computation: Computation

    async def __call__(self, ctx: HandlerContext, input: Mapping[str, Any]) -> Any:
        text = input["text"].encode()
        if len(text) > MAX_BYTES:
            raise ToolError(
                ErrorCode.TOO_LARGE,
                f"text has {len(text):,} bytes, and {MAX_BYTES:,} are the most",
                "Send the part that matters.",
            )
        head = {"operations": input["operations"]}
        answer = await self.computation.answer(head, text, ctx.call, what="the transformation")
        if "problems" in answer.head:
            raise input_error([(where, what) for where, what in answer.head["problems"]])
        return await anyio.to_thread.run_sync(partial(json.loads, answer.body))
