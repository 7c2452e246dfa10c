"""The hooks that are programs: which run for a call, in which order, how they run, and what follows from their answers.

One runs after the other, as configured: ours first, then those of imported files. The first denial ends it (R-HOOK-3).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, cast

import anyio

from goat_mcp.calls.hooks.answer import BLOCKS, HookAnswer, HookRun, read_answer
from goat_mcp.calls.hooks.command import HookCommand, RuleMatch
from goat_mcp.calls.hooks.settings import HookEvent
from goat_mcp.calls.hooks.stages import HookOutcome, PostToolUse, PreToolUse, merged, verdict_word
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult, text_block
from goat_mcp.core.spec import ToolSpec
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.environment import CommandEnvironment
from goat_mcp.processes.program import run_program

SUPPRESSED = "[output suppressed by a hook]"


def tool_response(spec: ToolSpec, arguments: Mapping[str, Any], result: ToolResult) -> dict[str, Any]:
    """`tool_response` of PostToolUse: `content` and `structuredContent`; facts of our own tools under `facts`."""
    response: dict[str, Any] = {"content": list(result.content), "isError": result.is_error}
    if result.structured is not None:
        response["structuredContent"] = result.structured
    if result.facts is not None:
        response["facts"] = dict(result.facts)
    if spec.rule_name == "Bash":
        response |= {"stdout": result.text, "stderr": "", "interrupted": False, "isImage": False}
    elif "file_path" in arguments:
        response |= {"filePath": arguments["file_path"], "success": not result.is_error}
    return response


def with_output(result: ToolResult, output: Any) -> ToolResult | None:
    """The result with what a hook gave in place of its output; None where that is no output.

    Text, a list of content blocks, an MCP result or Bash's `stdout` and `stderr`. What else the result said goes too:
    a hook that takes a secret out of the text has not left it in the facts.
    """
    if isinstance(output, str):
        return _only(result, (text_block(output),))
    if isinstance(output, list):
        blocks = cast("list[Any]", output)
        return _only(result, tuple(blocks)) if all(map(_is_block, blocks)) else None
    if not isinstance(output, dict):
        return None
    members = cast("dict[str, Any]", output)
    if "content" in members:
        replaced = with_output(result, members["content"])
        return replaced and replace(replaced, structured=members.get("structuredContent"))
    streams = [members.get(name, "") for name in ("stdout", "stderr")]
    if ("stdout" in members or "stderr" in members) and all(isinstance(text, str) for text in streams):
        return _only(result, (text_block("\n".join(text for text in streams if text)),))
    return None


def with_text(result: ToolResult, text: str) -> ToolResult:
    """The result with something said beside it."""
    return replace(result, content=(*result.content, text_block(text)))


def _only(result: ToolResult, content: tuple[dict[str, Any], ...]) -> ToolResult:
    return ToolResult(
        content=content,
        is_error=result.is_error,
        error_code=result.error_code,
        task_id=result.task_id,
        upstream_task=result.upstream_task,
    )


def _is_block(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    block = cast("dict[str, Any]", value)
    kind = block.get("type")
    return isinstance(kind, str) and (kind != "text" or isinstance(block.get("text"), str))


MAX_OUTPUT_BYTES = 1024 * 1024
_PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR")
_PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"


async def hook_environment(environment: CommandEnvironment, names: Collection[str] = ()) -> dict[str, str]:
    """The minimal environment of a user's program that is no command (R-HOOK-1). `names` are variables of ours that it
    gets too."""
    all_of_it = await environment.build()
    return {name: value for name, value in all_of_it.items() if name in _PASSED_ON or name.startswith("LC_")} | {
        name: os.environ[name] for name in names if name in os.environ
    }


@dataclass(frozen=True)
class HookRunner:
    """`project` is the folder programs run in: the workspace's first directory, None if there is none."""

    environment: CommandEnvironment
    guard: ProcessGuard
    project: Callable[[], Path | None]

    async def run(self, hook: HookCommand, data: Mapping[str, Any], *, timeout_s: float | None = None) -> HookRun:
        """Run it to its end. It leads a process group of its own, and what it started ends with it."""
        output = bytearray()
        limit_s = hook.timeout_s if timeout_s is None else min(timeout_s, hook.timeout_s)

        def keep(piece: bytes) -> None:
            output.extend(piece[: MAX_OUTPUT_BYTES + 1 - len(output)])
            if len(output) > MAX_OUTPUT_BYTES and not hook.is_imported:
                too_big.cancel()

        end = None
        try:
            with anyio.CancelScope() as too_big:
                end = await run_program(
                    self._words(hook),
                    data=json.dumps(data, ensure_ascii=True, default=str).encode() + b"\n",
                    directory=self._directory(),
                    environment=await self._environment(hook),
                    guard=self.guard,
                    on_output=keep,
                    timeout_s=limit_s,
                )
        except (OSError, ValueError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else str(problem)
            return HookRun(failure=f"{hook.argv[0]} cannot be run: {reason}")
        if end is not None and end.timed_out:
            return HookRun(failure=f"it took longer than {limit_s:g} s and was ended")
        if len(output) > MAX_OUTPUT_BYTES or end is None:
            if end is not None and end.exit_code == BLOCKS:
                # An imported hook refuses with its exit code, whatever it prints (R-HOOK-2).
                return HookRun(end.exit_code, "", end.stderr_tail)
            return HookRun(failure=f"its output is longer than {MAX_OUTPUT_BYTES} bytes")
        text = output.decode("utf-8", "replace")
        return HookRun(end.exit_code, text, end.stderr_tail)

    def _directory(self) -> Path:
        project = self.project()
        return project if project is not None else Path("/")

    def _words(self, hook: HookCommand) -> tuple[str, ...]:
        if not hook.is_imported or hook.in_shell:
            return hook.argv
        # As Claude Code does it. A shell reads the variable itself, and nothing is put into what it parses.
        return tuple(word.replace(f"${{{_PROJECT_VARIABLE}}}", str(self._directory())) for word in hook.argv)

    async def _environment(self, hook: HookCommand) -> dict[str, str]:
        chosen = await hook_environment(self.environment, hook.env)
        if hook.is_imported:
            chosen[_PROJECT_VARIABLE] = str(self._directory())
        return chosen


_AGENT_SESSION = "agent:"


class SessionFacts(Protocol):
    """What hooks are told of the session a call belongs to."""

    def directory(self, session_key: str) -> str: ...

    def mode(self, session_key: str) -> str: ...


class WarningLog(Protocol):
    """One line in the log."""

    def __call__(self, event: str, **fields: Any) -> None: ...


@dataclass(frozen=True)
class Programs:
    """Implements `stages.HookPrograms`."""

    hooks: tuple[HookCommand, ...]
    runner: HookRunner
    facts: SessionFacts
    matches_rule: RuleMatch
    warn: WarningLog

    async def before(self, spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> PreToolUse:
        so_far = PreToolUse()
        now = arguments
        ran: set[tuple[str, ...]] = set()
        for hook in self.of("PreToolUse", spec.rule_name):
            if not self._runs(hook, spec, now, ran):
                continue
            data = {**self.common(hook.event, ctx), **_tool_members(spec, now, ctx)}
            started_s = time.monotonic()
            answer = await self.ask(hook, data)
            verdict = _verdict(hook, answer)
            ms = round((time.monotonic() - started_s) * 1000, 3)
            outcome = HookOutcome(hook.location, _outcome_text(answer, verdict), ms)
            if hook.observes:
                outcome, verdict = replace(outcome, result=f"observed: {outcome.result}"), PreToolUse()
            so_far = merged(so_far, replace(verdict, outcomes=(outcome,)))
            if so_far.deny is not None:
                return so_far
            now = so_far.arguments if so_far.arguments is not None else arguments
        return so_far

    async def after(
        self, spec: ToolSpec, arguments: Mapping[str, Any], result: ToolResult, ctx: ToolContext
    ) -> PostToolUse:
        left = PostToolUse(result)
        event: HookEvent = "PostToolUseFailure" if result.is_error else "PostToolUse"
        ran: set[tuple[str, ...]] = set()
        for hook in self.of(event, spec.rule_name):
            if not self._runs(hook, spec, arguments, ran):
                continue
            data = {**self.common(event, ctx), **_tool_members(spec, arguments, ctx)}
            if result.is_error:
                data |= {"error": left.result.text, "is_interrupt": False}
            else:
                data["tool_response"] = tool_response(spec, arguments, left.result)
            answer = await self.ask(hook, data)
            if not hook.observes:
                left = self._after_answer(hook, answer, left)
        return left

    async def ask(self, hook: HookCommand, data: Mapping[str, Any], *, timeout_s: float | None = None) -> HookAnswer:
        """Run one hook. A failure is logged, whatever else follows from it."""
        run = await self.runner.run(hook, data, timeout_s=timeout_s)
        answer = read_answer(hook.event, run, strict=hook.strict)
        if answer.failure:
            self.warn("hook failed", hook=hook.location, hook_event=hook.event, problem=answer.failure)
        elif hook.observes and (answer.block or answer.ask or answer.stop):
            self.warn("an observing hook objects", hook=hook.location, reason=answer.block or answer.ask or answer.stop)
        return answer

    def common(self, event: HookEvent, ctx: ToolContext) -> dict[str, Any]:
        """What every event says. There is no transcript: we do not see the conversation."""
        told: dict[str, Any] = {
            "session_id": ctx.client_session,
            "transcript_path": "",
            "cwd": self.facts.directory(ctx.session_key),
            "permission_mode": self.facts.mode(ctx.client_session),
            "hook_event_name": event,
        }
        if ctx.session_key.startswith(_AGENT_SESSION):
            told["agent_id"] = ctx.session_key.removeprefix(_AGENT_SESSION)
        return told

    def of(self, event: HookEvent, subject: str) -> Iterator[HookCommand]:
        """The hooks of an event whose matcher means `subject`, in order."""
        yield from (hook for hook in self.hooks if hook.event == event and hook.matcher.matches(subject))

    def _runs(self, hook: HookCommand, spec: ToolSpec, arguments: Mapping[str, Any], ran: set[tuple[str, ...]]) -> bool:
        """Whether a hook is about this call. One that several imported files name runs once; `ran` is kept for that."""
        if hook.condition and not self._holds(hook.condition, spec, arguments):
            return False
        if not hook.is_imported:
            return True
        is_new = hook.argv not in ran
        ran.add(hook.argv)
        return is_new

    def _holds(self, condition: str, spec: ToolSpec, arguments: Mapping[str, Any]) -> bool:
        try:
            return self.matches_rule(condition, spec, arguments)
        except Exception as problem:  # whatever it was: the hook runs rather than not
            self.warn("a hook's condition failed", condition=condition, problem=str(problem))
            return True

    def _after_answer(self, hook: HookCommand, answer: HookAnswer, left: PostToolUse) -> PostToolUse:
        result = left.result
        if answer.failure:
            if hook.strict:
                result = with_text(result, f"[hook {hook.location} failed; the call had run: {answer.failure}]")
            return replace(left, result=result)
        if answer.output is not None:
            replaced = with_output(result, answer.output)
            if replaced is None:
                self.warn(
                    "hook output cannot be used", hook=hook.location, problem="updatedToolOutput is no tool output"
                )
            # Who wanted something taken out must not find it left in; Claude Code keeps the original here.
            result = replaced or (with_output(result, SUPPRESSED) if hook.strict else None) or result
        elif answer.suppress and hook.strict and not result.is_error:
            result = with_output(result, SUPPRESSED) or result
        for text in (answer.block, answer.context, _to_user(hook, answer), answer.stop and _stopped(answer.stop)):
            if text:
                result = with_text(result, text)
        return replace(left, result=result, stop=left.stop if left.stop is not None else answer.stop)


def _verdict(hook: HookCommand, answer: HookAnswer) -> PreToolUse:
    if answer.failure:
        if hook.refuses_on_failure:
            return PreToolUse(deny=f"hook {hook.location} has to judge this call and failed: {answer.failure}")
        return PreToolUse()
    if answer.stop is not None:
        return PreToolUse(deny=_stopped(answer.stop), interrupt=True)
    return PreToolUse(
        deny=answer.block,
        ask=answer.ask,
        arguments=answer.arguments,
        context="\n".join(text for text in (answer.context, _to_user(hook, answer)) if text),
    )


def _outcome_text(answer: HookAnswer, verdict: PreToolUse) -> str:
    return f"failed: {answer.failure[:200]}" if answer.failure else verdict_word(verdict)


def _to_user(hook: HookCommand, answer: HookAnswer) -> str:
    return f"[hook {hook.location}, for the user: {answer.message}]" if answer.message else ""


def _stopped(reason: str) -> str:
    return f"a hook stopped the work: {reason}. Begin nothing else and tell the user."


def _tool_members(spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> dict[str, Any]:
    members = {"tool_name": spec.rule_name, "tool_input": dict(arguments), "tool_use_id": ctx.call_id}
    return {**members, "model_call_id": ctx.model_call_id} if ctx.model_call_id else members
