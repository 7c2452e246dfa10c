"""One hook that is a program: the calls it is for (its `matcher`), what runs, and what its failure means.

Source of matchers: Claude Code's hooks reference, "Matcher patterns". Names are canonical; Claude Code's names of
built-in tools match as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from goat_mcp.calls.hooks.settings import TOOL_EVENTS, HookEvent, HookSettings
from goat_mcp.core.names import CLAUDE_CODE_ALIASES, SEPARATOR, TOOL_ALIASES, UPSTREAM_PREFIX
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolSpec, risk_and_hints
from goat_mcp.core.suggestions import nearest, one_of

_NAMES_ONLY = re.compile(r"[A-Za-z0-9_\- ,|]*\Z")
_JS_NAMED_GROUP = re.compile(r"\(\?<(?![=!])")


class BrokenMatcher(ValueError):
    """A matcher that is no regular expression."""


@dataclass(frozen=True, slots=True)
class Matcher:
    """`names` are exact, a name `mcp__server__` stands for all tools of a server; without either it matches all."""

    names: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None

    @classmethod
    def parse(cls, text: str, *, whole_servers: bool = True) -> Matcher:
        """`whole_servers`: a bare `mcp__server` means all its tools, as in permission rules. In Claude Code it names
        none. Raises `BrokenMatcher`.
        """
        if text in ("", "*"):
            return cls()
        if _NAMES_ONLY.match(text):
            names = [name.strip() for name in re.split(r"[|,]", text)]
            known = {known for name in names if name for known in (name, TOOL_ALIASES.get(name, name))}
            return cls(frozenset(_server_prefix(name) if whole_servers else name for name in known))
        try:
            return cls(pattern=re.compile(_JS_NAMED_GROUP.sub("(?P<", text), re.ASCII))
        except re.error as broken:
            raise BrokenMatcher(f"matcher {text!r} is no regular expression: {broken}") from None

    def matches(self, name: str) -> bool:
        """Whether a tool's canonical name, or what else the event is distinguished by, is meant."""
        if self.pattern is not None:
            aliases = (alias for alias, tool in CLAUDE_CODE_ALIASES.items() if tool == name)
            return any(self.pattern.search(one) for one in (name, *aliases))
        if not self.names or name in self.names:
            return True
        return name.startswith(UPSTREAM_PREFIX) and _server_of(name) in self.names


def _server_prefix(name: str) -> str:
    """`mcp__server` -> `mcp__server__`; any other name as it is."""
    server = name.removeprefix(UPSTREAM_PREFIX)
    is_server = name.startswith(UPSTREAM_PREFIX) and server and SEPARATOR not in server
    return name + SEPARATOR if is_server else name


def _server_of(name: str) -> str:
    return UPSTREAM_PREFIX + name.removeprefix(UPSTREAM_PREFIX).partition(SEPARATOR)[0] + SEPARATOR


class BrokenHook(ValueError):
    """A hook that cannot be understood; the text names the place and what to write instead."""


class RuleMatch(Protocol):
    """Whether a permission rule, e.g. `Bash(git *)`, is about a call. Raises `ValueError` for a broken rule."""

    def __call__(self, rule: str, spec: ToolSpec, arguments: Mapping[str, Any]) -> bool: ...


@dataclass(frozen=True, kw_only=True)
class HookCommand:
    """`location` is where it is configured, its name in records and messages.

    `refuses_on_failure`: a call it should have judged does not run where it cannot. `strict`: what is no proper
    answer is a failure; Claude Code passes over it. `is_imported` is one of a Claude Code settings file: it gets
    CLAUDE_PROJECT_DIR, and `in_shell` if it is a shell's command line.
    """

    event: HookEvent
    location: str
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


def configured_hooks(settings: HookSettings) -> Iterator[HookCommand]:
    """The hooks of our own settings (R-HOOK-1: words, no shell). Raises `BrokenHook`."""
    for event, location, matcher, program in settings.entries():
        if program.condition and event not in TOOL_EVENTS:
            raise BrokenHook(
                f"{location}.if: {event} is about no tool call; only {', '.join(TOOL_EVENTS)} take an `if`"
            )
        try:
            parsed = Matcher.parse(matcher)
        except BrokenMatcher as broken:
            raise BrokenHook(f"{location}: {broken}") from None
        yield HookCommand(
            event=event,
            location=location,
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
        raise BrokenHook(f"{hook.location}: if: {broken}") from None


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


_WORD = re.compile(r"[A-Za-z]\w{2,}")
_SHOWN_CHARS = 80


def unmatched_hooks(
    hooks: Iterable[HookCommand],
    tools: Collection[str],
    *,
    is_off: Callable[[str], bool],
    unlisted: Collection[str] = (),
) -> Iterator[tuple[str, str]]:
    """The place of each such hook, and what is wrong with its matcher.

    `tools` are all there are now, by their canonical names; `is_off` tells of one that could be turned on. `unlisted`
    are servers whose tools nobody knows yet: what may mean one of theirs, as any pattern may, is passed over.
    """
    for hook in hooks:
        if hook.event not in TOOL_EVENTS:
            continue
        pattern = hook.matcher.pattern
        if pattern is None:
            for name in sorted(hook.matcher.names):
                if not _means_some(name, tools, unlisted, hook.is_imported) and not is_off(name):
                    yield (
                        hook.location,
                        f"its matcher names {name[:_SHOWN_CHARS]}, which is no tool{_near([name], tools)}",
                    )
        elif not unlisted and not any(map(hook.matcher.matches, tools)):
            near = _near(_WORD.findall(pattern.pattern), tools)
            yield hook.location, f"its matcher {pattern.pattern[:_SHOWN_CHARS]!r} matches no tool{near}"


def _means_some(name: str, tools: Collection[str], unlisted: Collection[str], is_imported: bool) -> bool:
    if name in TOOL_ALIASES or any(map(Matcher(frozenset((name,))).matches, tools)):
        return True
    if not name.startswith(UPSTREAM_PREFIX):
        return False
    server, separator, _ = name.removeprefix(UPSTREAM_PREFIX).partition(SEPARATOR)
    # That a server's bare name means nothing in a file of Claude Code is told when the file is read.
    return server in unlisted or (is_imported and not separator)


def _near(names: Iterable[str], tools: Collection[str]) -> str:
    spelled = {alias: tool for alias, tool in CLAUDE_CODE_ALIASES.items() if tool in tools}
    near = [spelled.get(one, one) for name in names for one in nearest(name, [*spelled, *tools], most=2)]
    return f"; {one_of(dict.fromkeys(near))}" if near else ""
