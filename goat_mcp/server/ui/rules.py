"""The view Rules: each rule, where it stands and what it decided lately; a call tested; rules added and removed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goat_mcp.calls.approvals.record import Approval
from goat_mcp.calls.audit.call_record import DAY_S, FILE_NAME, MAX_TEXT_CHARS
from goat_mcp.calls.audit.recorded_calls import MAX_COUNTED, RuleUse, UnreadableRecord, decided_by_rules
from goat_mcp.calls.permissions.mode import Effect
from goat_mcp.calls.permissions.remembered import RememberedRule, RememberedRules
from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.core.rights import LOCAL
from goat_mcp.gateway.build.working_directories import scope_of
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.gateway.rules.edits import RuleChange, changed_rules, forgotten_rules, removed_from_own_file
from goat_mcp.gateway.rules.explained import explained, explained_lines
from goat_mcp.gateway.rules.listed import ListedRule, configured_rules, remembered_anywhere
from goat_mcp.gateway.rules.words import meaning
from goat_mcp.gateway.settings_edit import settings_path
from goat_mcp.gateway.status.process_files import ProcessFiles
from goat_mcp.gateway.status.requests import RequestKind
from goat_mcp.server.ui.login import session_of
from goat_mcp.server.ui.pages import back_to
from goat_mcp.server.ui.parts import UiParts
from goat_mcp.server.ui.process_requests import answers_to
from goat_mcp.server.ui.security import form_of
from goat_mcp.state.file_edit import edit_alone
from goat_mcp.state.private_file import no_warning

_PATH = "/ui/rules"
ANSWERS_WITHIN_S = 3.0
_NOTE = "rules"
_EFFECTS = ("allow", "ask", "deny")
T = TypeVar("T")


def routes(parts: UiParts) -> list[Route]:
    async def show(request: Request) -> Response:
        tool, arguments = (request.query_params.get(name, "").strip() for name in ("tool", "arguments"))
        data = {
            **await rules_data(parts),
            "test": await tested(parts, tool, arguments) if tool else None,
            "tool": tool,
            "arguments": arguments,
            "note": session_of(request.scope).notes.get(_NOTE, ""),
        }
        return parts.pages.answer(request, "rules.html", data)

    async def add(request: Request) -> Response:
        form = form_of(request)
        effect, rule = _effect(form.get("effect", "")), form.get("rule", "").strip()
        if not rule:
            raise ToolError(ErrorCode.INPUT, "no rule is written there", "Write e.g. Bash(npm run *).")
        expires = form.get("expires", "").strip() or None
        note(request, await _edited(lambda: _said(_added(effect, rule, expires))))
        return back_to(_PATH)

    async def remove(request: Request) -> Response:
        form = form_of(request)
        effect, rule = _effect(form.get("effect", "")), form.get("rule", "")
        note(request, await _edited(lambda: _said(removed_from_own_file(effect, rule))))
        return back_to(_PATH)

    async def forget(request: Request) -> Response:
        form = form_of(request)
        note(request, await _edited(lambda: _forgotten(parts, form.get("scope", ""), form.get("id", ""))))
        return back_to(_PATH)

    async def revoke(request: Request) -> Response:
        note(request, await revoked(parts, form_of(request).get("id", "")))
        return back_to(_PATH)

    def note(request: Request, text: str) -> None:
        session_of(request.scope).note(_NOTE, text)

    return [
        Route(_PATH, show, methods=["GET"]),
        Route(f"{_PATH}/add", add, methods=["POST"]),
        Route(f"{_PATH}/remove", remove, methods=["POST"]),
        Route(f"{_PATH}/forget", forget, methods=["POST"]),
        Route(f"{_PATH}/revoke", revoke, methods=["POST"]),
    ]


async def rules_data(parts: UiParts) -> dict[str, Any]:
    """Every rule as the files say now, with what it decided lately."""
    gateway = await parts.gateway()
    return await anyio.to_thread.run_sync(_data, parts, gateway)


async def revoked(parts: UiParts, id: str) -> str:
    """Take back what a session was granted. What to tell the owner. Raises `ToolError(NOT_FOUND)`."""
    grant = await anyio.to_thread.run_sync(parts.queue.store.take_back, id)
    answers = await answers_to(parts, RequestKind.REVOKE, id, within_s=ANSWERS_WITHIN_S, first="revoked")
    rules = ", ".join(grant.verdict.rules) if grant.verdict is not None else ""
    if any(one["state"] == "revoked" for one in answers):
        return f"Taken back: {rules}. Calls that run go on; the next ones are asked about."
    return f"No process answered that it took back {rules}. If {grant.request.client} still runs, end it."


async def tested(parts: UiParts, tool: str, arguments: str) -> dict[str, Any]:
    """What `goat-mcp why` says of a call. No server is started for it, and nothing runs."""
    try:
        given = _object(arguments)
    except ValueError as broken:
        return {"effect": "", "lines": [f"The arguments are no JSON object: {broken}"]}
    gateway = await parts.gateway()
    facts = await explained(gateway, tool, lambda schema: given, LOCAL)
    return {"effect": facts["effect"], "lines": explained_lines(facts)}


def _data(parts: UiParts, gateway: Gateway) -> dict[str, Any]:
    in_force, problem = gateway.watched_settings.in_force, ""
    warnings: list[str] = []

    def warn(event: str, **facts: Any) -> None:
        warnings.append(f"{event}: {facts.get('path')}: {facts.get('problem')}")

    try:
        # What was changed a moment ago is followed soon; a person wants to see it now.
        settings = in_force.loaded_again()
        configured = list(configured_rules(settings))
    except (ToolError, OSError) as broken:
        settings, problem = in_force, f"{broken}; the rules from before stay in force"
        configured = list(configured_rules(settings))
    days = settings.audit.kept_days
    uses, unreadable = _uses(parts.state.path / FILE_NAME, time.time() - days * DAY_S)
    workspaces = _workspaces(parts, gateway)
    remembered = list(remembered_anywhere(parts.state, warn))
    own_file = settings_path(in_project=False)
    granted = parts.queue.store.session_grants()
    return {
        "title": "Rules",
        "rules": [_configured(one, own_file, uses) for one in configured],
        "remembered": [_remembered(one, workspaces.get(scope, ""), scope, uses) for scope, one in remembered],
        "granted": [_granted(one) for one in granted],
        "mode": settings.mode.value,
        "mode_from": settings.source_of("mode"),
        "days": days,
        "own_file": str(own_file),
        "problems": [text for text in (problem, unreadable, *warnings) if text],
        "effects": _EFFECTS,
        "tools": sorted(tool.spec.name for tool in gateway.catalog.tools()),
    }


def _configured(one: ListedRule, own_file: Path, uses: Mapping[str, RuleUse]) -> dict[str, Any]:
    is_own = one.file is not None and one.file.resolve() == own_file.resolve()
    return {
        "effect": one.effect.value,
        "rule": one.rule.text,
        "means": meaning(one.effect, one.rule),
        "origin": one.origin,
        "has_ended": one.has_ended,
        "lately": _lately(one.rule.text, uses),
        "is_own": is_own,
    }


def _remembered(one: RememberedRule, workspace: str, scope: str, uses: Mapping[str, RuleUse]) -> dict[str, Any]:
    return {
        "effect": Effect.ALLOW.value,
        "rule": one.rule.text,
        "means": meaning(Effect.ALLOW, one.rule),
        "scope": scope,
        "id": one.id,
        "principal": one.principal if one.principal != LOCAL else "",
        "directory": one.rule.directory,
        "workspace": workspace,
        "at_s": one.at_s,
        "has_ended": one.rule.until_s is not None and one.rule.until_s <= time.time(),
        "lately": _lately(one.rule.text, uses),
    }


def _granted(one: Approval) -> dict[str, Any]:
    verdict = one.verdict
    return {
        "id": one.id,
        "rules": verdict.rules if verdict is not None else (),
        "client": one.request.client,
        "workspace": one.request.workspace,
        "at_s": one.decided_at_s,
        "by": one.decided_by,
    }


def _lately(rule: str, uses: Mapping[str, RuleUse]) -> dict[str, Any] | None:
    """How many calls it decided and when the last one was; None if none. The record holds `rule RULE`, or that with
    who answered: `rule RULE, allowed once by the user`."""
    recorded = cut_middle(f"rule {rule}", MAX_TEXT_CHARS)
    found = [use for text, use in uses.items() if text == recorded or text.startswith(f"rule {rule}, ")]
    if not found:
        return None
    calls = sum(use.calls for use in found)
    return {
        "calls": f"{MAX_COUNTED} or more" if calls >= MAX_COUNTED else str(calls),
        "last_s": max(use.last_s for use in found),
        "text": rule,
    }


def _uses(path: Path, since_s: float) -> tuple[dict[str, RuleUse], str]:
    try:
        return decided_by_rules(path, since_s), ""
    except UnreadableRecord as problem:
        return {}, f"What rules decided lately is not known: {path}: {problem}"


def _workspaces(parts: UiParts, gateway: Gateway) -> dict[str, str]:
    """By short name, as far as they are known: those of processes that run now."""
    named = [[str(root) for root in gateway.workspace.roots]]
    named += [[str(root) for root in one.get("workspace", ())] for one in ProcessFiles(parts.state).running()]
    return {scope_of([Path(root) for root in roots]): ", ".join(roots) for roots in named if roots}


def _object(text: str) -> dict[str, Any]:
    """Raises `ValueError`."""
    try:
        found: Any = json.loads(text) if text else {}
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("write one in curly brackets")
    return cast("dict[str, Any]", found)


def _effect(text: str) -> Effect:
    if text not in _EFFECTS:
        raise ToolError(ErrorCode.INPUT, f"{text[:40]!r} is no effect", f"Choose one of {', '.join(_EFFECTS)}.")
    return Effect(text)


async def _edited(work: Callable[[], T]) -> T:
    def alone() -> T:
        with edit_alone():
            return work()

    return await anyio.to_thread.run_sync(alone)


def _added(effect: Effect, rule: str, expires: str | None) -> RuleChange:
    return changed_rules(effect, [rule], in_project=False, expires=expires, dry_run=False)


def _said(change: RuleChange) -> str:
    written = f"Written: {change.edit.path}" if change.edit.change.is_one else f"{change.edit.path} says so already."
    return "\n".join((written, *change.lines(dry_run=False)))


def _forgotten(parts: UiParts, scope: str, id: str) -> str:
    if scope not in {known for known, _ in remembered_anywhere(parts.state, no_warning)}:
        raise ToolError(
            ErrorCode.NOT_FOUND, "no such rule is remembered", "Load the view again: it was forgotten meanwhile."
        )
    gone = forgotten_rules([id], RememberedRules(parts.state, scope, parts.warn))
    return "\n".join(f"Forgotten: {one.rule.text}" for one in gone)
