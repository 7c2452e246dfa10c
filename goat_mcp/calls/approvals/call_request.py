"""The record of one call that a person is asked about: what they see, without secrets, and what their decision is bound
to (R-PERM-4)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from goat_mcp.calls.approvals.record import Choice, Kind, Request
from goat_mcp.calls.approvals.scopes import COMMAND, COMMAND_FACT, plain_command
from goat_mcp.calls.approvals.wording import CAREFUL_FACT
from goat_mcp.calls.permissions.rule import Call
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import cut_middle
from goat_mcp.core.redaction import Redactor
from goat_mcp.files.documents.visible_text import make_visible, one_line

_SHOWN_CHARS = 4_000
_COMMAND_CHARS = 20_000
"""More than a command may have that a rule could let pass: it is shown whole, for all of it will run."""
_LINE_CHARS = 1_000
_TITLE_CHARS = 100
_NAME_CHARS = 200
_TITLE_ARGUMENTS = ("command", "file_path", "notebook_path", "url", "path")
"""Arguments that say best what a call is about."""


def request_for_call(
    call: Call,
    reason: str,
    ctx: ToolContext,
    *,
    choices: tuple[Choice, ...] = (),
    diff: str = "",
    scope_id: str = "",
    redactor: Redactor,
) -> Request:
    """`reason` is the rule or mode that asks, `scope_id` stands for the workspace."""
    spec = call.spec
    # Of the definition that the person is shown the call of, with the files of a declared tool.
    pin = _sha256([spec.wire(), call.definition()])
    facts: dict[str, Any] = {}
    if spec.warnings:
        facts[CAREFUL_FACT] = [one_line(warning, _LINE_CHARS) for warning in spec.warnings]
    if any(choice.scope == COMMAND for choice in choices):
        facts[COMMAND_FACT] = list(plain_command(call))
    outside = ("outside the workspace",) if _writes_outside(call) else ()
    return Request(
        kind=Kind.CALL,
        subject=_subject(call, pin, ctx.principal, diff),
        title=_title(call, redactor),
        principal=ctx.principal,
        session=ctx.client_session,
        scope_id=scope_id,
        client=one_line(redactor.text(ctx.client_name), _NAME_CHARS),
        tool=one_line(spec.rule_name, _NAME_CHARS),
        workspace=", ".join(call.roots),
        directory=call.directory,
        arguments=tuple(_arguments(call, redactor)),
        diff=make_visible(redactor.text(diff)),
        risk=spec.risk.name.lower(),
        why=(*spec.effects, *outside),
        asked_by=one_line(redactor.text(reason), _LINE_CHARS),
        args_sha256=_sha256(call.arguments),
        pin=pin,
        choices=choices,
        facts=facts,
    )


def _subject(call: Call, pin: str, principal: str, diff: str) -> str:
    """The same for the same call of the same principal, and for no other. The files that it touches are part of it: a
    path may mean another one by now. So is the diff that was shown: the file may hold something else by now."""
    return _sha256(
        [
            principal,
            call.spec.rule_name,
            pin,
            call.arguments,
            call.directory,
            *(call.roots, call.asked, call.reads, call.writes, call.runs),
            diff,
        ]
    )


def _sha256(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _title(call: Call, redactor: Redactor) -> str:
    """`Edit: src/a.py`, for lists."""
    name = call.spec.rule_name
    values: Iterator[Any] = map(call.arguments.get, _TITLE_ARGUMENTS)
    about = next((value for value in values if isinstance(value, str)), "")
    root = next((root for root in call.roots if about.startswith(f"{root.rstrip('/')}/")), "")
    short = about[len(root.rstrip("/")) + 1 :] if root else about
    title = f"{name}: {redactor.text(short[:_LINE_CHARS])}" if short else name
    return one_line(title, _TITLE_CHARS)


def _writes_outside(call: Call) -> bool:
    return any(not any(PurePath(path).is_relative_to(root) for root in call.roots) for path in call.writes)


def _arguments(call: Call, redactor: Redactor) -> Iterator[tuple[str, str]]:
    """As a person sees them: cut in the middle, with nothing in them that hides or reorders text."""
    for name, value in redactor.tree(dict(call.arguments)).items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        limit = _COMMAND_CHARS if (call.spec.rule_name, name) == ("Bash", "command") else _SHOWN_CHARS
        yield one_line(name, _NAME_CHARS), make_visible(cut_middle(text, limit))
