"""ExitPlanMode: hand the plan to the user, who approves, edits or rejects it. Modes live in `calls.permissions`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import anyio.to_thread
from pydantic import ConfigDict, Field, field_validator

from goat_mcp.calls.approvals.plan_queue import PlanQueue
from goat_mcp.calls.approvals.plan_request import MAX_PLAN_CHARS
from goat_mcp.calls.approvals.record import Approval, Verdict
from goat_mcp.calls.permissions.plan_approval import PlanApproval, grant_rules
from goat_mcp.core.arguments import InputPart, ToolInput
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form, Option, Question, Reply
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import Hints, SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import BuiltinTool
from goat_mcp.state.plans import Plan, PlanStatus, Presenter

MAX_SHOWN_CHARS = 12_000
_DECISION, _FEEDBACK, _GRANTED, _EDITED = "decision", "feedback", "granted", "plan"
_APPROVE, _EDIT, _REJECT = "approve", "edit", "reject"


class AllowedPrompt(InputPart):
    model_config = ConfigDict(extra="ignore")

    tool: str
    prompt: str = Field(max_length=500)


class ExitPlanModeInput(ToolInput):
    model_config = ConfigDict(extra="ignore")

    plan: str | None = Field(None, description="Markdown; else the newest saved plan")
    allowedPrompts: list[AllowedPrompt] = Field(
        default_factory=list[AllowedPrompt], description="What you will need to run"
    )

    @field_validator("plan")
    @classmethod
    def _not_too_long(cls, plan: str | None) -> str | None:
        if len(plan or "") > MAX_PLAN_CHARS:
            raise ValueError(f"wants at most {MAX_PLAN_CHARS} characters; got {len(plan or '')}")
        return plan


@dataclass(frozen=True)
class ExitPlanMode(
    BuiltinTool[ExitPlanModeInput],
    side_effect=SideEffect.READ_ONLY,
    toolset="state",
    title="Present the plan",
    hints=Hints(read_only=True, destructive=False, idempotent=False, open_world=False),
):
    """Present the finished plan to the user. Only they can approve it; until then nothing may be changed."""

    examples = (
        ToolExample("Present the plan that was saved last", {}),
        ToolExample(
            "Present a plan and say what it will run",
            {
                "plan": "# Rename the module\n1. Move `a.py` to `b.py`\n2. Fix the imports\n3. Run the tests",
                "allowedPrompts": [{"tool": "Bash", "prompt": "run the tests"}],
            },
        ),
    )

    approval: PlanApproval
    queue: PlanQueue

    async def execute(self, input: ExitPlanModeInput, ctx: ToolContext) -> ToolResult:
        presenter = _presenter(ctx)
        if not self.approval.is_planning(ctx.session_key):
            return text_result(
                "This session is not in plan mode; there is nothing to approve. Go on with the work.",
                facts={"plan": input.plan or "", "file_path": None, "approved": False, "plan_was_edited": False},
            )
        text = input.plan or await anyio.to_thread.run_sync(self.approval.newest_text, presenter)
        if not text.strip():
            raise ToolError(
                ErrorCode.INPUT,
                "plan: there is no plan that waits for approval",
                "Write the plan and send it in `plan`.",
            )
        plan = await anyio.to_thread.run_sync(self.approval.submit, presenter, text)
        if plan.status is PlanStatus.APPROVED or self.approval.options.approval == "host":
            return await self._approved(ctx, plan, text, by="with goat-mcp plan approve", edited=None)
        wanted = [prompt for prompt in input.allowedPrompts if grant_rules([prompt.tool])]
        decision = await self._decide(plan, text, wanted, ctx)
        if decision is None:
            return text_result(
                f"Plan saved to {plan.file_path}\nWaiting for the user's approval. They can give it with: "
                f"goat-mcp plan approve {plan.name}, or on the page that goat-mcp ui opens\n"
                "Until then nothing may be changed. Tell the user, and stop.",
                facts=_facts(plan, text, approved=False),
            )
        if decision.approved:
            result = await self._approved(
                ctx, plan, text, by=decision.by, edited=decision.edited, granted=decision.granted
            )
            await self.queue.finish(decision.record)
            return result
        await anyio.to_thread.run_sync(self.approval.reject, presenter, plan, decision.feedback)
        await self.queue.finish(decision.record)
        words = f" They said: {decision.feedback}" if decision.feedback else ""
        return text_result(
            f"The user did not approve the plan.{words}\nThis session still plans: improve it, and present it again.",
            facts=_facts(plan, text, approved=False),
        )

    async def _decide(self, plan: Plan, text: str, wanted: list[AllowedPrompt], ctx: ToolContext) -> _Decided | None:
        """What the person decided, in the form or elsewhere, whichever was first; None if nobody answered."""
        waiting = await self.queue.open(plan, text, ctx)
        if waiting.is_decided:
            return _elsewhere(waiting)
        answer, decided = await self.queue.ask(waiting, _form(text, wanted), ctx)
        edited = None
        if decided is None and answer is not None and answer.text(_DECISION) == _EDIT:
            form = Form("The plan as you want it", (Question(_EDITED, "Plan", default=text),))
            edit, decided = await self.queue.ask(waiting, form, ctx)
            edited = edit.text(_EDITED) or None if edit is not None and edit.reply is Reply.ACCEPTED else None
            answer = answer if edited else edit
        if decided is not None or answer is None:
            return None if decided is None else _elsewhere(decided)
        if answer.reply in (Reply.UNAVAILABLE, Reply.UNANSWERED):
            return None
        decision = _Decided.in_form(waiting.id, answer, edited)
        first = await self.queue.decide(waiting, Verdict(decision.approved, reason=decision.feedback), ctx)
        return decision if first is None else _elsewhere(first)

    async def _approved(
        self, ctx: ToolContext, plan: Plan, text: str, *, by: str, edited: str | None, granted: Sequence[str] = ()
    ) -> ToolResult:
        def approve() -> tuple[Plan, str]:
            decided, mode = self.approval.approve(_presenter(ctx), plan, edited=edited, granted=granted)
            return decided, mode.value

        decided, mode = await anyio.to_thread.run_sync(approve)
        lines = [f"The plan was approved {by}. Permission mode is now {mode}; carry the plan out."]
        if granted:
            lines.append(f"Allowed without asking in this session: {', '.join(granted)}.")
        if edited is not None:
            lines.append(f"The user changed the plan. It now reads:\n\n{edited}")
        facts = _facts(decided, text if edited is None else edited, approved=True, edited=edited is not None)
        return text_result("\n".join(lines), facts=facts, notices=[f"plan file: {decided.file_path}"])


@dataclass(frozen=True)
class _Decided:
    """`record` is its id in the queue; `by` ends the sentence "the plan was approved ..."."""

    record: str
    approved: bool
    by: str
    feedback: str = ""
    edited: str | None = None
    granted: Sequence[str] = ()

    @classmethod
    def in_form(cls, record: str, answer: Answer, edited: str | None) -> _Decided:
        if edited is None and (answer.reply is not Reply.ACCEPTED or answer.text(_DECISION) != _APPROVE):
            return cls(record, False, "by the user", answer.text(_FEEDBACK))
        granted = answer.values.get(_GRANTED, ())
        return cls(record, True, "by the user", "", edited, (granted,) if isinstance(granted, str) else granted)


def _elsewhere(decided: Approval) -> _Decided:
    verdict = decided.verdict or Verdict(approved=False)
    return _Decided(decided.id, verdict.approved, f"by the user ({decided.decided_by})", verdict.reason)


def _presenter(ctx: ToolContext) -> Presenter:
    return Presenter(ctx.principal, ctx.session_key)


def _facts(plan: Plan, text: str, *, approved: bool, edited: bool = False) -> dict[str, object]:
    return {"plan": text, "file_path": plan.file_path, "approved": approved, "plan_was_edited": edited}


def _form(text: str, wanted: list[AllowedPrompt]) -> Form:
    shown = text if len(text) <= MAX_SHOWN_CHARS else text[:MAX_SHOWN_CHARS] + "\n[... the rest is in the plan file]"
    choices = (
        Option(_APPROVE, "Approve, and let the work begin"),
        Option(_EDIT, "Edit the plan first"),
        Option(_REJECT, "Reject, and keep planning"),
    )
    questions = [
        Question(_DECISION, "Decision", options=choices, required=True),
        Question(_FEEDBACK, "What should change?"),
    ]
    if wanted:
        by_tool: dict[str, list[str]] = {}
        for prompt in wanted:
            by_tool.setdefault(prompt.tool, []).append(prompt.prompt)
        options = tuple(
            Option(tool, f"{tool}, any call (it says it wants to: {'; '.join(prompts)})")
            for tool, prompts in by_tool.items()
        )
        questions.append(Question(_GRANTED, "Allow without asking, in this session", options=options, multiple=True))
    return Form(f"Plan for your approval:\n\n{shown}", tuple(questions))
