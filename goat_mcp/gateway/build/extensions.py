"""Code of the user's own around calls: hooks, those of the Claude Code files that the user names, and extensions.

Nothing that runs programs or looks for packages is loaded if there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from goat_mcp.calls.permissions.rule_set import RuleConditions
from goat_mcp.catalog.registry import Registry
from goat_mcp.gateway.build.services import Services
from goat_mcp.settings.settings import BrokenSettings, Settings
from goat_mcp.state.sessions import Sessions

if TYPE_CHECKING:  # loaded when a file is named, or a hook or an extension is configured
    from goat_mcp.calls.extensions.extension_points import Steps
    from goat_mcp.calls.extensions.installed import InstalledExtension
    from goat_mcp.calls.hooks import Hooks
    from goat_mcp.calls.hooks.command import HookCommand
    from goat_mcp.calls.hooks.runner import Programs
    from goat_mcp.settings.claude import ClaudeSettings


@dataclass(frozen=True, kw_only=True)
class UserCode:
    """What the user wraps around calls; `claude_files` are those that the user names.

    `programs` are hooks of the settings, `functions` of a program that embeds us.

    `steps` are None if no extension looks at steps: they then cost nothing.
    """

    claude_files: Sequence[ClaudeSettings]
    programs: Programs | None
    functions: Hooks | None
    extensions: Sequence[InstalledExtension]
    steps: Steps | None


def read_user_code(imported: Sequence[ClaudeSettings], services: Services, functions: Hooks | None) -> UserCode:
    """The hooks and extensions that the settings choose. Raises `BrokenSettings` for one that is broken."""
    programs = _hook_programs(imported, services)
    extensions = _chosen_extensions(services.settings.extensions)
    return UserCode(
        claude_files=imported,
        programs=programs,
        functions=functions,
        extensions=extensions,
        steps=_chosen_steps(extensions, services),
    )


def claude_settings(settings: Settings) -> tuple[ClaudeSettings, ...]:
    """What the files say that `claude_settings` names. Raises `BrokenSettings`, naming file and line."""
    return tuple(_claude_file(settings, file) for file in settings.claude_settings)


def _claude_file(settings: Settings, file: Path) -> ClaudeSettings:
    from goat_mcp.settings.claude import BrokenClaudeSettings, read_claude_settings

    try:
        return read_claude_settings(file, settings.contents.get(file))
    except BrokenClaudeSettings as broken:
        raise BrokenSettings(str(broken), "Fix the file, or do not name it in claude_settings.") from None


class FollowedClaudeFiles:
    """Claude Code's files while a gateway runs. One that tools may write to counts as it was read first; one that is
    broken now, as it was read last."""

    def __init__(
        self,
        settings: Settings,
        read: Sequence[ClaudeSettings],
        is_open: Callable[[Path], bool],
        check: Callable[[ClaudeSettings], object],
    ) -> None:
        """`check` raises `BrokenSettings` for a file whose rules mean nothing."""
        self._is_open = is_open
        self._check = check
        self._last = dict(zip(settings.claude_settings, read, strict=True))
        self._hooks = {file.path: _without_places(file.hooks) for file in read}

    def with_other_hooks(self, files: Sequence[ClaudeSettings]) -> Iterator[Path]:
        """Those whose hooks are not those of the start, which are the ones that run."""
        for file in files:
            if _without_places(file.hooks) != self._hooks.get(file.path, ()):
                yield file.path

    def read(self, settings: Settings) -> tuple[Sequence[ClaudeSettings], Sequence[str]]:
        """What they say now, and what is wrong with some. Raises `BrokenSettings` for one that was never read."""
        problems: list[str] = []
        for file in settings.claude_settings:
            known = file in self._last
            if known and self._is_open(file):
                continue
            try:
                found = _claude_file(settings, file)
                self._check(found)
                self._last[file] = found
            except BrokenSettings as broken:
                if not known:
                    raise
                problems.append(f"{broken.message}; the rules that it held before stay in force")
        return [self._last[file] for file in settings.claude_settings], problems


def _without_places(hooks: Sequence[HookCommand]) -> Sequence[HookCommand]:
    """Without the lines they stand on."""
    return tuple(replace(hook, location="") for hook in hooks)


def _hook_programs(imported: Sequence[ClaudeSettings], services: Services) -> Programs | None:
    """All hooks that are programs, ours before those of Claude Code's files. None if there are none."""
    s, settings = services, services.settings
    if not any(settings.hooks.entries()) and not any(file.hooks for file in imported):
        return None
    from goat_mcp.calls.hooks.command import BrokenHook, check_condition, configured_hooks
    from goat_mcp.calls.hooks.runner import HookRunner, Programs

    def project() -> Path | None:
        return next(iter(s.workspace.roots), None)

    matches_rule = RuleConditions(lambda: tuple(map(str, s.workspace.roots)), s.directories.real_path)
    try:
        hooks = (*configured_hooks(settings.hooks), *(hook for file in imported for hook in file.hooks))
        for hook in hooks:
            check_condition(hook, matches_rule)
    except BrokenHook as broken:
        raise BrokenSettings(f"hooks: {broken}", "Fix the hook and start again.") from None
    runner = HookRunner(s.environment, s.guard, project)
    facts = _Facts(s.sessions, project, lambda session_key: s.modes.of(session_key).value)
    return Programs(hooks, runner, facts, matches_rule, s.telemetry.warning)


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


def _chosen_extensions(names: Sequence[str]) -> Sequence[InstalledExtension]:
    """In the order of the settings. Raises `BrokenSettings` for one that is not installed or cannot be loaded."""
    if not names:
        return ()
    from goat_mcp.calls.extensions.installed import BrokenExtension, installed_extensions

    try:
        return installed_extensions(names)
    except BrokenExtension as broken:
        raise BrokenSettings(f"extensions: {broken}", "Fix or install it, or take it off the list.") from broken


def _chosen_steps(extensions: Sequence[InstalledExtension], services: Services) -> Steps | None:
    steps = [(extension.name, extension.step) for extension in extensions if extension.step is not None]
    if not steps:
        return None
    from goat_mcp.calls.extensions.extension_points import Steps

    return Steps(steps, lambda name, bug: services.telemetry.unexpected("step", f"extension {name}", bug))


def register_tools(extensions: Sequence[InstalledExtension], registry: Registry, changed: Callable[[], None]) -> None:
    """Let each extension add its tools. Raises `BrokenSettings` naming the one that cannot."""
    for extension in extensions:
        if extension.register is None:
            continue
        from goat_mcp.calls.extensions.installed import ExtensionTools

        try:
            extension.register(ExtensionTools(extension.name, registry, changed))
        except Exception as problem:
            raise BrokenSettings(
                f"extensions: {extension.name!r} cannot register its tools: {type(problem).__name__}: {problem}",
                "Fix it, or take it off the list.",
            ) from problem


def notices(imported: Sequence[ClaudeSettings]) -> Iterator[str]:
    """What the user should know of the files: what of them has no effect, and what a failing hook of theirs means."""
    for file in imported:
        yield from file.notes
        passing = sum(not hook.refuses_on_failure for hook in file.hooks)
        if passing:
            yield f"{file.path}: {passing} hooks keep Claude Code's meaning: one that fails lets the call go on"
