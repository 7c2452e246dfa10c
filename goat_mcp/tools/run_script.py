"""run_script: one script over many tools, of which only what it prints or returns reaches the model (design/0044)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from pydantic import Field

from goat_mcp.calls.script_calls import CallTool, ScriptCalls
from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.names import RUN_SCRIPT
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import Hints, SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import BuiltinTool
from goat_mcp.processes.computing.script_journal import ScriptJournal
from goat_mcp.processes.computing.script_options import CodeOptions
from goat_mcp.processes.computing.script_sandbox import Function, ScriptSandbox

MAX_SCRIPT_CHARS = 50_000


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
    options: CodeOptions

    async def execute(self, input: RunScriptInput, ctx: ToolContext) -> ToolResult:
        restart = ctx.restart if ctx.restart is not None and ctx.restart.call_id == ctx.call_id else None
        journal = _journal(restart.record if restart is not None else "")
        calls = ScriptCalls(self.call, ctx, self.options, journal, may_restart=restart is not None)
        functions: dict[str, Function] = {
            name: partial(calls.make, tool) for name, tool in self.functions_of(ctx).items()
        }
        # Without its own permit: a script that waited for others with one would block them.
        with ctx.while_elsewhere(self.spec):
            outcome = await self.sandbox.run(input.script, functions, journal.began)
        text = "\n".join(part for part in (outcome.printed.rstrip("\n"), outcome.value or "") if part)
        notices = [] if outcome.has_value else ["its last value is not shown; print what you need"]
        text = text or "(the script printed nothing and has no last value)"
        return text_result(text, facts={"calls": calls.made}, notices=notices)


def _journal(record: str) -> ScriptJournal:
    try:
        return ScriptJournal.read(record) if record else ScriptJournal()
    except (ValueError, TypeError):
        raise ToolError(
            ErrorCode.CANCELLED,
            "the script was begun by another version of goat-mcp, and cannot go on here",
            "Look what its calls have done before you run it again.",
        ) from None
