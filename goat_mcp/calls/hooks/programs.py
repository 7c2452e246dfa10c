"""The hooks of a gateway that are programs: which run for a call, in which order, and what follows from their answers.

One after the other, as configured: ours first, then those of imported files. The first denial ends it (R-HOOK-3).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from goat_mcp.calls.hooks.answer import HookAnswer, read_answer
from goat_mcp.calls.hooks.command import HookCommand, RuleMatch
from goat_mcp.calls.hooks.options import HookEvent
from goat_mcp.calls.hooks.running import HookRunner
from goat_mcp.calls.hooks.stages import HookOutcome, PostToolUse, PreToolUse, merged, said_by
from goat_mcp.calls.hooks.tool_output import SUPPRESSED, tool_response, with_output, with_text
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.core.spec import ToolSpec

_AGENT_SESSION = "agent:"


class SessionFacts(Protocol):
    """What hooks are told of the session a call belongs to."""

    def directory(self, session_key: str) -> str: ...

    def mode(self, session_key: str) -> str: ...


class Warn(Protocol):
    """One line in the log."""

    def __call__(self, event: str, **fields: Any) -> None: ...


@dataclass(frozen=True)
class Programs:
    """Implements `stages.HookPrograms`."""

    hooks: tuple[HookCommand, ...]
    runner: HookRunner
    facts: SessionFacts
    matches_rule: RuleMatch
    warn: Warn

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
            outcome = HookOutcome(hook.place, _said(answer, verdict), round((time.monotonic() - started_s) * 1000, 3))
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
            self.warn("hook failed", hook=hook.place, hook_event=hook.event, problem=answer.failure)
        elif hook.observes and (answer.block or answer.ask or answer.stop):
            self.warn("an observing hook objects", hook=hook.place, reason=answer.block or answer.ask or answer.stop)
        return answer

    def common(self, event: HookEvent, ctx: ToolContext) -> dict[str, Any]:
        """What every event says. There is no transcript: we do not see the conversation."""
        session_key = ctx.rights.client_session or ctx.session_key
        told: dict[str, Any] = {
            "session_id": session_key,
            "transcript_path": "",
            "cwd": self.facts.directory(ctx.session_key),
            "permission_mode": self.facts.mode(session_key),
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
                result = with_text(result, f"[hook {hook.place} failed; the call had run: {answer.failure}]")
            return replace(left, result=result)
        if answer.output is not None:
            replaced = with_output(result, answer.output)
            if replaced is None:
                self.warn("hook output cannot be used", hook=hook.place, problem="updatedToolOutput is no tool output")
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
            return PreToolUse(deny=f"hook {hook.place} has to judge this call and failed: {answer.failure}")
        return PreToolUse()
    if answer.stop is not None:
        return PreToolUse(deny=_stopped(answer.stop), interrupt=True)
    return PreToolUse(
        deny=answer.block,
        ask=answer.ask,
        arguments=answer.arguments,
        context="\n".join(text for text in (answer.context, _to_user(hook, answer)) if text),
    )


def _said(answer: HookAnswer, verdict: PreToolUse) -> str:
    return f"failed: {answer.failure[:200]}" if answer.failure else said_by(verdict)


def _to_user(hook: HookCommand, answer: HookAnswer) -> str:
    return f"[hook {hook.place}, for the user: {answer.message}]" if answer.message else ""


def _stopped(reason: str) -> str:
    return f"a hook stopped the work: {reason}. Begin nothing else and tell the user."


def _tool_members(spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> dict[str, Any]:
    return {"tool_name": spec.rule_name, "tool_input": dict(arguments), "tool_use_id": ctx.call_id}
