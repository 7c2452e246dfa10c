"""What a hook's program answered, read from its exit code, standard output and standard error as Claude Code does.

Source: Claude Code's hooks reference, "Exit code output" and "JSON output". `runner` acts on the answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from goat_mcp.calls.hooks.settings import HookEvent
from goat_mcp.core.errors import cut_middle

MAX_CHARS = 10_000
"""Characters of one text in an answer; more is cut in the middle."""
BLOCKS = 2
_SHOWN_CHARS = 200


@dataclass(frozen=True, slots=True)
class HookRun:
    """How a program ended. `failure` says why there is no end to read: it did not start, took too long, ..."""

    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""
    failure: str = ""


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """What a hook said. `failure` if it said nothing that can be understood; nothing else counts then.

    `block` is why the call is refused (before it), or what to tell of its result (after it). `stop` is why nothing
    else should be begun. `message` is for the user. `text` is plain output.
    """

    failure: str = ""
    block: str | None = None
    stop: str | None = None
    ask: str | None = None
    arguments: Mapping[str, Any] | None = None
    output: Any = None
    suppress: bool = False
    context: str = ""
    message: str = ""
    text: str = ""


class _BadAnswer(ValueError):
    """A JSON object that is no answer."""


def read_answer(event: HookEvent, run: HookRun, *, strict: bool) -> HookAnswer:
    """The answer in a program's end. `strict`: anything that is not clearly an answer is a failure."""
    if run.failure:
        return HookAnswer(failure=run.failure)
    answer, fault = _read_output(event, run.stdout.strip(), strict)
    if run.exit_code == BLOCKS:
        said = answer if answer is not None else HookAnswer()
        reason = said.block or cut_middle(run.stderr.strip(), MAX_CHARS) or "a hook refused it without a reason"
        return replace(said, block=reason, ask=None, arguments=None, text="")
    if run.exit_code and (strict or answer is None or answer.text or answer == HookAnswer()):
        lines = run.stderr.strip().splitlines()
        return HookAnswer(failure=f"exit code {run.exit_code}" + (f": {lines[0][:_SHOWN_CHARS]}" if lines else ""))
    if answer is None:
        return HookAnswer(failure=fault)
    return answer


def _read_output(event: HookEvent, text: str, strict: bool) -> tuple[HookAnswer | None, str]:
    """What standard output says; if it is no answer, why not."""
    if not text:
        return HookAnswer(), ""
    members: Any = None
    if text.startswith("{"):
        try:
            members = json.loads(text, parse_constant=_no_number, object_pairs_hook=_once if strict else None)
        except (ValueError, RecursionError):
            if strict:
                return None, f"its output is not valid JSON: {text[:_SHOWN_CHARS]!r}"
    if not isinstance(members, dict):
        if strict and event != "SessionStart":
            return None, f"its output is neither empty nor a JSON object: {text[:_SHOWN_CHARS]!r}"
        return HookAnswer(text=cut_middle(text, MAX_CHARS)), ""
    try:
        return _read(event, cast("dict[str, Any]", members), strict), ""
    except _BadAnswer as bad:
        return None, f"its answer cannot be used: {bad}"


_COMMON = ("continue", "stopReason", "suppressOutput", "systemMessage", "terminalSequence", "hookSpecificOutput")
_SPECIFIC: Mapping[HookEvent, tuple[str, ...]] = {
    "PreToolUse": ("permissionDecision", "permissionDecisionReason", "updatedInput", "additionalContext"),
    "PostToolUse": ("additionalContext", "updatedToolOutput", "updatedMCPToolOutput"),
    "PostToolUseFailure": ("additionalContext",),
    "SessionStart": ("additionalContext",),
    "SessionEnd": (),
    "SubagentStop": ("additionalContext",),
}
_DECIDES = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "SubagentStop")


def _read(event: HookEvent, said: dict[str, Any], strict: bool) -> HookAnswer:
    specific: dict[str, Any] = _member(said, "hookSpecificOutput", dict) or {}
    if specific and specific.get("hookEventName") != event:
        raise _BadAnswer(f"hookSpecificOutput.hookEventName has to be {event!r}")
    if strict:
        _only(said, (*_COMMON, *(("decision", "reason") if event in _DECIDES else ())), "")
        _only(specific, ("hookEventName", *_SPECIFIC[event]), "hookSpecificOutput.")
    answer = HookAnswer(
        context=_text(specific, "additionalContext"),
        message=_text(said, "systemMessage"),
        suppress=_member(said, "suppressOutput", bool) is True,
    )
    if _member(said, "continue", bool) is False:
        answer = replace(answer, stop=_text(said, "stopReason") or "a hook stopped the work without a reason")
    answer = _decided(event, said, specific, answer)
    if event == "PreToolUse":
        return replace(answer, arguments=_member(specific, "updatedInput", dict))
    if event == "PostToolUse":
        updated = specific.get("updatedToolOutput")
        return replace(answer, output=specific.get("updatedMCPToolOutput") if updated is None else updated)
    return answer


def _decided(event: HookEvent, said: dict[str, Any], specific: dict[str, Any], answer: HookAnswer) -> HookAnswer:
    """`answer` with what the hook decided; the older `decision` of PreToolUse counts as well."""
    decision = said.get("decision")
    if decision not in (None, "block", *(("approve",) if event == "PreToolUse" else ())):
        raise _BadAnswer(f"decision {decision!r} is not 'block'")
    if decision == "block" and event in _DECIDES:
        answer = replace(answer, block=_text(said, "reason") or "a hook refused it without a reason")
    if event != "PreToolUse":
        return answer
    chosen = specific.get("permissionDecision")
    reason = _text(specific, "permissionDecisionReason")
    if chosen == "deny":
        return replace(answer, block=reason or "a hook refused it without a reason")
    if chosen == "ask":
        return replace(answer, ask=reason or "a hook wants a person to decide")
    if chosen == "defer":
        raise _BadAnswer("permissionDecision 'defer' is for one program only that can put a call off; answer 'ask'")
    if chosen not in (None, "allow"):
        raise _BadAnswer(f"permissionDecision {chosen!r} is not 'allow', 'deny' or 'ask'")
    return answer


def _only(members: dict[str, Any], known: tuple[str, ...], where: str) -> None:
    for name in members:
        if name not in known:
            raise _BadAnswer(f"{where}{name[:_SHOWN_CHARS]} is no member of it; known are {', '.join(known)}")


def _text(members: dict[str, Any], name: str) -> str:
    return cut_middle(_member(members, name, str) or "", MAX_CHARS)


def _member(members: dict[str, Any], name: str, kind: type) -> Any:
    value: Any = members.get(name)
    if value is not None and not isinstance(value, kind):
        raise _BadAnswer(f"{name} has to be a {_KINDS[kind]}")
    return value


_KINDS: Mapping[type, str] = {dict: "JSON object", str: "text", bool: "true or false"}


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """A member that is there twice says two things."""
    if len({name for name, _ in members}) < len(members):
        raise ValueError("a name is there twice")
    return dict(members)


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON")
