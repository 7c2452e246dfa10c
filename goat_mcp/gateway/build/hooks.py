"""The hooks the settings choose, ready to run: ours first, then those of the Claude Code files the user names.

Nothing that runs programs is loaded where there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.environment import CommandEnvironment
from goat_mcp.settings.settings import BrokenSettings, Settings
from goat_mcp.state.sessions import Sessions
from goat_mcp.state.telemetry import Telemetry

if TYPE_CHECKING:  # loaded when a file is named, or a hook configured
    from goat_mcp.calls.hooks.command import RuleMatch
    from goat_mcp.calls.hooks.programs import Programs
    from goat_mcp.settings.claude import ClaudeSettings


def claude_settings(settings: Settings) -> tuple[ClaudeSettings, ...]:
    """What the files say that `claude_settings` names. Raises `BrokenSettings`, naming file and line."""
    if not settings.claude_settings:
        return ()
    from goat_mcp.settings.claude import BrokenClaudeSettings, read_claude_settings

    try:
        return tuple(read_claude_settings(file, settings.contents.get(file)) for file in settings.claude_settings)
    except BrokenClaudeSettings as broken:
        raise BrokenSettings(str(broken), "Mend the file, or do not name it in claude_settings.") from None


class _Facts:
    """Implements `hooks.programs.SessionFacts`."""

    def __init__(self, sessions: Sessions, project: Callable[[], Path | None], mode_of: Callable[[str], str]) -> None:
        self._sessions = sessions
        self._project = project
        self._mode_of = mode_of

    def directory(self, session_key: str) -> str:
        return str(self._sessions.of(session_key).cwd or self._project() or "")

    def mode(self, session_key: str) -> str:
        return self._mode_of(session_key)


def hook_programs(
    settings: Settings,
    imported: Sequence[ClaudeSettings],
    *,
    matches_rule: RuleMatch,
    environment: CommandEnvironment,
    guard: ProcessGuard,
    sessions: Sessions,
    telemetry: Telemetry,
    project: Callable[[], Path | None],
    mode_of: Callable[[str], str],
) -> Programs | None:
    """All hooks that are programs; None where there are none. Raises `BrokenSettings` for one that is broken."""
    if not any(settings.hooks.entries()) and not any(file.hooks for file in imported):
        return None
    from goat_mcp.calls.hooks.command import BrokenHook, check_condition, configured_hooks
    from goat_mcp.calls.hooks.programs import HookRunner, Programs

    try:
        hooks = (*configured_hooks(settings.hooks), *(hook for file in imported for hook in file.hooks))
        for hook in hooks:
            check_condition(hook, matches_rule)
    except BrokenHook as broken:
        raise BrokenSettings(f"hooks: {broken}", "Mend the hook and start again.") from None
    runner = HookRunner(environment, guard, project)
    facts = _Facts(sessions, project, mode_of)
    return Programs(hooks, runner, facts, matches_rule, telemetry.warning)


def notices(imported: Sequence[ClaudeSettings]) -> Iterator[str]:
    """What the user should know of the files: what of them has no effect, and what a failing hook of theirs means."""
    for file in imported:
        yield from file.notes
        passing = sum(not hook.refuses_on_failure for hook in file.hooks)
        if passing:
            yield f"{file.path}: {passing} hooks keep Claude Code's meaning: one that fails lets the call go on"
