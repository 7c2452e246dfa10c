"""The record of a call that a person is asked about, and its form in the client."""

from __future__ import annotations

import json

from goat_mcp.calls.approvals.binding import arguments_sha256, pin_of, subject_of
from goat_mcp.calls.approvals.record import Choice, Kind, Request, Verdict
from goat_mcp.calls.approvals.scopes import ALWAYS, ONCE, SESSION, chosen_verdict
from goat_mcp.calls.permissions.approval import ALLOW_ALWAYS, ALLOW_ONCE, ALLOW_SESSION, DECISION, DENY
from goat_mcp.calls.permissions.rule import Call
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form, Option, Question
from goat_mcp.core.errors import ToolError
from goat_mcp.core.redaction import Redactor

_SCOPES = {ALLOW_ONCE: ONCE, ALLOW_SESSION: SESSION, ALLOW_ALWAYS: ALWAYS}


def request_for_call(
    call: Call,
    reason: str,
    ctx: ToolContext,
    *,
    choices: tuple[Choice, ...],
    diff: str,
    scope_id: str,
    redactor: Redactor,
) -> Request:
    return Request(
        kind=Kind.CALL,
        subject=subject_of(call, ctx.principal),
        title=f"Allow {call.spec.rule_name}?",
        principal=ctx.principal,
        session=ctx.rights.client_session or ctx.session_key,
        scope_id=scope_id,
        client=ctx.client_name,
        tool=call.spec.rule_name,
        workspace=", ".join(call.roots),
        directory=call.directory,
        arguments=tuple(
            (name, redactor.text(value if isinstance(value, str) else json.dumps(value, default=str)))
            for name, value in call.arguments.items()
        ),
        diff=diff,
        risk=call.spec.risk.name.lower(),
        why=call.spec.effects,
        asked_by=reason,
        args_sha256=arguments_sha256(call),
        pin=pin_of(call.spec),
        choices=choices,
    )


def form_of(request: Request) -> Form:
    values = {scope: value for value, scope in _SCOPES.items()}
    options = [Option(values[one.scope], one.title) for one in request.choices if one.scope in values]
    lines = [f"{request.title} ({request.asked_by})", *(f"{name}: {text}" for name, text in request.arguments)]
    options.append(Option(DENY, "Deny"))
    return Form("\n".join(lines), (Question(DECISION, "Decision", options=tuple(options), required=True),), True)


def verdict_of(answer: Answer, request: Request) -> Verdict | None:
    choice = answer.text(DECISION)
    if choice == DENY:
        return Verdict(approved=False)
    try:
        return chosen_verdict(request, _SCOPES[choice]) if choice in _SCOPES else None
    except ToolError:
        return None
