"""run_script: one script over many tools, of which only what it prints or returns reaches the model (design/0044)."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from pydantic import Field

from goat_mcp.calls.permissions.approval import DECISION, DENY
from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.context import ToolContext, no_progress, nothing_afterwards
from goat_mcp.core.elicitation import Answer, Form, Reply
from goat_mcp.core.errors import ErrorCode
from goat_mcp.core.names import RUN_SCRIPT
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import Hints, SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import BuiltinTool
from goat_mcp.processes.computing.script_sandbox import CallFailed, Function, ScriptSandbox

MAX_SCRIPT_CHARS = 50_000
RESULT_CHARS = 1_000_000
"""Of one tool's result inside a script (`output.max_chars` is for what a model reads)."""
AT_A_TIME = 8
"""Calls of one script that run side by side. More of them wait: the limiter would refuse a flood."""

_PENDING = "\nBegin the new script with this call: what ran before it has been done."

CallTool = Callable[[str, Mapping[str, Any], ToolContext], Awaitable[tuple[ToolResult, bool]]]
"""One call through the pipeline: its result, and whether whoever refused it wants nothing else started."""


class RunScriptInput(ToolInput):
    aliases: ClassVar[Mapping[str, str]] = {"code": "script", "source": "script", "python": "script"}
    text_fields: ClassVar[frozenset[str]] = frozenset({"script"})

    script: str = Field(min_length=1, max_length=MAX_SCRIPT_CHARS)


@dataclass(frozen=True)
class RunScript(
    BuiltinTool[RunScriptInput],
    side_effect=SideEffect.NONE,
    toolset="code",
    name=RUN_SCRIPT,
    title="Run a script over tools",
    hints=Hints(read_only=False, destructive=True, idempotent=False, open_world=True),
):
    """Run Python that calls tools; only what it prints and its last expression's value come back to you.

    Each tool is an async function: `await Read(file_path="/x")`; several at once with asyncio.gather. In a name, `_`
    stands for what Python does not allow. A function returns the tool's data (dict, list or text) and raises
    RuntimeError if the call fails. Use it to chain calls, and to filter or count long results. No files, network,
    classes' magic or packages beside json, re, math, datetime and asyncio. Each call is judged as one of your own.
    """

    examples = (
        ToolExample(
            "Count, in place of reading it all",
            {"script": 'text = await Read(file_path="/home/me/project/src/main.py")\ntext.count("line_")'},
        ),
        ToolExample(
            "Several at once",
            {
                "script": "import asyncio\n"
                'found = await asyncio.gather(*[Glob(pattern=one) for one in ["*.py", "src/*.ts"]])\n'
                "[len(one.splitlines()) for one in found]"
            },
        ),
    )

    sandbox: ScriptSandbox
    functions_of: Callable[[ToolContext], Mapping[str, str]]
    call: CallTool
    max_calls: int

    async def execute(self, input: RunScriptInput, ctx: ToolContext) -> ToolResult:
        calls = _Calls(self.call, ctx, self.max_calls)
        functions: dict[str, Function] = {
            name: partial(calls.make, tool) for name, tool in self.functions_of(ctx).items()
        }
        # Without its own permit: a script that waited for others with one would block them.
        with ctx.while_elsewhere(self.spec):
            outcome = await self.sandbox.run(input.script, functions)
        text = "\n".join(part for part in (outcome.printed.rstrip("\n"), outcome.value or "") if part)
        notices = [] if outcome.has_value else ["its last value is not shown; print what you need"]
        text = text or "(the script printed nothing and has no last value)"
        return text_result(text, facts={"calls": calls.made}, notices=notices)


class _Calls:
    """The calls that one script makes, as calls of whoever runs it."""

    def __init__(self, call: CallTool, ctx: ToolContext, max_calls: int) -> None:
        self._call = call
        self._ctx = ctx
        self._max_calls = max_calls
        self._slots = asyncio.Semaphore(AT_A_TIME)
        self._asking = asyncio.Lock()
        self._is_stopped = False
        """Whether somebody has refused a call: no other one starts, and nobody is asked about those that wait."""
        self.made = 0

    async def make(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """The data of its result. Raises `CallFailed`, with the error's code first."""
        if self.made >= self._max_calls:
            raise CallFailed(f"{ErrorCode.TOO_LARGE}: a script makes {self._max_calls} calls at most (code.max_calls)")
        self.made += 1
        async with self._slots:
            if self._is_stopped:
                raise CallFailed(f"{ErrorCode.CANCELLED}: not run: a call before it was refused, and all that follows")
            result, stops = await self._call(tool, arguments, self._inner())
        self._is_stopped = self._is_stopped or stops  # one that ran beside it changes nothing of that
        if result.is_error:
            more = _PENDING if result.error_code == ErrorCode.APPROVAL_PENDING else ""
            raise CallFailed(f"{result.error_code or ErrorCode.TOOL}: {_message(result)}{more}")
        return _data(result)

    def _inner(self) -> ToolContext:
        ctx = self._ctx
        return ctx.changed(
            call_id=secrets.token_hex(8),
            progress=no_progress,
            wants_progress=False,
            ask=self._ask,
            # The host has seen the script and not this call, as with an agent's: it cannot have asked about it.
            rights=ctx.rights.in_a_script(),
            overrides={**ctx.overrides, "output.max_chars": RESULT_CHARS},
            started_at_s=time.monotonic(),
            do_afterwards=nothing_afterwards,
        )

    async def _ask(self, form: Form) -> Answer:
        async with self._asking:  # a person reads one form at a time
            if self._is_stopped:
                return Answer(Reply.CANCELLED)
            # Calls before it may have changed something: the script must not be started again with the answer.
            message = f"For a script: {form.message}"
            answer = await self._ctx.ask(replace(form, message=message, opens_call=False))
            if any(question.name == DECISION for question in form.questions):
                refused = answer.reply in (Reply.DECLINED, Reply.CANCELLED) or answer.text(DECISION) == DENY
                self._is_stopped = self._is_stopped or refused
            return answer


def _data(result: ToolResult) -> Any:
    structured = result.wire().get("structuredContent")
    if structured is not None:
        return structured
    text = result.text
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def _message(result: ToolResult) -> str:
    return result.text.removesuffix(f"\n[{result.error_code}]")
