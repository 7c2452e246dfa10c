"""Calls of tools that the owner tries from the page: through the pipeline and its rules, as any client's call."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError, cut_middle
from goat_mcp.core.result import ToolResult, error_result
from goat_mcp.core.version import __version__
from goat_mcp.gateway.gateway import Gateway

CLIENT = "goat-mcp page"
SESSION = "page"
MAX_TRIALS = 20
MAX_SHOWN_CHARS = 30_000
AT_ONCE_S = 1.0
"""So long the page waits for a result; a call that takes longer is shown as running."""


@dataclass
class Trial:
    """One call. `call_id` is that of the record of calls and of the queue."""

    tool: str
    form: Mapping[str, str]
    call_id: str = field(default_factory=lambda: secrets.token_hex(8))
    began_s: float = field(default_factory=time.time)
    ended_s: float = 0.0
    result: ToolResult | None = None
    done: anyio.Event = field(default_factory=anyio.Event)

    @property
    def text(self) -> str:
        """The result as a person reads it, bounded."""
        return "" if self.result is None else cut_middle(_text(self.result), MAX_SHOWN_CHARS)


class Trials:
    """The last ones. They end with the process."""

    def __init__(self) -> None:
        self._trials: OrderedDict[str, Trial] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, gateway: Gateway, tool: str, arguments: Mapping[str, Any], form: Mapping[str, str]) -> Trial:
        """Begin the call, and give it a moment to end."""
        trial = Trial(tool, form)
        self._trials[trial.call_id] = trial
        while len(self._trials) > MAX_TRIALS:
            self._trials.popitem(last=False)
        # The call goes on when the browser does not wait for it; the gateway ends what it started.
        task = asyncio.create_task(_run(gateway, trial, arguments))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with anyio.move_on_after(AT_ONCE_S):
            await trial.done.wait()
        return trial

    def find(self, call_id: str) -> Trial | None:
        return self._trials.get(call_id)


async def _run(gateway: Gateway, trial: Trial, arguments: Mapping[str, Any]) -> None:
    ctx = ToolContext(call_id=trial.call_id, session_key=SESSION, client_name=f"{CLIENT} {__version__}")
    try:
        trial.result = await gateway.call(trial.tool, arguments, ctx)
    except UpstreamError as refused:
        failure = ToolError(ErrorCode.UPSTREAM, f"{refused.message} (JSON-RPC {refused.code})")
        trial.result = error_result(failure)
    finally:
        if trial.result is None:
            trial.result = error_result(
                ToolError(ErrorCode.CANCELLED, "the page was closed while it ran", "Try again.")
            )
        trial.ended_s = time.time()
        trial.done.set()


def _text(result: ToolResult) -> str:
    parts = [_block(block) for block in result.content]
    if not parts and result.structured is not None:
        parts = [json.dumps(result.structured, indent=2, ensure_ascii=False)]
    return "\n".join(parts)


def _block(block: Mapping[str, Any]) -> str:
    if block.get("type") == "text":
        return str(block.get("text", ""))
    data = block.get("data")
    size = f", {len(data)} characters of base64" if isinstance(data, str) else ""
    kind = " ".join(str(block[name]) for name in ("type", "mimeType", "uri") if name in block)
    return f"[{kind}{size}]"
