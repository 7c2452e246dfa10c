"""Whether a call may run: it is validated, decided by rules, mode and people, shown to hooks, and recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import anyio.to_thread

from goat_mcp.calls.audit import AuditLog, Decided
from goat_mcp.calls.hooks import HookOutcome, Hooks
from goat_mcp.calls.meta_call import check_only_reads, resolve_call, what_would_run
from goat_mcp.calls.permissions.decide import Decision
from goat_mcp.calls.permissions.mode import Effect
from goat_mcp.calls.permissions.permission import Permission, Preview, no_preview
from goat_mcp.calls.permissions.rule import Call
from goat_mcp.catalog.builtin_contracts import names_of_ours
from goat_mcp.catalog.catalog import Resolver
from goat_mcp.catalog.registry import AnyTool
from goat_mcp.core.arguments import canonical_arguments, copied_json
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import DECLARED_TOOLSETS, ToolSpec
from goat_mcp.core.tool import Access, ChecksInput, PreviewsChanges
from goat_mcp.state.telemetry import Telemetry

_MAX_READMISSIONS = 3
_SHOWN_COMMAND_CHARS = 200


@dataclass(frozen=True)
class Admitted:
    """A call that passed validation, permission and hooks: what was checked is what will run (R-PERM-2)."""

    input: Any
    arguments: Mapping[str, Any]
    access: Access
    reason: str
    context: str


class _Judged:
    """A call during admission, for the record: its input as hooks left it, and their answers."""

    __slots__ = ("arguments", "context", "decided_by", "outcomes", "reason", "through", "wants_person")

    def __init__(self, arguments: Mapping[str, Any], through: ToolSpec | None = None) -> None:
        self.arguments = arguments
        self.through = through
        self.context: list[str] = []
        self.outcomes: list[HookOutcome] = []
        self.wants_person: str | None = None
        self.decided_by = self.reason = ""


@dataclass(frozen=True)
class Admission:
    """The stages before a call runs, over one catalog."""

    catalog: Resolver
    permission: Permission
    hooks: Hooks
    audit: AuditLog
    telemetry: Telemetry

    async def admit(
        self, tool: AnyTool, arguments: Mapping[str, Any], ctx: ToolContext, *, through: ToolSpec | None = None
    ) -> Admitted:
        """Decide about the call and record the decision. `through` is the meta-tool it came through (DEF-3)."""
        judged = _Judged(arguments, through)
        try:
            admitted = await self._judge(tool, judged, ctx)
        except ToolError as refusal:
            # Not the message: it may quote what the call is about, which is not recorded (R-AUDIT-2).
            reason = f"{refusal.code}: {judged.reason}" if judged.reason else str(refusal.code)
            await self._record(tool.spec, judged, ctx, "deny", reason)
            raise
        await self._record(tool.spec, judged, ctx, "allow", admitted.reason)
        return admitted

    async def _record(self, spec: ToolSpec, judged: _Judged, ctx: ToolContext, decision: Decided, rule: str) -> None:
        record = partial(
            self.audit.decision,
            spec.rule_name,
            judged.arguments,
            ctx,
            decision=decision,
            rule=rule,
            by=judged.decided_by,
            hooks=[outcome.record() for outcome in judged.outcomes],
            changes=spec.side_effect not in (SideEffect.NONE, SideEffect.READ_ONLY),
        )
        await self.audit.off_loop(record)

    async def _judge(self, tool: AnyTool, judged: _Judged, ctx: ToolContext) -> Admitted:
        """Validate, decide, run hooks. An input that a hook rewrote goes through all of it again (R-PERM-3)."""
        spec = tool.spec
        seen_before: Mapping[str, Any] | None = None
        for _ in range(_MAX_READMISSIONS):
            input, access, call = await self._validated(tool, judged, ctx)
            preview = partial(tool.preview, input, ctx) if isinstance(tool, PreviewsChanges) else no_preview
            decision = await self._settled(tool, call, judged, ctx, preview)
            # The rewritten input may be, in canonical form, the call that the hooks have seen.
            if call.arguments == seen_before or await self._hooks_leave(spec, judged, call, ctx):
                if judged.wants_person is not None and decision.decided_by != "user":
                    wish = Decision(Effect.ASK, f"a hook asks for it: {judged.wants_person}", by_rule=True)
                    decision = await self._settled(tool, call, judged, ctx, preview, wish)
                seen = hook_arguments(call.arguments, call.asked)
                return Admitted(input, seen, access, decision.reason, "\n".join(judged.context))
            if access.judged_arguments is not None:
                raise _rewritten(spec, judged.arguments)
            seen_before = call.arguments
        raise ToolError(
            ErrorCode.HOOK_DENIED, "the hooks keep rewriting this call's input", "Tell the user: the hooks need a fix."
        )

    async def _settled(
        self,
        tool: AnyTool,
        call: Call,
        judged: _Judged,
        ctx: ToolContext,
        preview: Preview,
        wish: Decision | None = None,
    ) -> Decision:
        """The decision of rules and mode (or the `wish` of a hook); if it asks, the person's. Raises `ToolError`."""
        decision = wish or await self._decision(call, judged.through, ctx)
        judged.decided_by, judged.reason = ("rule" if decision.by_rule else "mode"), decision.reason
        try:
            decision = await self.permission.settle(decision, call, ctx, preview)
        except ToolError as refused:
            if decision.effect is Effect.ASK:
                judged.decided_by = "user" if refused.interrupts else "nobody"
            raise
        judged.decided_by = decision.decided_by or judged.decided_by
        if decision.decided_by == "user":
            self._check_unchanged(tool, ctx)
            # Nor does the answer lift a rule that came while the person was asked.
            now = await self._decision(call, judged.through, ctx)
            if now.effect is Effect.DENY:
                judged.decided_by, judged.reason = ("rule" if now.by_rule else "mode"), now.reason
                await self.permission.settle(now, call, ctx)
        return decision

    async def _decision(self, call: Call, through: ToolSpec | None, ctx: ToolContext) -> Decision:
        """`_decided`; in a thread if it may look at all files below a directory, so that other calls go on."""
        if self.permission.looks_at_files(call, ctx):
            return await anyio.to_thread.run_sync(self._decided, call, through, ctx)
        return self._decided(call, through, ctx)

    def _decided(self, call: Call, through: ToolSpec | None, ctx: ToolContext) -> Decision:
        """What rules and mode say. Rules about the meta-tool it came through may only make it stricter."""
        decision = self.permission.decide(call, ctx)
        if through is None:
            return decision
        check_only_reads(through, call.spec, decision)
        about_through = self.permission.decide(Call(through), ctx)
        return about_through if about_through.is_rule_against(decision) else decision

    async def _validated(self, tool: AnyTool, judged: _Judged, ctx: ToolContext) -> tuple[Any, Access, Call]:
        """The validated input, what it touches, and the call as rules see it. Raises `ToolError`."""
        # A copy: what is checked is what will run, even if somebody else changes the arguments (R-PERM-2).
        arguments = copied_json(judged.arguments)
        input = tool.validate(arguments)
        if isinstance(tool, ChecksInput):
            input = await tool.checked(input)
        access, call = self._call(tool, input, arguments, judged, ctx)
        return input, access, call

    def _call(
        self, tool: AnyTool, input: Any, arguments: Mapping[str, Any], judged: _Judged, ctx: ToolContext
    ) -> tuple[Access, Call]:
        """What it touches, and the call as rules see it."""
        access = tool.access(input)
        judged.arguments = access.judged_arguments or canonical_arguments(input, arguments)
        spec = tool.spec if access.risk is None else replace(tool.spec, risk=access.risk)
        roots = self.permission.root_texts()
        if ctx.rights.writes_below:
            roots = (*roots, ctx.rights.writes_below)  # an agent's worktree: `Edit(src/**)` is about its copy as well
        workdir = str(judged.arguments.get("workdir") or judged.arguments.get("cwd") or "")
        directory = self.permission.shell_directory(ctx, workdir) if spec.rule_name == "Bash" else ""
        paths = (access.asked, access.reads, access.writes)
        definition = partial(what_would_run, tool, access)
        call = Call(spec, judged.arguments, *paths, roots, directory, access.runs, definition)
        return access, call

    def decide(self, name: str, arguments: Mapping[str, Any], ctx: ToolContext) -> tuple[Call, Decision]:
        """What would be decided about a call. Nothing runs and nobody is asked. Raises `ToolError`."""
        target = resolve_call(self.catalog.of(ctx.rights), name, arguments)
        arguments = copied_json(target.arguments)
        input = target.tool.validate(arguments)
        _, call = self._call(target.tool, input, arguments, _Judged(arguments), ctx)
        return call, self._decided(call, target.through, ctx)

    async def _hooks_leave(self, spec: ToolSpec, judged: _Judged, call: Call, ctx: ToolContext) -> bool:
        """Whether the hooks let the call pass unchanged. If not, `judged` has their changes."""
        if not self.hooks:
            return True
        seen = hook_arguments(call.arguments, call.asked)
        verdict = await self.hooks.pre_tool_use(spec, copied_json(seen), ctx)
        judged.outcomes += verdict.outcomes
        if verdict.problem is not None:
            self.telemetry.unexpected(ctx.call_id, f"{spec.rule_name} (a hook before it)", verdict.problem)
        if verdict.deny is not None:
            raise ToolError(ErrorCode.HOOK_DENIED, verdict.deny, "Choose another way.", interrupts=verdict.interrupt)
        if judged.wants_person is None:
            judged.wants_person = verdict.ask
        if verdict.context and verdict.context not in judged.context:  # the same hook ran for its own rewrite
            judged.context.append(verdict.context)
        if verdict.arguments is None or verdict.arguments in (seen, call.arguments):
            return True
        judged.arguments = verdict.arguments
        return False

    def _check_unchanged(self, tool: AnyTool, ctx: ToolContext) -> None:
        """The tool may have changed while a person was asked: their answer was about the old one (R-PERM-4)."""
        if tool.spec.rule_name in names_of_ours():
            return  # ours never change, and may be called by a name that this client's catalog has instead
        now = self.catalog.of(ctx.rights).resolve(tool.spec.name)
        if now is not tool and now.spec != tool.spec:
            how = "in its manifest" if tool.spec.toolset in DECLARED_TOOLSETS else "by its server"
            raise ToolError(
                ErrorCode.PERMISSION,
                f"{tool.spec.rule_name} was changed {how} while the user was asked",
                "Call it again: the user decides about the tool as it is now.",
                facts={"tool": tool.spec.rule_name},
            )


def _rewritten(spec: ToolSpec, arguments: Mapping[str, Any]) -> ToolError:
    """Hooks see arguments that were derived from the real ones, and there is no way back."""
    command = cut_middle(str(arguments.get("command", "")), _SHOWN_COMMAND_CHARS)
    return ToolError(
        ErrorCode.HOOK_DENIED,
        f"a hook rewrote what {spec.name} was to run, to `{command}`",
        f"{spec.name} cannot run that; use {spec.rule_name}.",
    )


_PATHS = ("file_path", "notebook_path")


def hook_arguments(arguments: Mapping[str, Any], asked: Sequence[str]) -> Mapping[str, Any]:
    """`asked` are the paths the call names, as the tool understands them."""
    if len(asked) != 1:
        return arguments
    return {name: asked[0] if name in _PATHS else value for name, value in arguments.items()}
