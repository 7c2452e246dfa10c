"""What is sent about one record: a document for programs, a text for people, and the digest that binds an answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from goat_mcp.calls.approvals.record import Approval, Kind, Status
from goat_mcp.calls.approvals.scopes import ONCE
from goat_mcp.calls.approvals.wording import CONSEQUENCES, lines_of, outcome
from goat_mcp.core.redaction import Redactor
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.gateway.status.gateway_status import iso
from goat_mcp.web.messaging.text_parts import utf16_length

MAX_UNITS = 3600
"""Of a text, so that it fits into one message of each messenger with its last lines."""
_DIGEST_CHARS = 12
_SAID_CHARS = 300
_ALL_LINES = 1_000_000


def digest_of(approval: Approval) -> str:
    """Short, of the record with its tool and arguments: an answer with another digest is about something else."""
    request = approval.request
    bound = [approval.id, request.kind.value, request.subject, request.tool, request.args_sha256, request.pin]
    document = json.dumps([*bound, request.arguments, request.diff])
    return hashlib.sha256(document.encode()).hexdigest()[:_DIGEST_CHARS]


@dataclass(frozen=True)
class Message:
    """`may_approve`: all of it is shown, once is one of the choices, and it is no login, which needs a browser.
    `text` has no buttons in mind."""

    approval: Approval
    digest: str
    text: str
    may_approve: bool

    @property
    def command(self) -> str:
        if self.approval.request.kind is Kind.LOGIN:
            return str(self.approval.request.facts.get("command", "goat-mcp auth login"))
        return f"goat-mcp approve {self.approval.short_id}"

    @property
    def asking(self) -> str:
        """For whom nothing is decided yet."""
        how = "At the desk" if self.may_approve else "Approve it at the desk only"
        if self.approval.request.kind is Kind.LOGIN:
            how = "Log in at the desk"
        about = CONSEQUENCES.get(self.approval.request.kind, "")
        return "\n".join(filter(None, (self.text, about, f"{how}: {self.command}")))

    def ended(self, approval: Approval) -> str:
        """With what became of it."""
        gone = {Status.EXPIRED: "expired: nobody decided", Status.WITHDRAWN: "nothing waits for it any more"}
        what = gone.get(approval.status) or outcome(approval)
        said = make_visible(what)[:_SAID_CHARS]
        return f"{self.text}\n\n{said[:1].upper()}{said[1:]}"


def message_about(approval: Approval, redactor: Redactor) -> Message:
    request = approval.request
    whole = make_visible(redactor.text("\n".join(lines_of(request, diff_lines=_ALL_LINES))))
    body = _cut(whole, MAX_UNITS)
    digest = digest_of(approval)
    expires = f", {outcome(approval)}" if approval.status is Status.WAITING and request.expires_at_s else ""
    lines = [body]
    if body != whole:
        lines.append(f"[... {len(whole) - len(body):,} more characters: goat-mcp approvals]")
    lines += ["", f"{approval.short_id}, digest {digest}{expires}"]
    offers_once = not request.choices or any(choice.scope == ONCE for choice in request.choices)
    may_approve = offers_once and body == whole and request.kind is not Kind.LOGIN
    return Message(approval, digest, "\n".join(lines), may_approve)


def document_about(message: Message, redactor: Redactor) -> dict[str, Any]:
    """For a program: the record without secrets."""
    approval, request = message.approval, message.approval.request
    document: Mapping[str, Any] = {
        "event": "approval",
        "id": approval.id,
        "kind": request.kind.value,
        "title": request.title,
        "tool": request.tool,
        "client": request.client,
        "workspace": request.workspace,
        "directory": request.directory,
        "risk": request.risk,
        "why": list(request.why),
        "asked_by": request.asked_by,
        "arguments": dict(request.arguments),
        "diff": request.diff,
        "choices": [{"scope": choice.scope, "title": choice.title} for choice in request.choices],
        "digest": message.digest,
        "at": iso(approval.at_s),
        "expires": iso(request.expires_at_s) if request.expires_at_s else None,
        "command": message.command,
        "text": message.asking,
    }
    return redactor.tree(document)


def _cut(text: str, max_units: int) -> str:
    while utf16_length(text) > max_units:
        text = text[: max_units - (utf16_length(text) - len(text))] if len(text) > max_units else text[: len(text) - 1]
    return text
