"""`json-query__query`: JMESPath over JSON. The query runs in a process that is ended when it takes too long."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio.to_thread

from goat_mcp.core.coercion import input_error
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult, text_block
from goat_mcp.manifests.handler_api import Handler, HandlerContext, Host
from goat_mcp.processes.computing.worker_main import MAX_BYTES
from goat_mcp.processes.computing.worker_process import Computation


def build_handlers(host: Host) -> Mapping[str, Handler]:
    return {
        "query": Query(
            Computation(host.guard, host.computing, "goat_mcp.processes.computing.json_query", ("jmespath",))
        )
    }


@dataclass(frozen=True)
class Query:
    computation: Computation

    async def __call__(self, ctx: HandlerContext, input: Mapping[str, Any]) -> ToolResult:
        document = await anyio.to_thread.run_sync(partial(_as_text, input["data"]))
        head = {"query": input["query"], "pretty": input.get("pretty", False)}
        answer = await self.computation.answer(head, document, ctx.call, what="the query")
        if "problem" in answer.head:
            raise input_error([(answer.head["place"], answer.head["problem"])])
        text, value = await anyio.to_thread.run_sync(partial(_read, answer.body))
        return ToolResult(content=(text_block(text),), structured={"result": value})


def _as_text(data: Any) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    document = text.encode("utf-8", "surrogatepass")
    if len(document) > MAX_BYTES:
        raise ToolError(
            ErrorCode.TOO_LARGE,
            f"data has {len(document):,} bytes, and {MAX_BYTES:,} are the most",
            "Send the part that matters.",
        )
    return document


def _read(body: bytes) -> tuple[str, Any]:
    text = body.decode()
    return text, json.loads(text)
