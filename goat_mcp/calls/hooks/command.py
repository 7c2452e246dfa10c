"""One hook that is a program, ready to run: what it is about, what runs, and what its failure means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from goat_mcp.calls.hooks.matcher import BrokenMatcher, Matcher
from goat_mcp.calls.hooks.options import TOOL_EVENTS, HookEvent, HookSettings
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolSpec, risk_and_hints


class BrokenHook(ValueError):
    """A hook that cannot be understood; the text names the place and what to write instead."""


class RuleMatch(Protocol):
    """Whether a permission rule, e.g. `Bash(git *)`, is about a call. Raises `ValueError` for a broken rule."""

    def __call__(self, rule: str, spec: ToolSpec, arguments: Mapping[str, Any]) -> bool: ...


@dataclass(frozen=True, kw_only=True)
class HookCommand:
    """`place` is where it is configured, its name in records and messages.

    `refuses_on_failure`: a call it should have judged does not run where it cannot. `strict`: what is no proper
    answer is a failure; Claude Code passes over it. `is_imported` is one of a Claude Code settings file: it gets
    CLAUDE_PROJECT_DIR, and `in_shell` where it is a shell's command line.
    """

    event: HookEvent
    place: str
    argv: tuple[str, ...]
    matcher: Matcher = field(default_factory=Matcher)
    condition: str = ""
    timeout_s: float = 30.0
    refuses_on_failure: bool = True
    strict: bool = True
    observes: bool = False
    env: tuple[str, ...] = ()
    is_imported: bool = False
    in_shell: bool = False


def own_hooks(settings: HookSettings) -> Iterator[HookCommand]:
    """The hooks of our own settings (R-HOOK-1: words, no shell). Raises `BrokenHook`."""
    for event, place, matcher, program in settings.entries():
        if program.condition and event not in TOOL_EVENTS:
            raise BrokenHook(f"{place}.if: {event} is about no tool call; only {', '.join(TOOL_EVENTS)} take an `if`")
        try:
            parsed = Matcher.parse(matcher)
        except BrokenMatcher as broken:
            raise BrokenHook(f"{place}: {broken}") from None
        yield HookCommand(
            event=event,
            place=place,
            argv=program.command,
            matcher=parsed,
            condition=program.condition,
            timeout_s=program.timeout,
            refuses_on_failure=not program.observe,
            observes=program.observe,
            env=program.env,
        )


def check_condition(hook: HookCommand, matches_rule: RuleMatch) -> None:
    """Raises `BrokenHook` for an `if` that is no permission rule: a hook that never runs guards nothing."""
    if not hook.condition:
        return
    try:
        matches_rule(hook.condition, _NO_TOOL, {})
    except ValueError as broken:
        raise BrokenHook(f"{hook.place}: if: {broken}") from None


_RISK, _HINTS = risk_and_hints(SideEffect.NONE)
_NO_TOOL = ToolSpec(
    name="",
    title="",
    description="",
    input_schema={},
    side_effect=SideEffect.NONE,
    toolset="core",
    risk=_RISK,
    hints=_HINTS,
)
"""What conditions are tried on at start, only to have them read."""
